"""Comparisons, logic and choice by a condition, element by element; results of comparisons are bool.

Nothing compares equal to NaN. `where` with two values chooses by element, or by row where the condition is
a vector.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import broadcast, merge
from flowstone.ops.arrays.choosing import choice
from flowstone.ops.arrays.constants import zeros, zeros_like
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.numbers.elementwise import (
    ALL_NUMBERS,
    REAL,
    broadcast_shape,
    same_shape,
    undone,
)
from flowstone.ops.numbers.unsigned_integers import needs_help, ordered

__all__ = [
    "equal", "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_not", "logical_or",
    "logical_xor", "not_equal",
]  # fmt: skip


# The most elements of which comparisons into numbers, which ATen has vectorised, and from there into truth
# values are faster than comparisons into truth values.
_INTO_NUMBERS = {torch.float32: 2**20, torch.int32: 2**20, torch.float16: 2**40, torch.bfloat16: 2**40}
_LEAST = 2**14


def _compared(node: Node, env: Environment, function: Callable[..., torch.Tensor], *operands: Any) -> Call:
    dtype, dims = node.dtype(0).torch, node.outputs[0].static_shape
    operands = operands or (X0, X1)
    plain = Call(function, *operands)
    if env.device.type != "cpu" or dtype not in _INTO_NUMBERS or dims is None:
        return plain
    if not _LEAST <= math.prod(dims) <= _INTO_NUMBERS[dtype]:
        return plain
    numbers = Call(function, *operands, out=Call(torch.empty, dims, dtype=dtype))
    return Call(torch.Tensor.to, numbers, torch.bool)


def _with_number(dtype: DType, function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """`function(x, y)` where y may be a Python number: a loop's counter, which comes again in every run.

    ATen takes twice as long for a number as for a tensor, which it makes of it.
    """
    kind = dtype.torch
    if dtype not in (dtypes.int32, dtypes.int64):
        return ordered(dtype, function)

    def compare(x: torch.Tensor, y: Any, **keywords: Any) -> torch.Tensor:
        return function(x, y if isinstance(y, torch.Tensor) else _counter(y, kind), **keywords)

    compare.__name__ = function.__name__
    return compare


@functools.lru_cache(4096)
def _counter(value: int, dtype: torch.dtype) -> torch.Tensor:
    """The number as a tensor on the host, which nobody changes."""
    return torch.tensor(value, dtype=dtype)


def _comparison(
    name: str, function: Callable[..., torch.Tensor], mirrored: Callable[..., torch.Tensor]
) -> OpDeclaration:
    """Declares an order; `mirrored` is the same of (y, x): ATen takes a number as its second."""
    declaration = op(name, "x: T, y: T -> z: bool", T=REAL, numbers=["x", "y"])
    declaration.infer(broadcast_shape)

    def either(x: Any, y: Any) -> torch.Tensor:
        if isinstance(y, torch.Tensor) and not isinstance(x, torch.Tensor):
            return mirrored(y, x)
        return function(torch.as_tensor(x), y)

    either.__name__ = function.__name__

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dtype, x, y = node.dtype(0), node.dims(0), node.dims(1)
        if x == () and y is not None and y != ():
            return _compared(node, env, _with_number(dtype, mirrored), X1, X0)
        if x == ():
            return _compared(node, env, ordered(dtype, either))
        return _compared(node, env, (_with_number if y == () else ordered)(dtype, function))

    return declaration.not_differentiable()


less_op = _comparison("Less", torch.lt, torch.gt)
less_equal_op = _comparison("LessEqual", torch.le, torch.ge)
greater_op = _comparison("Greater", torch.gt, torch.lt)
greater_equal_op = _comparison("GreaterEqual", torch.ge, torch.le)
less_op.number("{0} < {1}")
less_equal_op.number("{0} <= {1}")
greater_op.number("{0} > {1}")
greater_equal_op.number("{0} >= {1}")
less_op.sizes(np.less)
less_equal_op.sizes(np.less_equal)
greater_op.sizes(np.greater)
greater_equal_op.sizes(np.greater_equal)


def _compare_bytes(function: Callable[..., np.ndarray]) -> Callable[..., torch.Tensor]:
    def compare(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.asarray(function(x, y), dtype=bool))

    return compare


def _equality(
    name: str, function: Callable[..., torch.Tensor], of_strings: Callable[..., np.ndarray], otherwise: bool
) -> OpDeclaration:
    """Declares Equal or NotEqual; `otherwise` is the answer for shapes that do not fit, where these are no
    error.
    """
    declaration = op(
        name, "x: T, y: T -> z: bool", "incompatible_shape_error: bool = true", T=None, commutative=True
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        if node.attributes["incompatible_shape_error"]:
            return broadcast(node.dims(0), node.dims(1))
        if None in (node.static_shape(0), node.static_shape(1)):
            return None
        try:
            return broadcast(node.dims(0), node.dims(1))
        except ValueError:
            return ()

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        compare = _compare_bytes(of_strings) if node.dtype(0) is dtypes.string else function
        if node.attributes["incompatible_shape_error"]:
            return compare if compare is not function else _compared(node, env, function)

        def compare_leniently(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            try:
                broadcast(tuple(x.shape), tuple(y.shape))
            except ValueError:
                return torch.full((), otherwise, device=env.device)  # no copy
            return compare(x, y)

        return compare_leniently

    return declaration.not_differentiable()


equal_op = _equality("Equal", torch.eq, np.equal, False)
not_equal_op = _equality("NotEqual", torch.ne, np.not_equal, True)
equal_op.number("{0} == {1}")
equal_op.sizes(np.equal)
not_equal_op.sizes(np.not_equal)
not_equal_op.number("{0} != {1}")

approximate_equal_op = op(
    "ApproximateEqual", "x: T, y: T -> z: bool", "tolerance: float = 1e-05", T=ALL_NUMBERS, commutative=True
)
approximate_equal_op.infer(lambda node: merge(node.dims(0), node.dims(1)))
approximate_equal_op.not_differentiable()


@approximate_equal_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    tolerance = node.attributes["tolerance"]

    def compare(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.shape != y.shape:
            raise errors.InvalidArgumentError(
                None, None, f"x and y must be of the same shape. x: {list(x.shape)}. y: {list(y.shape)}"
            )
        if needs_help(node.dtype(0)):
            x, y = x.to(torch.float64), y.to(torch.float64)
        return torch.lt(torch.abs(torch.sub(x, y)), tolerance)

    return compare


# ---- logic


def _logic(name: str, function: Callable[..., torch.Tensor]) -> OpDeclaration:
    declaration = op(name, "x: bool, y: bool -> z: bool", commutative=True)
    declaration.infer(broadcast_shape)
    declaration.kernel(CPU, GPU)(lambda node, env: Call(function, X0, X1))
    return declaration.not_differentiable()


logical_and_op = _logic("LogicalAnd", torch.logical_and)
logical_or_op = _logic("LogicalOr", torch.logical_or)
logical_and_op.fold(lambda node: _other_side(node, True))
logical_or_op.fold(lambda node: _other_side(node, False))
logical_and_op.number("{0} and {1}")
logical_or_op.number("{0} or {1}")
logical_not_op = op("LogicalNot", "x: bool -> y: bool")
logical_not_op.infer(same_shape)
logical_not_op.kernel(CPU, GPU)(lambda node, env: Call(torch.logical_not, X0))
logical_not_op.number("not {0}")
logical_not_op.not_differentiable()
logical_not_op.fold(undone)


def _other_side(node: Node, neutral: bool) -> Equal:
    """The side of a junction whose other side is known, and neutral everywhere."""
    for i in (0, 1):
        known, other = node.constant(i), node.inputs[1 - i]
        if known is not None and known.size and node.dims(1 - i) == node.outputs[0].dims:
            if bool((known == neutral).all()) and None not in (other.dims or (None,)):
                return other
    return None


# ---- choice

select_op = op(
    "Select",
    "condition: bool, t: T, e: T -> output: T",
    T=None,
    by_element=True,
    later_names={"x": "t", "y": "e"},
)
select_v2_op = op("SelectV2", "condition: bool, t: T, e: T -> output: T", T=None, by_element=True)


@select_op.infer
def _(node: Node) -> Shapes:
    dims = merge(node.dims(1), node.dims(2))
    condition = node.dims(0)
    if condition is None or dims is None or condition == ():
        return dims
    if len(condition) == 1 and len(dims) != 1:
        if not dims:
            raise ValueError(f"Shapes must be equal rank, but are 0 and 1: condition {condition} of scalars")
        merge(condition, dims[:1])
        return dims
    return merge(condition, dims)


@select_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if node.dtype(1).torch is None:
        return _choose_objects
    condition, t, e = (node.static_shape(i) for i in range(3))
    if t is None or t != e or condition is None:
        return _choose
    if len(condition) == 1 < len(t) and condition == t[:1]:
        condition = condition + (1,) * (len(t) - 1)
    elif condition not in ((), t):
        return _choose
    return choice(node, env, condition)


def _fit(condition: torch.Tensor, t: torch.Tensor | np.ndarray, e: torch.Tensor | np.ndarray) -> torch.Tensor:
    """The condition in a shape that broadcasts to the values. InvalidArgumentError where it does not fit
    them.
    """
    if t.shape != e.shape:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"'then' and 'else' must have the same size. but received: {list(t.shape)} vs. {list(e.shape)}",
        )
    rank, size = condition.ndim, list(condition.shape)
    if rank == 1 and t.ndim > 1 and size[0] == t.shape[0]:
        return condition.reshape(size + [1] * (t.ndim - 1))
    if rank and condition.shape != t.shape:
        raise errors.InvalidArgumentError(
            None,
            None,
            "condition must have the shape of the values or be a vector of their first dimension, but are: "
            f"{size} vs. {list(t.shape)}",
        )
    return condition


def _choose(condition: torch.Tensor, t: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
    return torch.where(_fit(condition, t, e), t, e)


def _as_numpy(condition: torch.Tensor) -> np.ndarray:
    return condition.cpu().numpy()


def _choose_objects(condition: torch.Tensor, t: np.ndarray, e: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(_as_numpy(_fit(condition, t, e)), t, e), dtype=object)


@select_v2_op.infer
def _(node: Node) -> Shapes:
    return broadcast(node.dims(0), broadcast(node.dims(1), node.dims(2)))


@select_v2_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if node.dtype(1).torch is None:
        return lambda condition, t, e: np.asarray(np.where(_as_numpy(condition), t, e), dtype=object)
    return choice(node, env, node.static_shape(0))


@select_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    condition = op.inputs[0]
    zero = zeros_like(op.inputs[1])
    return None, F.Select(condition, dy, zero), F.Select(condition, zero, dy)


@select_v2_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    condition, *sides = op.inputs
    zero = zeros((), dy.dtype.base_dtype)
    chosen = F.SelectV2(condition, dy, zero)
    sizes, whole = shape_of(sides[0]), shape_of(op.outputs[0])
    flows: list[Tensor | None] = [None, _kept_sum(chosen, sizes, whole)]
    chosen = F.SelectV2(condition, zero, dy)
    return [*flows, _kept_sum(chosen, shape_of(sides[1]), whole)]


def _kept_sum(dz: Tensor, sizes: Tensor, whole: Tensor) -> Tensor:
    axes, _ = F.BroadcastGradientArgs(sizes, whole)
    return F.Reshape(F.Sum(dz, axes, keep_dims=True), sizes)


@select_op.fold
def _(node: Node) -> Equal:
    """Of a condition that is the same everywhere, the side that it chooses: where no step can find that the
    sides do not fit.
    """
    condition, dims = node.constant(0), node.static_shape(1)
    if condition is None or not condition.size or condition.any() != condition.all():
        return None
    return node.inputs[1 if condition.all() else 2] if dims is not None and dims == node.dims(2) else None


# ---- public functions


@dispatched("binary")
def equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x == y, element-wise with broadcasting."""
    return equal_op(x, y, name=name)


@dispatched("binary")
def not_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x != y, element-wise with broadcasting."""
    return not_equal_op(x, y, name=name)


@dispatched("binary")
def less(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x < y, element-wise with broadcasting."""
    return less_op(x, y, name=name)


@dispatched("binary")
def less_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x <= y, element-wise with broadcasting."""
    return less_equal_op(x, y, name=name)


@dispatched("binary")
def greater(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x > y, element-wise with broadcasting."""
    return greater_op(x, y, name=name)


@dispatched("binary")
def greater_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x >= y, element-wise with broadcasting."""
    return greater_equal_op(x, y, name=name)


@dispatched("binary")
def logical_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x and y, element-wise with broadcasting, of bool."""
    return logical_and_op(x, y, name=name)


@dispatched("binary")
def logical_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x or y, element-wise with broadcasting, of bool."""
    return logical_or_op(x, y, name=name)


@dispatched("unary")
def logical_not(x: Any, name: str | None = None) -> Tensor:
    """not x, element-wise, of bool."""
    return logical_not_op(x, name=name)


@dispatched("binary")
def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    """x or y but not both, element-wise with broadcasting, of bool."""
    return logical_and_op(logical_or_op(x, y), logical_not_op(logical_and_op(x, y)), name=name)


def select(condition: Any, x: Any, y: Any, name: str | None = None) -> Tensor:
    """x where the condition holds, y elsewhere; both of one shape.

    `condition`: bool of that shape, a vector that chooses rows, or a scalar. This is ``tf.where`` of three
    arguments.
    """
    return select_op(condition, x, y, name=name)
