"""Functions made of Python functions: `Defun`, and `Declare` for one that is defined later (white paper 10).

    @function.Defun(tf.float32, tf.float32)
    def swapped_difference(x, y):
        return y - x

    z = swapped_difference(a, b)  # adds one node, whose op type is the function's name

The Python function is called once, on placeholders, while its `FunctionGraph` is the default graph. A tensor
from outside that it uses is *captured*: it becomes one more argument, which every call passes. The result is
kept as a FunctionDef in the library of each graph that calls it (`function_library.py`) and so goes wherever
the graph's GraphDef goes. A name not given is made of the Python function's and of a hash of the definition.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from flowstone.framework import errors
from flowstone.framework.declarations.building import add_operation
from flowstone.framework.declarations.operation import F
from flowstone.framework.functions.function_def import write_function
from flowstone.framework.functions.function_graph import FunctionGraph
from flowstone.framework.graphs.function_library import FunctionBody, FunctionDeclaration
from flowstone.framework.graphs.graph import Graph, Operation
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.tensor_proto import messages

__all__ = ["Declare", "Defun", "FunctionGraph"]

_SHORT_KINDS = {"qint": "qi", "quint": "qu"}  # of other kinds the first letter


class DefinedFunction:
    """A function of tensors; calling it adds a call to the default graph. Made by `Defun`."""

    def __init__(
        self,
        function: Callable[..., Any],
        argument_names: list[str],
        input_types: tuple[DType, ...],
        func_name: str | None = None,
        grad_func: Any = None,
        python_grad_func: Callable[..., Any] | None = None,
        out_names: list[str] | None = None,
        shape_func: Callable[..., Any] | None = None,
        noinline: bool | None = None,
        capture_by_value: bool = False,
        **attributes: Any,
    ) -> None:
        self._function, self._argument_names, self._input_types = function, argument_names, input_types
        self._func_name, self._grad_func, self._python_grad_func = func_name, grad_func, python_grad_func
        self._out_names, self._shape_func, self._by_value = out_names, shape_func, capture_by_value
        self._attributes = attributes if noinline is None else {**attributes, "noinline": noinline}
        self._definition: Any = None
        self._graph: FunctionGraph | None = None
        self._inputs: list[Tensor] = []
        self._results: list[Tensor] = []
        self._frames: dict[str, Any] = {}

    # ---- what it is

    @property
    def name(self) -> str:
        """The name, which is the calls' op type."""
        return str(self.definition.signature.name)

    @property
    def definition(self) -> Any:
        """The FunctionDef. Building it calls the Python function, in the default graph's stead."""
        if self._definition is None:
            self._define()
        return self._definition

    @property
    def declared_input_types(self) -> tuple[DType, ...]:
        """The types of the arguments, captured ones left out."""
        return self._input_types

    @property
    def captured_inputs(self) -> list[Tensor]:
        """The tensors from outside that every call passes after the arguments."""
        return list(self._built.captures)

    @property
    def stateful_ops(self) -> list[tuple[str, str]]:
        """(name, type) of the operations in the body that have state or effects."""
        ops = [op for op in self._built.get_operations() if op.declaration.stateful]
        return [(op.name, op.type) for op in ops if op.declaration.role != "placeholder"]

    @property
    def grad_func_name(self) -> str | None:
        """The name of the function that computes the gradient, or None."""
        return self._grad_func.name if self._grad_func is not None else None

    @property
    def python_grad_func(self) -> Callable[..., Any] | None:
        """The Python function that adds the gradient's nodes, or None."""
        return self._python_grad_func

    def set_grad_func(self, grad_func: Any) -> None:
        """Makes another function its gradient. ValueError if it has a gradient already."""
        if self._grad_func is not None:
            raise ValueError("Gradient defined already")
        self._grad_func = grad_func

    @property
    def _built(self) -> FunctionGraph:
        if self._graph is None:
            self._define()
        assert self._graph is not None
        return self._graph

    def _define(self) -> None:
        self._graph = graph = FunctionGraph(scope.get_default_graph(), self._by_value)
        with graph.as_default(), scope.capturing():
            types = zip(self._argument_names, self._input_types)
            inputs = [F.Placeholder(dtype=dtype, shape=None, name=name) for name, dtype in types]
            outputs = self._outputs(self._function(*inputs))
        inputs += graph.captures.values()
        self._inputs, self._results = inputs, outputs
        definition = write_function("", graph, inputs, outputs, self._out_names)
        for key, value in self._attributes.items():
            _write_attribute(definition.attr[f"_{key}"], value)
        definition.signature.name = self._func_name or self._made_name(definition)
        self._definition = definition
        given = {x.op for x in inputs}
        operations = [op for op in graph.get_operations() if op not in given]
        self._frames = {node.name: op._frames for node, op in zip(definition.node_def, operations)}

    def _outputs(self, result: Any) -> list[Tensor]:
        name = self._func_name or _name_of(self._function)
        items = [] if result is None else result if isinstance(result, (list, tuple)) else [result]
        if any(item is None for item in items):
            raise ValueError(f"Function {name} can not return None.")
        if any(isinstance(item, Operation) for item in items):
            raise TypeError(f"Function {name} can not return an Operation: return tensors.")
        return [convert_to_tensor(item) for item in items]

    def _made_name(self, definition: Any) -> str:
        """The Python function's name, the gradient function's, and a hash."""
        digest = hashlib.sha256(definition.SerializeToString(deterministic=True)).digest()[:8]
        text = base64.b64encode(digest, b"AB").decode().rstrip("=")
        middle = f"_{self._grad_func.name}" if self._grad_func is not None else ""
        return f"{_name_of(self._function)}{middle}_{text}"

    # ---- where it is used

    def add_to_graph(self, g: Graph) -> None:
        """Adds the definition, and those of the functions that it calls, to a graph's library.

        InvalidArgumentError if a different function there has its name.
        """
        definition, library = self.definition, g._functions
        try:
            library.add(definition)
        except ValueError as error:
            raise errors.InvalidArgumentError(None, None, str(error)) from None
        library.frames[self.name] = self._frames
        declaration = library.declaration(self.name)
        if self._python_grad_func is not None and declaration is not None:
            declaration.gradient_function = self._python_grad_func
        graph = self._built
        if any(op.declaration.role == "enter" for op in graph.get_operations()):
            library.built[self.name] = FunctionBody(self.name, graph, self._inputs, self._results, [])
        for function in graph.called:
            if function is not self:
                function.add_to_graph(g)
        if self._grad_func is not None:
            self._grad_func.add_to_graph(g)
            library.set_gradient(self.name, self._grad_func.name)

    def __call__(self, *args: Any, name: str | None = None, **keywords: Any) -> Any:
        """Adds a call; returns the result as a tensor, several as a tuple, the operation if there are none.

        ValueError for a wrong number of arguments, a wrong type or unknown keywords.
        """
        self.definition  # noqa: B018  (built before the graph's names are taken)
        graph = scope.get_default_graph()
        self.add_to_graph(graph)
        if isinstance(graph, FunctionGraph):
            graph.called.append(self)
        captured = [_as_passed(x, graph) for x in self.captured_inputs]
        operation = _call(graph, self.definition.signature, args, captured, name, keywords)
        if self._shape_func is not None:
            for output, shape in zip(operation.outputs, self._shape_func(operation)):
                output.set_shape(shape)
        return operation.declaration.result(operation)


def _as_passed(tensor: Tensor, graph: Graph) -> Tensor:
    """A captured tensor where the call is: in another function's body it is captured again."""
    inside = isinstance(graph, FunctionGraph) and tensor.graph is not graph
    return graph.capture(tensor) if inside else tensor  # type: ignore[attr-defined]


def _call(
    graph: Graph, signature: Any, args: Any, captured: list[Tensor], name: str | None, keywords: Any
) -> Operation:
    """Adds the node of a call, whose function or its declaration is in the graph's library."""
    expected = len(signature.input_arg) - len(captured)
    if len(args) != expected:
        raise ValueError(f"Expected {expected} arguments, got {len(args)}.")
    if keywords:
        raise ValueError(f"Unknown keyword arguments: {keywords.keys()}.")
    values = [convert_to_tensor(value) for value in args]
    for argument, value in zip(signature.input_arg, values):
        dtype = dtypes.as_dtype(argument.type)
        if value.dtype.base_dtype is not dtype:
            raise ValueError(
                f"Input '{argument.name}' passed {value.dtype.base_dtype.name} expected {dtype.name} while "
                f"building a call of function '{signature.name}'"
            )
    declaration = graph._functions.declaration(signature.name)
    assert declaration is not None
    operation = add_operation(declaration, (*values, *captured), {}, name)
    operation.attributes["_disable_call_shape_inference"] = True
    return operation


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _write_attribute(message: Any, value: Any) -> None:
    if isinstance(value, bool):
        message.b = value
    elif isinstance(value, int):
        message.i = value
    elif isinstance(value, float):
        message.f = value
    elif isinstance(value, (str, bytes)):
        message.s = value.encode() if isinstance(value, str) else value
    else:
        raise ValueError(f"Unsupported attribute type: {type(value)}")


class OverloadedFunction:
    """A function whose types each call decides; see `Defun` without types."""

    def __init__(
        self, function: Callable[..., Any], argument_names: list[str], grad_func: Any = None, **keywords: Any
    ) -> None:
        self._function, self._argument_names = function, argument_names
        self._grad_func, self._keywords = grad_func, keywords
        self._instances: dict[str, DefinedFunction] = {}

    def instantiate(self, input_types: Iterable[Any]) -> DefinedFunction:
        """The function for these types; the same one each time."""
        types = tuple(dtypes.as_dtype(dtype).base_dtype for dtype in input_types)
        key = "".join(_short_name(dtype) for dtype in types)
        found = self._instances.get(key)
        if found is None:
            keywords = dict(self._keywords)
            if keywords.get("func_name") is not None:
                keywords["func_name"] = f"{keywords['func_name']}_{key}"
            found = DefinedFunction(self._function, self._argument_names, types, **keywords)
            if self._grad_func is not None:
                found.set_grad_func(self._gradient_for(found))
            self._instances[key] = found
        return found

    def _gradient_for(self, function: DefinedFunction) -> Any:
        if not isinstance(self._grad_func, OverloadedFunction):
            return self._grad_func
        results = [out.type for out in function.definition.signature.output_arg]
        function._definition = function._graph = None  # its name tells of its gradient
        return self._grad_func.instantiate([*function.declared_input_types, *results])

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """A call of the function for the arguments' types; see `DefinedFunction`."""
        values = [convert_to_tensor(value) for value in args]
        return self.instantiate([value.dtype for value in values])(*values, **keywords)


def _short_name(dtype: DType) -> str:
    kind = dtype.name.rstrip("0123456789")
    return _SHORT_KINDS.get(kind, kind[0]) + dtype.name[len(kind) :]


class Defun:
    """Decorator: makes a function of tensors, called as one node, of a Python function.

    Args:
        input_types: the arguments' types; without any, each call decides them.
        func_name: the function's name; by default the Python function's with a hash.
        grad_func: a function of the arguments and the gradients with respect to the results, that returns the
        gradients
            by the arguments.
        python_grad_func: the same as a Python function of the calling operation and the gradients, which
            adds nodes to the graph that is differentiated.
        out_names: the results' names.
        shape_func: a Python function of the calling operation, that returns the results' static shapes.
        capture_by_value: whether what computes a tensor from outside is copied into the function, so that
            nothing becomes an argument. ValueError for placeholders and what has state.
        noinline, others: attributes kept in the definition.

    Raises ValueError for a function with defaults or keywords, or whose arguments are not as many as the
    types.
    """

    def __init__(self, *input_types: Any, **kwargs: Any) -> None:
        self._input_types = tuple(dtypes.as_dtype(dtype).base_dtype for dtype in input_types)
        self._keywords = kwargs

    def __call__(self, func: Callable[..., Any]) -> Any:
        """The function made of `func`."""
        if not callable(func):
            raise ValueError(f"Function {func} must be a callable.")
        spec = inspect.getfullargspec(func)
        if spec.defaults or spec.varkw or spec.kwonlyargs:
            raise ValueError(
                "Functions with argument defaults or keywords arguments are not supported. "
                f"{func} has defaults {spec.defaults} and keywords {spec.varkw}."
            )
        is_bound = inspect.ismethod(func) or (spec.args[:1] == ["self"] and not inspect.isfunction(func))
        names = spec.args[1:] if is_bound else spec.args
        least, types = len(names), self._input_types
        if not types and (names or spec.varargs):
            return OverloadedFunction(func, list(names), **self._keywords)
        if len(types) < least or (len(types) > least and spec.varargs is None):
            most = "infinite" if spec.varargs else least
            raise ValueError(
                "The number of tf.function input types is not compatible with the allowed arguments of "
                f"{func}. The tf.function have {len(types)} input types, while the python function allows "
                f"minimum {least} and maximum {most} arguments."
            )
        names = [*names, *(f"{spec.varargs}_{i}" for i in range(len(types) - least))]
        return DefinedFunction(func, names, types, **self._keywords)


class Declare:
    """A function that is defined elsewhere or later, known by its name, arguments and results.

    `inputs` and `outputs`: (name, type) each.
    """

    def __init__(self, func_name: str, inputs: Any, outputs: Any) -> None:
        self._signature = messages("op_def_pb2").OpDef(name=func_name)
        for name, dtype in inputs:
            self._signature.input_arg.add(name=name, type=dtypes.as_dtype(dtype).as_datatype_enum)
        for name, dtype in outputs:
            self._signature.output_arg.add(name=name, type=dtypes.as_dtype(dtype).as_datatype_enum)

    @property
    def name(self) -> str:
        """The function's name."""
        return str(self._signature.name)

    def __call__(self, *inputs: Any, name: str | None = None, **keywords: Any) -> Any:
        """Adds a call; see `DefinedFunction`."""
        graph = scope.get_default_graph()
        graph._functions.declare(FunctionDeclaration(self._signature))
        operation = _call(graph, self._signature, inputs, [], name, keywords)
        return operation.declaration.result(operation)
