"""Messages of a running graph to its user: failed assertions and printed values.

`summary` is the text of a value in both: nested brackets, a limited number of elements, floating-point
numbers in the shortest form without loss.

>>> import numpy as np
>>> summary(np.array([[1, 2, 3], [4, 5, 6]]), 2)
'[1 2...]...'
>>> summary(np.float32(1) / 3, 3)
'0.333333343'
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.values import to_numpy
from flowstone.io.file_system import open_file
from flowstone.ops.control.control_flow import group

__all__ = ["Print", "add_check_numerics_ops"]


# ---- values as text


def summary(value: Any, limit: int) -> str:
    """The first `limit` elements (all if it is negative) of an array as text, ``...`` where some are left
    out.
    """
    array = np.asarray(value)
    if limit < 0 or limit > array.size:
        limit = array.size
    words = [_word(item) for item in array.reshape(-1)[:limit]]
    text = " ".join(words) if array.ndim == 0 else _nested(array.shape, iter(words), [limit], outermost=True)
    return text + "..." if limit < array.size else text


def _nested(shape: tuple[int, ...], words: Any, left: list[int], outermost: bool = False) -> str:
    if left[0] <= 0:
        return ""
    if len(shape) == 1:
        taken = list(itertools.islice(words, shape[0]))
        left[0] -= len(taken)
        return " ".join(taken) + ("..." if len(taken) < shape[0] and not outermost else "")
    parts = []
    for _ in range(shape[0]):
        if left[0] > 0:
            parts.append(f"[{_nested(shape[1:], words, left)}]")
    return "".join(parts)


def _word(item: Any) -> str:
    if isinstance(item, bytes):
        return item.decode("utf-8", "replace")
    if isinstance(item, (bool, np.bool_)):
        return str(int(item))
    if isinstance(item, (complex, np.complexfloating)):
        return "?"
    if isinstance(item, np.integer):
        return str(int(item))
    return _float_word(float(item), item.dtype == np.float64)


def _float_word(number: float, is_double: bool) -> str:
    short, exact, same = ("%.15g", "%.17g", float) if is_double else ("%.6g", "%.9g", np.float32)
    text = short % number
    return text if same(text) == same(number) or number != number else exact % number


def _arrays(values: Sequence[Any], types: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    return [to_numpy(value, dtype) for value, dtype in zip(values, types)]


# ---- Assert

assert_op = op(
    "Assert", "condition: bool[], data: *T ->", "T: list(type) >= 1 ; summarize: int = 3", stateful=True
)


@assert_op.infer
def _(node: Node) -> None:
    dims = node.dims(0)
    if dims:
        raise ValueError(f"Shape must be rank 0 but is rank {len(dims)}")


@assert_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., None]:
    limit, types = node.attributes["summarize"], node.attributes["T"]

    def check(condition: Any, *data: Any) -> None:
        if not condition:
            words = " ".join(f"[{summary(array, limit)}]" for array in _arrays(data, types))
            raise errors.InvalidArgumentError(None, None, f"assertion failed: {words}")

    return check


assert_op.not_differentiable()

# ---- Print

print_op = op(
    "Print",
    "input: T, data: *U -> output: T",
    "U: list(type) >= 1 ; message: string = '' ; first_n: int = -1 ; summarize: int = 3",
    T=None,
    stateful=True,
    aliases=[0],
)
print_op.infer(lambda node: node.dims(0))


@print_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    attributes = node.attributes
    limit, types, message, first_n = (attributes[key] for key in ("summarize", "U", "message", "first_n"))
    count = env.state(node, itertools.count)

    def show(x: Any, *data: Any) -> Any:
        if first_n < 0 or next(count) < first_n:
            text = "".join(f"[{summary(array, limit)}]" for array in _arrays(data, types))
            print(f"{message}{text}", file=sys.stderr, flush=True)
        return x

    return show


@print_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return (dy, *[None] * (len(op.inputs) - 1))


def Print(
    input_: Any,
    data: Any,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`input_` itself; computing it prints `message` and the tensors of the list `data` to standard error.

    `first_n`: only that many times (negative or None: always); `summarize`: elements to show of each (None:
    3)."""
    return print_op(
        input_, data, message=message or "", first_n=-1 if first_n is None else first_n,
        summarize=3 if summarize is None else summarize, name=name,
    )  # fmt: skip


print_v2_op = op(
    "PrintV2", "input: string ->", "output_stream: string = 'stderr' ; end: string = '\\n'", stateful=True
)


@print_v2_op.infer
def _(node: Node) -> None:
    dims = node.dims(0)
    if dims:
        raise ValueError(f"Shape must be rank 0 but is rank {len(dims)}")


@print_v2_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Any], None]:
    target, end = node.attributes["output_stream"], node.attributes["end"]

    def show(text: Any) -> None:
        words = text.item().decode("utf-8", "replace") + end
        if target.startswith("file://"):
            with open_file(target, "ab") as file:
                file.write(words.encode("utf-8"))
        else:
            stream = sys.stdout if target == "stdout" else sys.stderr
            print(words, end="", file=stream, flush=True)

    return show


print_v2_op.not_differentiable()

# ---- numeric checks

_CHECKED = (dtypes.half, dtypes.bfloat16, dtypes.float32, dtypes.float64)


def add_check_numerics_ops() -> Any:
    """An operation that checks every floating-point tensor of the default graph, in topological order.

    It fails with InvalidArgumentError, naming the first tensor found, if an element is NaN or infinite.
    Raises ValueError if the graph has tensors inside a conditional or loop, which cannot be checked from
    outside."""
    checks: list[Any] = []
    graph = get_default_graph()
    for operation in graph.get_operations():
        for output in operation.outputs:
            if output.dtype not in _CHECKED:
                continue
            if operation._get_control_flow_context() is not None:
                raise ValueError(
                    "`tf.add_check_numerics_ops() is not compatible with TensorFlow control flow "
                    "operations such as "
                    "`tf.cond()` or `tf.while_loop()."
                )
            with graph.control_dependencies(checks[-1:]):
                checks.append(F.CheckNumerics(output, message=f"{operation.name}:{output.value_index}"))
    return group(*checks[-1:])
