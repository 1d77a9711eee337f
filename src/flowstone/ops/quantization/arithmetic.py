"""Sums, products and requantised numbers of quantised integers.

Every quantised tensor comes with the ends of its range. Products are computed exactly, in the integers less
the one that stands for zero; their range is the one whose step is the product of the steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.numbers.elementwise import broadcast_shape
from flowstone.ops.quantization.integer_arithmetic import product_of_integers, sum_of_integers
from flowstone.ops.quantization.ranges import (
    Levels,
    added_range,
    narrowed,
    product_range,
    requantized,
    require_scalars,
    scalar,
    scalars,
    to_floats,
    wide,
)

__all__ = ["quantized_concat"]

QUANTIZED = dtypes.QUANTIZED
_TO_OUTPUT = "Toutput: type in [qint8, quint8, qint16, quint16, qint32] = qint32"
_XY = "x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float"
_HOST_XY = ("min_x", "max_x", "min_y", "max_y", "min_z", "max_z")


# ---- sums and products of elements

add_op, mul_op = (
    op(
        name,
        f"{_XY} -> z: Toutput, min_z: float, max_z: float",
        _TO_OUTPUT,
        T1=QUANTIZED,
        T2=QUANTIZED,
        commutative=True,
        host=_HOST_XY,
        capturable=False,
        cost=6.0,
    )
    for name in ("QuantizedAdd", "QuantizedMul")
)


def _infer_both(node: Node) -> Shapes:
    require_scalars(node, 2, 3, 4, 5)
    return [broadcast_shape(node), (), ()]


def _pair(node: Node, values: Any, first: int = 0) -> tuple[Levels, Levels]:
    """The levels of inputs `first` and the one after it; `values` are the ends of both."""
    names = [argument.name for argument in node.declaration.inputs[2:6]]
    numbers = [scalar(value, name) for value, name in zip(values, names)]
    for i in (0, 2):
        if numbers[i] > numbers[i + 1]:
            raise invalid(f"`{names[i + 1]}` must not be below `{names[i]}`: {numbers[i + 1]}, {numbers[i]}")
    return Levels(node.dtype(first), *numbers[:2]), Levels(node.dtype(first + 1), *numbers[2:])


@add_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(x: torch.Tensor, y: torch.Tensor, *ends: torch.Tensor) -> list[torch.Tensor]:
        first, second = _pair(node, ends)
        total = added_range(first, second, 14)
        return [sum_of_integers(x, y, first, second, total), *scalars(total.low, total.high)]

    return run


@mul_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(x: torch.Tensor, y: torch.Tensor, *ends: torch.Tensor) -> list[torch.Tensor]:
        first, second = _pair(node, ends)
        total = product_range(first, second)
        return [product_of_integers(x, y, first, second), *scalars(total.low, total.high)]

    return run


for _each in (add_op, mul_op):
    _each.infer(_infer_both)
    _each.no_gradient()


# ---- products of matrices

matmul_op = op(
    "QuantizedMatMul",
    "a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float -> "
    "out: Toutput, min_out: float, max_out: float",
    f"{_TO_OUTPUT} ; transpose_a: bool = false ; transpose_b: bool = false ; "
    "Tactivation: type in [qint8, quint8, qint16, quint16, qint32] = quint8",
    T1=QUANTIZED,
    T2=QUANTIZED,
    host=("min_a", "max_a", "min_b", "max_b", "min_out", "max_out"),
    cost=work.product,
)


@matmul_op.infer
def _(node: Node) -> Shapes:
    require_scalars(node, 2, 3, 4, 5)
    sides: list[Any] = []
    for i, name in ((0, "transpose_a"), (1, "transpose_b")):
        dims = node.dims(i)
        if dims is not None and len(dims) != 2:
            raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}")
        dims = (None, None) if dims is None else dims
        sides.append(dims[::-1] if node.attributes[name] else dims)
    a, b = sides
    if None not in (a[1], b[0]) and a[1] != b[0]:
        raise ValueError(f"Dimensions must be equal, but are {a[1]} and {b[0]}")
    return [(a[0], b[1]), (), ()]


def exact_product(function: Callable[..., Any], x: torch.Tensor, y: torch.Tensor, terms: int) -> torch.Tensor:
    """A sum of so many products of small integers, computed in floats that hold it exactly."""
    # On a GPU float32 convolutions and products may keep fewer bits.
    if x.device.type == "cpu" and max(int(x.abs().max()), 1) * max(int(y.abs().max()), 1) * terms < 2**24:
        return function(x.float(), y.float()).to(torch.int64)  # type: ignore[no-any-return]
    return function(x.double(), y.double()).to(torch.int64)  # type: ignore[no-any-return]


@matmul_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    turns = [node.attributes[name] for name in ("transpose_a", "transpose_b")]

    def run(a: torch.Tensor, b: torch.Tensor, *ends: torch.Tensor) -> list[torch.Tensor]:
        first, second = _pair(node, ends)
        if a.dim() != 2 or b.dim() != 2:
            raise invalid(f"In[0] and In[1] must be matrices: {list(a.shape)}, {list(b.shape)}")
        a, b = (each.t() if turn else each for each, turn in zip((a, b), turns))
        if a.shape[1] != b.shape[0]:
            raise invalid(f"Matrix size-incompatible: In[0]: {list(a.shape)}, In[1]: {list(b.shape)}")
        total = product_range(first, second)
        ends_out = scalars(total.low, total.high)
        if not a.numel() or not b.numel():
            return [a.new_zeros(a.shape[0], b.shape[1], dtype=torch.int32), *ends_out]
        x, y = wide(a) - first.zero, wide(b) - second.zero
        return [narrowed(exact_product(torch.matmul, x, y, a.shape[1]), dtypes.qint32), *ends_out]

    return run


matmul_op.no_gradient()


# ---- other ranges

_TO_TYPE = "out_type: type in [qint8, quint8, qint16, quint16, qint32]"
_GIVEN = "input: Tinput, input_min: float, input_max: float"
_OUTPUTS = "output: out_type, output_min: float, output_max: float"
_HOST = ("input_min", "input_max", "output_min", "output_max")

range_op = op(
    "RequantizationRange",
    f"{_GIVEN} -> output_min: float, output_max: float",
    Tinput=QUANTIZED,
    host=_HOST,
    capturable=False,
    cost=1.0,
)
requantize_op = op(
    "Requantize",
    f"{_GIVEN}, requested_output_min: float, requested_output_max: float -> {_OUTPUTS}",
    _TO_TYPE,
    Tinput=QUANTIZED,
    host=(*_HOST, "requested_output_min", "requested_output_max"),
    capturable=False,
    cost=4.0,
)
shrink_op = op(
    "QuantizeDownAndShrinkRange",
    f"{_GIVEN} -> {_OUTPUTS}",
    _TO_TYPE,
    Tinput=QUANTIZED,
    host=_HOST,
    capturable=False,
    cost=5.0,
)


_COMPARED = frozenset({torch.int8, torch.uint8, torch.int16, torch.int32})  # by ATen as they are


def used_range(x: torch.Tensor, levels: Levels) -> tuple[float, float]:
    """The range from the least to the largest number of `x`, with zero in it."""
    if not x.numel():
        return 0.0, 0.0
    least, largest = (x if x.dtype in _COMPARED else wide(x)).aminmax()
    least, largest = wide(least), wide(largest)
    low, high = to_floats(torch.stack([least, largest]), levels).tolist()
    return min(low, 0.0), max(high, 0.0)


@range_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> list[torch.Tensor]:
        levels = Levels(node.dtype(0), scalar(low, "input_min"), scalar(high, "input_max"))
        return scalars(*used_range(x, levels))

    return run


@requantize_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(x: torch.Tensor, *ends: torch.Tensor) -> list[torch.Tensor]:
        names = ("input_min", "input_max", "requested_output_min", "requested_output_max")
        low, high, least, largest = (scalar(value, name) for value, name in zip(ends, names))
        if least > 0:
            raise invalid(f"requested_output_min must be <= 0, but got {least}")
        if largest < least:
            raise invalid(
                f"requested_output_max must be >= requested_output_min, but got {largest} and {least}"
            )
        new = Levels(node.outputs[0].dtype, least, largest)
        return [requantized(x, Levels(node.dtype(0), low, high), new), *scalars(least, largest)]

    return run


@shrink_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> list[torch.Tensor]:
        old = Levels(node.dtype(0), scalar(low, "input_min"), scalar(high, "input_max"))
        new = Levels(node.outputs[0].dtype, *used_range(x, old))
        return [requantized(x, old, new), *scalars(new.low, new.high)]

    return run


@range_op.infer
def _(node: Node) -> Shapes:
    require_scalars(node, 1, 2)
    return [(), ()]


def _infer_same(node: Node) -> Shapes:
    require_scalars(node, *range(1, len(node.inputs)))
    return [node.dims(0), (), ()]


requantize_op.infer(_infer_same)
shrink_op.infer(_infer_same)
for _each in (range_op, requantize_op, shrink_op):
    _each.no_gradient()


# ---- arrays of quantised numbers

concat_op = op(
    "QuantizedConcat",
    "concat_dim: int32, values: N*T, input_mins: N*float, input_maxes: N*float -> "
    "output: T, output_min: float, output_max: float",
    "N: int >= 2",
    T=None,
    host=("concat_dim", "input_mins", "input_maxes", "output_min", "output_max"),
    cost=4.0,
)
reshape_op = op(
    "QuantizedReshape",
    "tensor: T, shape: Tshape, input_min: float, input_max: float -> "
    "output: T, output_min: float, output_max: float",
    "Tshape: type in [int32, int64] = int32",
    T=None,
    host=("shape", "input_min", "input_max", "output_min", "output_max"),
    aliases=(0, 2, 3),
    free=True,
)


@concat_op.infer
def _(node: Node) -> Shapes:
    count = node.attributes["N"]
    require_scalars(node, *range(1 + count, 1 + 3 * count))
    known, dims = node.constant(0), [node.dims(1 + i) for i in range(count)]
    ranks = {len(each) for each in dims if each is not None}
    if len(ranks) > 1:
        raise ValueError(f"Shapes must be equal rank, but are {sorted(ranks)}")
    if not ranks:
        return [None, (), ()]
    (rank,) = ranks
    if known is None:
        return [(None,) * rank, (), ()]
    return [_joined(dims, int(known), rank), (), ()]


def _joined(dims: list[Dims], axis: int, rank: int) -> Dims:
    if not -rank <= axis < rank:
        raise ValueError(f"Expected concatenating dimensions in the range [{-rank}, {rank}), but got {axis}")
    result: list[int | None] = []
    for i in range(rank):
        sizes = [None if each is None else each[i] for each in dims]
        if i == axis % rank:
            result.append(None if None in sizes else sum(size for size in sizes if size is not None))
            continue
        known = {size for size in sizes if size is not None}
        if len(known) > 1:
            raise ValueError(f"Dimension {i} in both shapes must be equal, but are {sorted(known)}")
        result.append(next(iter(known), None))
    return tuple(result)


@concat_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    count, dtype = node.attributes["N"], node.outputs[0].dtype

    def run(axis: torch.Tensor, *rest: torch.Tensor) -> list[torch.Tensor]:
        values, ends = rest[:count], [scalar(value, "input_mins") for value in rest[count:]]
        lows, highs = ends[:count], ends[count:]
        place, rank = int(axis), values[0].dim()
        if not -rank <= place < rank:
            raise invalid(f"concat_dim must be in the range [{-rank}, {rank}), but got {place}")
        for value in values:
            if [n for i, n in enumerate(value.shape) if i != place % rank] != [
                n for i, n in enumerate(values[0].shape) if i != place % rank
            ]:
                raise invalid(f"shapes must agree but along {place}: {[list(each.shape) for each in values]}")
        low, high = min(0.0, *lows), max(highs)
        if not dtype.is_quantized or (len(set(lows)) == 1 and len(set(highs)) == 1 and low == lows[0]):
            return [torch.cat(list(values), place), *scalars(low, high)]
        new = Levels(dtype, low, high)
        parts = [
            value if (first, last) == (low, high) else requantized(value, Levels(dtype, first, last), new)
            for value, first, last in zip(values, lows, highs)
        ]
        return [torch.cat(parts, place), *scalars(low, high)]

    return run


@reshape_op.infer
def _(node: Node) -> Shapes:
    require_scalars(node, 2, 3)
    sizes = node.constant_dims(1)
    if sizes is None:
        return [None, (), ()]
    count = math.prod(known) if (known := node.static_shape(0)) is not None else None
    rest = math.prod([n for n in sizes if n is not None and n >= 0])
    open_sizes = [n for n in sizes if n is None or n < 0]
    if count is None or len(open_sizes) > 1 or not rest or count % rest:
        return [tuple([None if n is None or n < 0 else n for n in sizes]), (), ()]
    return [tuple([count // rest if n is None or n < 0 else n for n in sizes]), (), ()]


@reshape_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(x: Any, shape: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> list[Any]:
        sizes = shape.tolist()
        try:
            return [x.reshape(sizes), low, high]
        except (RuntimeError, ValueError):
            raise invalid(
                f"Input to reshape is a tensor with {x.numel()} values, but the requested shape is {sizes}"
            ) from None

    return run


concat_op.no_gradient()
reshape_op.no_gradient()


def quantized_concat(
    concat_dim: Any, values: Any, input_mins: Any, input_maxes: Any, name: str | None = None
) -> Any:
    """(the joined integers, their least number, their largest), over the widest range of all.

    Args:
        concat_dim: int32 scalar, the dimension along which two or more tensors are joined.
        values: tensors of one quantised type, equal in all other dimensions.
        input_mins, input_maxes: float32 scalars, the ends of each tensor's range.
    """
    return concat_op.several(concat_dim, values, input_mins, input_maxes, name=name)


# ---- a bias

bias_add_op = op(
    "QuantizedBiasAdd",
    "input: T1, bias: T2, min_input: float, max_input: float, min_bias: float, max_bias: float -> "
    "output: out_type, min_out: float, max_out: float",
    _TO_TYPE,
    T1=QUANTIZED,
    T2=QUANTIZED,
    host=("min_input", "max_input", "min_bias", "max_bias", "min_out", "max_out"),
    capturable=False,
    cost=6.0,
)


@bias_add_op.infer
def _(node: Node) -> Shapes:
    require_scalars(node, 2, 3, 4, 5)
    dims, bias = node.dims(0), node.dims(1)
    if bias is not None and len(bias) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(bias)}")
    if dims is not None and not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if dims and bias and bias[0] is not None:
        if dims[-1] not in (None, bias[0]):
            raise ValueError(f"Dimensions must be equal, but are {bias[0]} and {dims[-1]}")
        dims = (*dims[:-1], bias[0])
    return [dims, (), ()]


@bias_add_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.outputs[0].dtype

    def run(x: torch.Tensor, bias: torch.Tensor, *ends: torch.Tensor) -> list[torch.Tensor]:
        first, second = _pair(node, ends)
        if x.dim() < 2 or bias.dim() != 1 or bias.shape[0] != x.shape[-1]:
            raise invalid(
                f"Must provide as many biases as the last dimension of the input: {list(bias.shape)}, "
                f"{list(x.shape)}"
            )
        total = added_range(first, second, 17)
        parts = requantized(x, first, total), requantized(bias, second, total)
        if not 0 < total.step < math.inf:
            parts = wide(parts[0]), wide(parts[1])
        elif dtype.torch is torch.int32:  # which both, of a 2^17th of the range, do not leave
            return [parts[0].add_(parts[1]), *scalars(total.low, total.high)]
        return [narrowed(parts[0] + parts[1], dtype), *scalars(total.low, total.high)]

    return run


bias_add_op.no_gradient()
