"""Assertions about tensors: checked while the graph is built if the values are known, else by Assert nodes in
a step.

A comparison that is known to fail raises InvalidArgumentError while the graph is built; the node fails with
the same class. Checks that depend only on types and ranks raise TypeError or ValueError."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.control.conditionals import Assert, cond
from flowstone.ops.control.control_flow import no_op, with_dependencies
from flowstone.ops.control.type_checks import assert_type, is_numeric_tensor

__all__ = [
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "is_non_decreasing",
    "is_strictly_increasing",
]


def _all(condition: Tensor) -> Tensor:
    if condition.ndim is None:
        every = F.All(condition, F.Range(0, F.Rank(condition), 1, name="range"))
        every.set_shape(())
        return every
    return F.All(condition, constant(list(range(condition.ndim)), dtypes.int32))


def _known(value: Any) -> Any:
    known = static_value(value) if isinstance(value, Tensor) else value
    return value if known is None else known


_SIZES, _FUNCTIONS = (
    {"Shape", "Size", "Rank"},
    {"Range", "Cast", "ConcatV2", "Pack", "Fill", "Equal", "NotEqual"},
)


def _value_while_building(x: Tensor) -> Any:
    """The value, if it is of constants, sizes and few functions of them: what TensorFlow 1.15 does not know
    while a program is built fails in the step.
    """
    pending = [x]
    while pending:
        node = pending.pop().op
        if node.type in _FUNCTIONS:
            pending += node.inputs
        elif node.type != "Const" and node.type not in _SIZES:
            return None
    return static_value(x)


def _fail_now(data: Sequence[Any]) -> None:
    raise errors.InvalidArgumentError(None, None, "\n".join(str(_known(value)) for value in data))


def _compare(
    symbol: str,
    compare: Callable[[Any, Any], Tensor],
    known_compare: Callable[[Any, Any], Any],
    default_name: str,
    x: Any,
    y: Any,
    data: Any,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Operation:
    with get_default_graph().name_scope(name or default_name):
        x, y = convert_to_tensor(x, name="x"), convert_to_tensor(y, name="y")
        if data is None:
            data = [
                f"Condition x {symbol} y did not hold element-wise:",
                f"x ({x.name}) = ",
                x,
                f"y ({y.name}) = ",
                y,
            ]
        if message is not None:
            data = [message, *data]
        condition = _all(compare(x, y))
        known = _value_while_building(x), _value_while_building(y)
        if isinstance(known[0], np.ndarray) and isinstance(known[1], np.ndarray):
            if not np.all(known_compare(*known)):
                _fail_now(data)
        return Assert(condition, data, summarize=summarize)


def assert_equal(
    x: Any,
    y: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """An operation that fails with InvalidArgumentError unless x == y everywhere (with broadcasting).

    `data`: values to show then in place of x and y; `summarize`: how many elements of each; `message`: a
    prefix. Raises InvalidArgumentError at once if both values are known and differ."""
    with get_default_graph().name_scope(name or "assert_equal"):
        if x is y:
            return no_op()
    return _compare("==", F.Equal, np.equal, "assert_equal", x, y, data, summarize, message, name)


def assert_none_equal(
    x: Any,
    y: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """As `assert_equal`, unless x != y everywhere."""
    return _compare("!=", F.NotEqual, np.not_equal, "assert_none_equal", x, y, data, summarize, message, name)


def assert_less(
    x: Any,
    y: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """As `assert_equal`, unless x < y everywhere."""
    return _compare("<", F.Less, np.less, "assert_less", x, y, data, summarize, message, name)


def assert_less_equal(
    x: Any,
    y: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """As `assert_equal`, unless x <= y everywhere."""
    return _compare(
        "<=", F.LessEqual, np.less_equal, "assert_less_equal", x, y, data, summarize, message, name
    )


def assert_greater(
    x: Any,
    y: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """As `assert_equal`, unless x > y everywhere."""
    return _compare(">", F.Greater, np.greater, "assert_greater", x, y, data, summarize, message, name)


def assert_greater_equal(
    x: Any,
    y: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """As `assert_equal`, unless x >= y everywhere."""
    return _compare(
        ">=", F.GreaterEqual, np.greater_equal, "assert_greater_equal", x, y, data, summarize, message, name
    )


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """As `assert_equal`, unless |x - y| < atol + rtol * |y| everywhere; both default to ten ulps of the type
    at one.
    """
    with get_default_graph().name_scope(name or "assert_near"):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base_dtype, name="y")
        kind = x.dtype.base_dtype.real_dtype
        tolerance = 10 * (2.0**-7 if kind is dtypes.bfloat16 else float(np.finfo(kind.as_numpy_dtype).eps))
        rtol = convert_to_tensor(tolerance if rtol is None else rtol, kind, name="rtol")
        atol = convert_to_tensor(tolerance if atol is None else atol, kind, name="atol")
        magnitude = F.ComplexAbs if x.dtype.is_complex else F.Abs
        bound = F.AddV2(atol, F.Mul(rtol, magnitude(y), name="mul"), name="add")
        if data is None:
            words = f"x and y not equal to tolerance rtol = {rtol}, atol = {atol}"
            data = [message or "", words, f"x ({x.name}) = ", x, f"y ({y.name}) = ", y]
        condition = _all(F.Less(magnitude(F.Sub(x, y, name="sub")), bound))
        return Assert(condition, data, summarize=summarize)


def _against_zero(
    words: str, check: Callable[..., Operation], zero_first: bool, default_name: str, x: Any, data: Any,
    summarize: int | None, message: str | None, name: str | None,
) -> Operation:  # fmt: skip
    with get_default_graph().name_scope(name or default_name):
        x = convert_to_tensor(x, name="x")
        if data is None:
            data = [message or "", words, f"x ({x.name}) = ", x]
            if words.endswith("<= 0 did not hold element-wise:"):  # one string in TensorFlow
                data = [data[0], data[1] + data[2], x]
        zero = convert_to_tensor(0, x.dtype.base_dtype)
        return check(*((zero, x) if zero_first else (x, zero)), data=data, summarize=summarize)


def assert_negative(
    x: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """As `assert_equal`, unless x < 0 everywhere."""
    words = "Condition x < 0 did not hold element-wise:"
    return _against_zero(words, assert_less, False, "assert_negative", x, data, summarize, message, name)


def assert_positive(
    x: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """As `assert_equal`, unless x > 0 everywhere."""
    words = "Condition x > 0 did not hold element-wise:"
    return _against_zero(words, assert_less, True, "assert_positive", x, data, summarize, message, name)


def assert_non_negative(
    x: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """As `assert_equal`, unless x >= 0 everywhere."""
    words = "Condition x >= 0 did not hold element-wise:"
    return _against_zero(
        words, assert_less_equal, True, "assert_non_negative", x, data, summarize, message, name
    )


def assert_non_positive(
    x: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """As `assert_equal`, unless x <= 0 everywhere."""
    words = "Condition x <= 0 did not hold element-wise:"
    return _against_zero(
        words, assert_less_equal, False, "assert_non_positive", x, data, summarize, message, name
    )


# ---- ranks


def _check_ranks(
    x: Any,
    ranks: Sequence[Any],
    words: str,
    holds: Callable[[int, Sequence[int]], bool],
    condition: Callable[[Tensor, list[Tensor]], Tensor],
    data: Any,
    summarize: int | None,
    message: str | None,
) -> Operation:
    tensors = [convert_to_tensor(rank, name="rank") for rank in ranks]
    for rank in tensors:
        assert_type(rank, dtypes.int32)
    known = [static_value(rank) for rank in tensors]
    size = shape_of(x) if data is None else None
    if any(isinstance(value, np.ndarray) and value.ndim for value in known):
        raise ValueError("Rank must be a scalar.")
    if x.ndim is not None and all(isinstance(value, np.ndarray) for value in known):
        numbers = tuple([int(value) for value in known])
        if not holds(x.ndim, numbers):
            shown = numbers if words.endswith(" in") else numbers[0]
            prefix = f"{message}. " if message else ""
            raise ValueError(
                f"{prefix}Tensor {x.name} must have {words} {shown}.  Received rank {x.ndim}, shape {x.shape}"
            )
        return no_op(name="static_checks_determined_all_ok")
    test = condition(F.Rank(x), tensors)
    unknown = [rank for rank, value in zip(tensors, known) if value is None]
    if unknown:
        checks = [
            assert_rank(rank, 0, data=["Rank must be a scalar. Received rank: ", F.Rank(rank)])
            for rank in unknown
        ]
        test = with_dependencies(checks, test)
    if data is None:
        data = [message or "", f"Tensor {x.name} must have {words}", *tensors, "Received shape: ", size]
    return Assert(test, data, summarize=summarize)


def assert_rank(
    x: Any,
    rank: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """An operation that fails with InvalidArgumentError unless x has this rank, an int32 scalar.

    ValueError at once if the static shape has another rank.
    """
    with get_default_graph().name_scope(name or "assert_rank"):
        x = convert_to_tensor(x, name="x")
        return _check_ranks(
            x, [rank], "rank", lambda n, wanted: n == wanted[0], lambda n, wanted: F.Equal(n, wanted[0]),
            data, summarize, message,
        )  # fmt: skip


def assert_rank_at_least(
    x: Any,
    rank: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """As `assert_rank`, unless x has this rank or a higher one."""
    with get_default_graph().name_scope(name or "assert_rank_at_least"):
        x = convert_to_tensor(x, name="x")
        return _check_ranks(
            x, [rank], "rank at least", lambda n, wanted: n >= wanted[0],
            lambda n, wanted: F.GreaterEqual(n, wanted[0]), data, summarize, message,
        )  # fmt: skip


def assert_rank_in(
    x: Any,
    ranks: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """As `assert_rank`, unless x has one of these ranks."""

    def condition(n: Tensor, wanted: list[Tensor]) -> Tensor:
        test = F.Equal(n, wanted[0])
        for rank in wanted[1:]:
            test = F.LogicalOr(test, F.Equal(n, rank))
        return test

    with get_default_graph().name_scope(name or "assert_rank_in"):
        x = convert_to_tensor(x, name="x")
        return _check_ranks(
            x, list(ranks), "rank in", lambda n, wanted: n in wanted, condition, data, summarize, message
        )


# ---- order


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """A bool scalar: whether x, flattened, never falls. An empty or single-element x never does."""
    with get_default_graph().name_scope(name or "is_non_decreasing"):
        return _all(_compared_neighbours(x, F.GreaterEqual))


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """A bool scalar: whether every element of x, flattened, is greater than the one before it."""
    with get_default_graph().name_scope(name or "is_strictly_increasing"):
        return _all(_compared_neighbours(x, F.Greater))


def _compared_neighbours(x: Any, compare: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """``compare(next, previous)`` for all neighbours in x, flattened; none if x has fewer than two
    elements.
    """
    if not is_numeric_tensor(x := convert_to_tensor(x, name="x")):
        raise TypeError(f"Expected x to be numeric, instead found: {x}")
    flat = F.Reshape(x, constant([-1], dtypes.int32, name="Reshape/shape"))
    is_short = F.Less(F.Size(flat), 2)
    steps = F.Sub(F.Shape(flat), constant([1], dtypes.int32, name="sub/y"), name="sub")

    def neighbours() -> Tensor:
        later = F.StridedSlice(flat, [1], F.AddV2([1], steps, name="add"), [1])
        return compare(later, F.StridedSlice(flat, [0], steps, [1]))

    return cond(is_short, lambda: constant([], dtypes.bool), neighbours)  # type: ignore[no-any-return]
