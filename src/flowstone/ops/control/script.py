"""`tf.py_func`: a Python function as a node of the graph.

The node names the function by a token, as on the wire; the graph keeps the function alive. A step calls it
with NumPy arrays (scalars as NumPy scalars or `bytes`) that it may keep and change, and copies its
results. EagerPyFunc's function is called as ``call(node, environment, step, values)`` and gives values as
they flow along edges; its method `gradient` adds the gradients' nodes (`client/eager_functions.py`)."""

from __future__ import annotations

import itertools
import traceback
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment, StepCall
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.functions.function import FunctionGraph
from flowstone.framework.graphs.graph import Graph, Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types import dtypes
from flowstone.framework.types.values import as_bytes_array, to_numpy, to_runtime

__all__ = ["numpy_function", "py_func"]

_SIGNATURE = "input: *Tin -> output: *Tout"
_ATTRIBUTES = "token: string ; Tin: list(type) >= 0 ; Tout: list(type) >= 0"

py_func_op = op("PyFunc", _SIGNATURE, _ATTRIBUTES, stateful=True, role="element")
py_func_stateless_op = op("PyFuncStateless", _SIGNATURE, _ATTRIBUTES, role="element")
eager_py_func_op = op(
    "EagerPyFunc", _SIGNATURE, f"{_ATTRIBUTES} ; is_async: bool = false", stateful=True, role="element"
)

_ERRORS: tuple[tuple[type[Exception], Callable[[Any, Any, str], errors.OpError]], ...] = (
    (NotImplementedError, errors.UnimplementedError),
    (StopIteration, errors.OutOfRangeError),
    (MemoryError, errors.ResourceExhaustedError),
    (ValueError, errors.InvalidArgumentError),
    (TypeError, errors.InvalidArgumentError),
)


class _Function:
    """A registered function; its graph owns it, the registry has only a weak reference."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call


_functions: weakref.WeakValueDictionary[str, _Function] = weakref.WeakValueDictionary()
_held: weakref.WeakKeyDictionary[Graph, list[_Function]] = weakref.WeakKeyDictionary()
_numbers = itertools.count()


def _register(graph: Graph, call: Callable[..., Any]) -> str:
    token = f"pyfunc_{next(_numbers)}"
    function = _functions[token] = _Function(call)
    while isinstance(graph, FunctionGraph):  # such a graph is dropped once the function is in the library
        graph = graph.outer
    _held.setdefault(graph, []).append(function)
    return token


def _kernel(node: Node, env: Environment) -> Callable[..., list[Any]]:
    token, types_in, types_out = (node.attributes[key] for key in ("token", "Tin", "Tout"))

    def run(*inputs: Any) -> list[Any]:
        call = _call_of(token)
        arguments = [_argument(value, dtype) for value, dtype in zip(inputs, types_in)]
        try:
            returned = call(*arguments)
        except Exception as error:
            raise _translated(error) from error
        return _results(returned, types_out, token)

    return run


def _eager_kernel(node: Node, env: Environment) -> StepCall:
    token, count = node.attributes["token"], len(node.attributes["Tout"])

    def run(step: Any, *inputs: Any) -> list[Any]:
        call = _call_of(token)
        try:
            results = call(node, env, step, inputs) or []
        except Exception as error:
            raise _translated(error) from error
        _check_count(results, count, token)
        return results

    return StepCall(run, keeps=True)


def _call_of(token: str) -> Callable[..., Any]:
    function = _functions.get(token)
    if function is None:
        raise errors.InvalidArgumentError(
            None, None, f"callback {token} is not found: a graph with py_func runs only where it was built"
        )
    return function.call


def _argument(value: Any, dtype: Any) -> Any:
    array = to_numpy(value, dtype)
    return array.copy() if array.ndim else array[()]


def _translated(error: Exception) -> errors.OpError:
    """The error of the step, with the lines of the function that raised it; the end of data has none."""
    message = f"{type(error).__name__}: {error}"
    if error.__traceback__ is not None and not isinstance(error, StopIteration):
        lines = traceback.format_tb(error.__traceback__.tb_next)  # below the line that calls the function
        if lines:
            message = f"{message}\nTraceback (most recent call last):\n{''.join(lines)}{message}"
    for python, kind in _ERRORS:
        if isinstance(error, python):
            return kind(None, None, message)
    return errors.UnknownError(None, None, message)


def _results(returned: Any, types: Sequence[Any], token: str) -> list[Any]:
    if isinstance(returned, (list, tuple)):
        values = list(returned)
    else:
        values = [] if returned is None else [returned]
    _check_count(values, len(types), token)
    return [_result(i, value, dtype, token) for i, (value, dtype) in enumerate(zip(values, types))]


def _check_count(values: Sequence[Any], count: int, token: str) -> None:
    if len(values) != count:
        raise errors.InvalidArgumentError(
            None, None, f"{token} returns {len(values)} values, but expects to see {count} values."
        )


def _result(i: int, value: Any, dtype: Any, token: str) -> Any:
    array = np.array(value, order="C")
    if array.dtype.kind in "SUO":
        array = as_bytes_array(array)
    found = dtypes.string if array.dtype.hasobject else dtypes.as_dtype(array.dtype)
    if found is not dtype.base_dtype:
        names = [dtypes.wire_name(x) for x in (found, dtype.base_dtype)]
        raise errors.InvalidArgumentError(
            None, None, f"{i}-th value returned by {token} is {names[0]}, but expects {names[1]}"
        )
    return to_runtime(array, dtype)


for _declaration in (py_func_op, py_func_stateless_op, eager_py_func_op):
    _declaration.infer(lambda node: [None] * len(node.attributes["Tout"]))
py_func_op.kernel(CPU)(_kernel)
py_func_stateless_op.kernel(CPU)(_kernel)
eager_py_func_op.kernel(CPU)(_eager_kernel)
py_func_op.not_differentiable()
py_func_stateless_op.not_differentiable()


@eager_py_func_op.gradient
def _eager_gradient(op: Operation, *flows: Any) -> Any:
    return _call_of(op.attributes["token"]).gradient(op, flows)  # type: ignore[attr-defined]


def py_func(
    func: Callable[..., Any], inp: Any, Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """The results of ``func(*arrays)`` as tensors of unknown shape.

    `inp`: a list of tensors; `Tout`: a dtype, or a list of them (then the result is a list; an operation if
    it is empty). `stateful`: whether equal arguments may give different results or calls have effects; else
    calls may be merged. Exceptions of `func` become ValueError, TypeError: InvalidArgumentError;
    StopIteration: OutOfRangeError; MemoryError: ResourceExhaustedError; NotImplementedError:
    UnimplementedError; others: UnknownError. Results of another number or dtype are InvalidArgumentErrors.
    Raises ValueError if `func` is not callable."""
    return call_node(py_func_op if stateful else py_func_stateless_op, func, inp, Tout, name)


def call_node(
    declaration: OpDeclaration, func: Callable[..., Any], inp: Any, Tout: Any, name: str | None
) -> Any:
    """The results of a node of `declaration` that calls `func`, see `py_func`."""
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    is_list = isinstance(Tout, (list, tuple))
    types = [dtypes.as_dtype(dtype) for dtype in (Tout if is_list else [Tout])]
    inputs = list(inp)
    graph = next((x.graph for x in inputs if hasattr(x, "graph")), None) or get_default_graph()
    result = declaration(inputs, token=_register(graph, func), Tout=types, name=name)
    if is_list:
        return result if result else _operation(graph)
    return result[0]


def _operation(graph: Graph) -> Operation:
    return graph.get_operations()[-1]


def numpy_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None, stateful: bool = True,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Another name of `py_func`."""
    return py_func(func, inp, Tout, stateful, name)  # type: ignore[arg-type]
