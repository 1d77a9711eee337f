"""Functions of a SavedModel: `LoadedTrace`, one function of its library, and `LoadedFunction`, a Python
function with its traces, of which a call takes the one that its arguments fit.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.building import add_operation
from flowstone.framework.functions.function_graph import FunctionGraph
from flowstone.framework.tensors import nest, scope
from flowstone.framework.tensors.shallow_nest import flatten_up_to
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.tensors.type_specs import TensorSpec, TypeSpec
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.control import functional_forms

__all__ = ["LoadedFunction", "LoadedTrace"]

_calls: Any = functional_forms.partitioned_call, functional_forms.stateful_partitioned_call


class LoadedTrace:
    """A function of a graph's library, which a SavedModel brought.

    Args:
        definition: the FunctionDef, which is in the library of the default graph.
        input_signature, outputs: arguments and results, nested, with TensorSpecs for tensors.
        names: those of the arguments that are tensors, in order; None: those of the TensorSpecs.

    `captured_inputs`: what each call passes after its arguments; whoever loads the model sets it.
    """

    def __init__(
        self, definition: Any, input_signature: Any, outputs: Any, names: Sequence[str] | None = None
    ) -> None:
        self.function_def, self.graph = definition, scope.get_default_graph()
        self.structured_input_signature, self.structured_outputs = input_signature, outputs
        self.captured_inputs: list[Any] = []
        specs = _specs(input_signature)
        if names is None:
            names = [spec.name or f"args_{i}" for i, spec in enumerate(specs)]
            by_name = dict(zip(names, specs))
        else:
            known = {spec.name: spec for spec in specs}
            by_name = {name: known.get(name, spec) for name, spec in zip(names, specs)}
        self.argument_specs: dict[str, TensorSpec] = {
            name: TensorSpec(spec.shape, spec.dtype, name) for name, spec in by_name.items()
        }

    @property
    def name(self) -> bytes:
        """The name in the graph's library."""
        text: str = self.function_def.signature.name
        return text.encode()

    @property
    def inputs(self) -> list[Any]:
        """Specs of the arguments, then what every call passes."""
        return [*self.argument_specs.values(), *self.captured_inputs]

    @property
    def outputs(self) -> list[Any]:
        """Specs of the flat results."""
        return _specs(self.structured_outputs)

    @property
    def output_shapes(self) -> Any:
        """The static shapes of the results, in their structure."""
        return nest.map_structure(lambda x: getattr(x, "shape", None), self.structured_outputs)

    @property
    def output_dtypes(self) -> Any:
        """The types of the results, in their structure."""
        return nest.map_structure(lambda x: getattr(x, "dtype", None), self.structured_outputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A call with the tensors of the arguments, by position or name. TypeError for others, ValueError
        for tensors of another shape."""
        names = list(self.argument_specs)
        if len(args) > len(names):
            raise TypeError(f"Expected at most {len(names)} positional arguments ({names}), got {len(args)}.")
        given = dict(zip(names, args))
        twice = sorted(set(given) & set(kwargs))
        if twice:
            raise TypeError(f"Got two values for the arguments {twice}.")
        given |= kwargs
        if set(given) != set(names):
            missing, unknown = sorted(set(names) - set(given)), sorted(set(given) - set(names))
            message = f"Expected argument names {names} but got values for {sorted(given)}."
            message += f" Missing: {missing}." if missing else ""
            raise TypeError(message + (f" Unexpected arguments: {unknown}." if unknown else ""))
        return self.call([_checked(given[name], self.argument_specs[name]) for name in names])

    def call(self, tensors: Sequence[Any]) -> Any:
        """A call with these tensors for the arguments: the results in their structure, or the operation."""
        graph, signature = scope.get_default_graph(), self.function_def.signature
        self.add_to_graph(graph)
        if isinstance(graph, FunctionGraph):
            graph.called.append(self)
        specs = self.argument_specs.values()
        values = [convert_to_tensor(x, spec.dtype) for x, spec in zip(tensors, specs)]
        captured = [convert_to_tensor(x) for x in self.captured_inputs]
        types = [dtypes.as_dtype(argument.type) for argument in signature.output_arg]
        call = _calls[signature.is_stateful]
        keywords = {"Tout": types, "f": signature.name}
        operation = add_operation(call, ([*values, *captured],), keywords, call.name)
        leaves = nest.flatten(self.structured_outputs, expand_composites=True)
        if not any(isinstance(leaf, TensorSpec) for leaf in leaves):
            return operation
        found = iter(operation.outputs)
        return nest.map_structure(lambda leaf: _result(leaf, found), self.structured_outputs)

    def add_to_graph(self, g: Any = None) -> None:
        """ValueError for a graph that does not have the function."""
        g = g or scope.get_default_graph()
        if self.function_def.signature.name not in g._functions:
            raise ValueError(
                "A function of a SavedModel can be called in the graph that the model was loaded into: "
                "load it again in the other one."
            )


def _result(spec: Any, found: Any) -> Any:
    if not isinstance(spec, TensorSpec):
        return None
    tensor = next(found)
    tensor.set_shape(spec.shape)
    return tensor


def _specs(structure: Any) -> list[Any]:
    return [leaf for leaf in nest.flatten(structure) if isinstance(leaf, TypeSpec)]


def _checked(value: Any, spec: TensorSpec) -> Tensor:
    tensor: Tensor = convert_to_tensor(value, None if isinstance(value, Tensor) else spec.dtype)
    if not spec.shape.is_compatible_with(tensor.shape):
        raise ValueError(
            f"The argument '{spec.name}' (value {tensor}) is not compatible with the shape this function was "
            f"traced with. Expected shape {spec.shape}, but got shape {tensor.shape}."
        )
    return tensor


class LoadedFunction:
    """A `tf.function` of a SavedModel: calls take one of its traces.

    `parameters`: the Python function's, without `self`; `input_signature`: as `tf.function` was given it;
    `spec`: both as a FunctionSpec.
    """

    def __init__(
        self, traces: list[LoadedTrace], parameters: inspect.Signature, input_signature: Any, spec: Any
    ) -> None:
        self.concrete_functions = traces
        self.parameters, self.input_signature, self.spec = parameters, input_signature, spec

    def traces(self) -> list[Any]:
        """Its traces."""
        return list(self.concrete_functions)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A call of the trace that fits. ValueError, with those that there are, if none does, and for
        arguments that an `input_signature` does not have; TypeError for others."""
        given = self._bound(args, kwargs)
        trace, tensors = self._fitting(given)
        return trace.call(tensors)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> LoadedTrace:
        """The trace that fits; the only one without arguments."""
        if not args and not kwargs and len(self.concrete_functions) == 1:
            return self.concrete_functions[0]
        return self._fitting(self._bound(args, kwargs))[0]

    def _bound(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        try:
            bound = self.parameters.bind(*args, **kwargs)
        except TypeError:
            if self.input_signature is None:
                raise
            raise ValueError(
                f"Structure of Python function inputs does not match input_signature: {args}, {kwargs}, of "
                f"{self.input_signature}."
            ) from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _fitting(self, given: Any) -> tuple[LoadedTrace, list[Any]]:
        for may_convert in (False, True):
            for trace in self.concrete_functions:
                tensors = _matched(trace.structured_input_signature, given, may_convert)
                if tensors is not None:
                    return trace, tensors
        if self.input_signature is not None:
            raise ValueError(
                f"Python inputs incompatible with input_signature:\n  inputs: {given}\n"
                f"  input_signature: {self.input_signature}"
            )
        options = "\n\n".join(
            f"Option {i}:\n{_listed(trace.structured_input_signature)}"
            for i, trace in enumerate(self.concrete_functions, 1)
        )
        raise ValueError(
            "Could not find matching function to call loaded from the SavedModel. Got:\n"
            f"{_listed(given)}\n\nExpected these arguments to match one of the following "
            f"{len(self.concrete_functions)} option(s):\n\n{options}"
        )


def _listed(arguments: Any) -> str:
    positional, named = arguments
    lines = "".join(f"    * {each!r}\n" for each in positional)
    return f"  Positional arguments ({len(positional)} total):\n{lines}  Keyword arguments: {dict(named)}"


def _matched(expected: Any, given: Any, may_convert: bool) -> list[Any] | None:
    """The tensors among the arguments, if these are as `expected` says; None otherwise."""
    wanted = [list(expected[0]), dict(expected[1])]
    try:
        parts = flatten_up_to(wanted, [list(given[0]), dict(given[1])], check_types=False)
    except (TypeError, ValueError):
        return None
    found = []
    for spec, value in zip(nest.flatten(wanted), parts):
        if not isinstance(spec, TensorSpec):
            if type(value) is not type(spec) or value != spec:
                return None
            continue
        tensor = _as_tensor(value, spec, may_convert)
        if tensor is None or not spec.shape.is_compatible_with(TensorShape(tensor.shape)):
            return None
        found.append(tensor)
    return found


def _as_tensor(value: Any, spec: TensorSpec, may_convert: bool) -> Any:
    is_tensor = isinstance(value, (Tensor, TensorSpec)) or hasattr(value, "_as_graph_element")
    if not is_tensor:
        if not may_convert or value is None:
            return None
        try:
            value = convert_to_tensor(value, spec.dtype)
        except (TypeError, ValueError):
            return None
    return value if value.dtype.base_dtype == spec.dtype.base_dtype else None
