"""One trace of a Python function: a function of the graph's library, and the calls of it.

`Trace` calls the Python function once, on placeholders in a graph of its own
(`created_variables.TracingGraph`); tensors and variables of the graph outside are captured and become
further arguments. Results pass an Identity that waits for what must happen (`ops/control/program_order.py`).
A call is a node PartitionedCall, or StatefulPartitionedCall if the body has state.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework.declarations.building import add_operation
from flowstone.framework.declarations.operation import F
from flowstone.framework.functions.function_def import write_function
from flowstone.framework.functions.function_graph import FunctionGraph
from flowstone.framework.graphs.function_library import FunctionBody
from flowstone.framework.graphs.graph import Graph, Operation
from flowstone.framework.tensors import nest, scope
from flowstone.framework.tensors.recording import Recording, note_read
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.tensors.type_specs import TensorSpec, type_spec_from_value
from flowstone.framework.types import dtypes
from flowstone.functions.call_arguments import flat_tensors, is_tensor, with_leaves
from flowstone.functions.created_variables import TracingGraph
from flowstone.ops.control import functional_forms
from flowstone.ops.control.program_order import order_effects
from flowstone.ops.variables.variable_creation import variable_creator_scope

__all__ = ["ConcreteFunction"]

_numbers = itertools.count(1)
_calls: Any = functional_forms.partitioned_call, functional_forms.stateful_partitioned_call


class ConcreteFunction:
    """A Python function traced for arguments of one kind; calling it adds a call to the default graph.

    `graph`, the body; `inputs`, its placeholders, captured ones last; `outputs`, its flat results;
    `captured_inputs`, the tensors from outside; `structured_outputs`, the results as the function returned
    them; `structured_input_signature`, the arguments as (positions, names), tensors as TensorSpecs.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str,
        may_create: bool = False,
        names: Sequence[str] = (),
    ) -> None:
        outer = scope.get_default_graph()
        self.graph = graph = TracingGraph(outer, may_create)
        self.structured_input_signature = nest.map_structure(_spec, (args, kwargs))
        reads = Recording()
        with (
            graph.as_default(),
            scope.capturing(),
            scope.recordings.entered(reads),
            variable_creator_scope(graph.creator),
        ):
            arguments = [_placeholder(spec, names, i) for i, spec in enumerate(flat_tensors((args, kwargs)))]
            given, named = with_leaves((args, kwargs), arguments)
            self.structured_outputs = self._finished(function, function(*given, **named))
        self._arguments, self._variables_read = arguments, reads.variables
        self._define(outer, f"__inference_{_plain(name)}_{next(_numbers)}")

    def _finished(self, function: Any, result: Any) -> Any:
        """The results as tensors that wait for all effects."""
        graph = self.graph
        leaves = [_as_result(leaf, function) for leaf in nest.flatten(result, expand_composites=True)]
        effects = order_effects([op for op in graph.get_operations() if op.declaration.role != "placeholder"])
        with graph.name_scope(None), graph.control_dependencies(None), graph.control_dependencies(effects):
            leaves = [F.Identity(x) if isinstance(x, Tensor) else x for x in leaves]
        self.outputs = [x for x in leaves if isinstance(x, Tensor)]
        self._effects = effects
        return nest.pack_sequence_as(result, leaves, expand_composites=True)

    def _define(self, outer: Graph, name: str) -> None:
        graph = self.graph
        self.inputs = [*self._arguments, *graph.captures.values()]
        definition = write_function(name, graph, self.inputs, self.outputs, controls=self._effects)
        definition.attr["_disable_call_shape_inference"].b = False
        self.function_def = definition
        library = outer._functions
        library.add(definition)
        if any(op.declaration.role == "enter" for op in graph.get_operations()):
            library.built[name] = FunctionBody(name, graph, self.inputs, self.outputs, [])
        self._library = library

    # ---- what it is

    @property
    def name(self) -> bytes:
        """The name in the graph's library."""
        text: str = self.function_def.signature.name
        return text.encode()

    @property
    def argument_specs(self) -> dict[str, TensorSpec]:
        """The tensors that a call gives, by the names of their placeholders."""
        return {x.op.name: TensorSpec(x.shape, x.dtype, x.op.name) for x in self._arguments}

    @property
    def captured_inputs(self) -> list[Tensor]:
        """The tensors from outside, which every call passes."""
        return list(self.graph.captures)

    @property
    def output_dtypes(self) -> Any:
        """The types of the results, in their structure."""
        return nest.map_structure(lambda x: getattr(x, "dtype", None), self.structured_outputs)

    @property
    def output_shapes(self) -> Any:
        """The static shapes of the results, in their structure."""
        return nest.map_structure(lambda x: getattr(x, "shape", None), self.structured_outputs)

    def add_to_graph(self, g: Graph | None = None) -> None:
        """Adds the definition, and those of the functions that it calls, to a graph's library."""
        library, name = (g or scope.get_default_graph())._functions, self.function_def.signature.name
        if library is self._library:
            return
        library.add(self.function_def)
        if name in self._library.built:
            library.built[name] = self._library.built[name]
        for function in self.graph.called:
            function.add_to_graph(g)

    # ---- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A call with the tensors of the arguments, by position or by the placeholders' names."""
        tensors = flat_tensors((args, {}))
        if kwargs:
            names = [x.op.name for x in self._arguments[len(tensors) :]]
            unknown = set(kwargs) - set(names)
            if unknown:
                raise TypeError(f"Unknown keyword arguments {sorted(unknown)}; expected some of {names}")
            tensors += [kwargs[name] for name in names if name in kwargs]
        if len(tensors) < len(self._arguments) and len(args) == len(self._arguments):
            tensors = [convert_to_tensor(x, y.dtype) for x, y in zip(args, self._arguments)]
        if len(tensors) != len(self._arguments):
            raise TypeError(f"Expected {len(self._arguments)} tensors as arguments, got {len(tensors)}.")
        return self.call(tensors)

    def call(self, tensors: Sequence[Any]) -> Any:
        """A call with these tensors for the arguments; returns the results in their structure, which may be
        empty, or the call's operation if the function returned nothing."""
        graph = scope.get_default_graph()
        self.add_to_graph(graph)
        if isinstance(graph, FunctionGraph):
            graph.called.append(self)
        values = [convert_to_tensor(x, y.dtype) for x, y in zip(tensors, self._arguments)]
        captured = [convert_to_tensor(x) for x in self.captured_inputs]
        for variable in self._variables_read:
            note_read(variable)
        call = _calls[self.function_def.signature.is_stateful]
        types = [x.dtype.base_dtype for x in self.outputs]
        name = call.name if self.outputs else "PartitionedFunctionCall"
        keywords = {"Tout": types, "f": self.function_def.signature.name}
        with graph.control_dependencies(self.graph.control_captures):
            operation = add_operation(call, ([*values, *captured],), keywords, name)
        for result, x in zip(operation.outputs, self.outputs):
            result.dims = x.dims
        if self.structured_outputs is None:
            return operation
        found = iter(operation.outputs)
        leaves = nest.flatten(self.structured_outputs, expand_composites=True)
        return nest.pack_sequence_as(
            self.structured_outputs,
            [next(found) if isinstance(leaf, Tensor) else leaf for leaf in leaves],
            expand_composites=True,
        )


def _spec(value: Any) -> Any:
    if (not is_tensor(value) and not nest.is_composite(value)) or isinstance(value, TensorSpec):
        return value
    if isinstance(value, np.ndarray):
        return TensorSpec(value.shape, _array_type(value))
    return type_spec_from_value(value) if not hasattr(value, "_is_tensor_array") else value


def _placeholder(value: Any, names: Sequence[str], position: int) -> Tensor:
    given = getattr(value, "name", None) if isinstance(value, TensorSpec) else None
    name = given or (names[position] if position < len(names) else "args")
    if isinstance(value, (Tensor, TensorSpec)):
        shape = value.shape
        dims = None if shape.ndims is None else tuple(shape.as_list())
        found: Tensor = F.Placeholder(dtype=value.dtype.base_dtype, shape=dims, name=_plain(name))
        return found
    return F.Placeholder(dtype=_array_type(value), shape=value.shape, name=_plain(name))


def _array_type(value: Any) -> dtypes.DType:
    return dtypes.string if value.dtype.kind in "OSU" else dtypes.as_dtype(value.dtype)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name).strip("_") or "args"


def _as_result(value: Any, function: Any) -> Any:
    if value is None:
        return None
    try:
        if isinstance(value, Operation):
            raise TypeError
        return convert_to_tensor(value)
    except (TypeError, ValueError):
        raise TypeError(
            "To be compatible with tf.contrib.eager.defun, Python functions must return zero or more "
            f"Tensors; in compilation of {function}, found return value of type {type(value)}, which is not "
            "a Tensor."
        ) from None
