"""Reductions over axes: sums, means, products, extremes, norms, truth; their gradients and public functions.

Their kernels are in `reduction_calls.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, F, Gradients, OpDeclaration
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node, Output, static_value
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import zeros_like
from flowstone.ops.arrays.shapes import rank
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.numbers.elementwise import ALL_NUMBERS, QUANTIZED, REAL, conjugate, constant_like
from flowstone.ops.numbers.reduction_calls import (
    axes_of,
    call_over,
    copy_call,
    extreme_calls,
    magnitude_call,
    mean_call,
    norm_call,
    positive_axes,
    product_call,
    reduction,
    sum_call,
    truth_calls,
)

__all__ = [
    "count_nonzero",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
]

# ---- declarations

sum_op = reduction("Sum", ALL_NUMBERS, sum_call, copy_call)
mean_op = reduction("Mean", ALL_NUMBERS, mean_call, copy_call)
_mean_kernel = mean_op.kernels[CPU]


@mean_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    """Where the count is known, the sum over it: half the calls of ATen's mean and the same bits."""
    dtype, given, shape = node.dtype(0), node.constant(1), node.static_shape(0)
    if given is None or shape is None or dtype not in (dtypes.float32, dtypes.float64):
        return _mean_kernel(node, env)
    axes = axes_of(given, len(shape))
    count = int(np.prod([shape[axis] for axis in axes]))
    if not axes or not count:
        return _mean_kernel(node, env)
    total = call_over(dtype, axes, len(shape), node.attributes["keep_dims"], sum_call, copy_call)
    return Call(torch.Tensor.div_, total, torch.tensor(count, dtype=dtype.torch))


prod_op = reduction("Prod", ALL_NUMBERS, product_call, copy_call)
prod_op.sizes(lambda sizes, axes: np.multiply.reduce(sizes, axis=tuple(np.ravel(axes).tolist())))
euclidean_norm_op = reduction("EuclideanNorm", ALL_NUMBERS, norm_call, magnitude_call)


_ORDERED = (*REAL, *QUANTIZED)
max_op = reduction("Max", _ORDERED, extreme_calls(torch.amax), copy_call, check_size=True)
min_op = reduction("Min", _ORDERED, extreme_calls(torch.amin), copy_call, check_size=True)


all_op = reduction("All", None, truth_calls(torch.all), copy_call).no_gradient()
any_op = reduction("Any", None, truth_calls(torch.any), copy_call).no_gradient()


@prod_op.fold
@max_op.fold
@min_op.fold
@all_op.fold
@any_op.fold
def _over_no_axes(node: Node) -> Equal:
    axes = node.constant(1)
    return node.inputs[0] if axes is not None and axes.size == 0 else None


@sum_op.fold
@mean_op.fold
def _(node: Node) -> Equal:
    equal = _over_no_axes(node)
    return _of_one_number(node) if equal is None else equal


def _of_one_number(node: Node) -> Equal:
    """The sum or mean of a number that is everywhere, so many that no plan holds them."""
    dtype, shape, result = node.dtype(0), node.static_shape(0), node.outputs[0].static_shape
    if dtype not in (dtypes.float32, dtypes.float64) or not shape or result is None or 0 in shape:
        return None
    number = _everywhere(node.inputs[0])
    if number is None or not math.isfinite(number):
        return None
    count = math.prod(shape) // math.prod(result) if node.type == "Sum" else 1
    return np.full(result, number * count, dtype.as_numpy_dtype)


def _everywhere(x: Output) -> float | None:
    """The number that all elements are, as far as Fill nodes and their products say so."""
    if x.op.type == "Mul":
        x, y = x.op.inputs
        factors = _everywhere(x), _everywhere(y)
        return None if factors[0] is None or factors[1] is None else factors[0] * factors[1]
    value = x.op.constant(1) if x.op.type == "Fill" else static_value(x)
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else None


# ---- gradients


def _kept_shape(op: Operation) -> Tensor | np.ndarray:
    """The shape of the output had it kept its reduced dimensions: an array, or a tensor that the step
    computes.
    """
    x, axes = op.inputs[0].dims, op.constant(1)
    if x is not None and axes is not None:
        reduced = set(positive_axes(axes, len(x)))
        kept = [1 if i in reduced else size for i, size in enumerate(x)]
        if kept.count(None) <= 1:
            return np.array([-1 if size is None else size for size in kept], np.int32)
    shape = F.Shape(op.inputs[0])
    rank = F.Size(shape)
    indices = F.FloorMod(F.AddV2(F.Cast(op.inputs[1], DstT=dtypes.int32), rank), rank)
    indices = F.Reshape(indices, np.array([-1], np.int32))
    ones = F.Fill(F.Shape(indices), np.int32(1))
    every = F.Range(np.int32(0), rank, np.int32(1))
    return F.DynamicStitch([every, indices], [shape, ones])


def _full_shape(x: Tensor) -> Tensor | np.ndarray:
    """The shape of a tensor: an array where it is known, else a Shape node."""
    dims = x.dims
    return F.Shape(x) if dims is None or None in dims else np.array(dims, np.int32)


def _with_kept_dims(op: Operation, *values: Tensor) -> tuple[Tensor, ...]:
    """The values, shaped as the output, with the reduced dimensions as 1."""
    if op.attributes["keep_dims"]:
        return values
    shape = _kept_shape(op)
    return tuple([F.Reshape(value, shape) for value in values])


@sum_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[0]
    (dy,) = _with_kept_dims(op, dy)
    return F.BroadcastTo(dy, _full_shape(x)), None


@mean_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, y = op.inputs[0], op.outputs[0]
    size, results = x.shape.num_elements(), y.shape.num_elements()
    if size is not None and results is not None:
        factor = constant_like(size // max(results, 1), dy)
    else:
        count = F.FloorDiv(F.Size(x), F.Maximum(F.Size(y), np.int32(1)))
        factor = F.Cast(count, DstT=dy.dtype)
    (dy,) = _with_kept_dims(op, F.RealDiv(dy, factor))
    return F.BroadcastTo(dy, _full_shape(x)), None


@max_op.gradient
@min_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[0]
    y, dy = _with_kept_dims(op, op.outputs[0], dy)
    chosen = F.Cast(F.Equal(y, x), DstT=dy.dtype)
    ties = F.Reshape(F.Sum(chosen, op.inputs[1]), F.Shape(dy))
    return F.Mul(F.RealDiv(chosen, ties), dy), None


@prod_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, given = op.inputs[0], op.constant(1)
    (dy,) = _with_kept_dims(op, dy)
    dims = x.dims
    if dims is None or given is None:
        return _product_gradient_of_unknown(x, op.inputs[1], dy), None
    axes = positive_axes(given, len(dims))
    if len(axes) == 0:
        return dy, None
    if len(axes) == 1:
        return F.Mul(dy, conjugate(_products_of_others(x, np.int32(axes[0])))), None
    order = axes + [i for i in range(len(dims)) if i not in axes]
    moved = F.Transpose(x, np.array(order, np.int32))
    rows = F.Prod(
        F.GatherV2(F.Shape(moved), np.arange(len(axes), dtype=np.int32), np.int32(0)), np.array([0], np.int32)
    )
    return F.Mul(dy, conjugate(_others_of_rows(moved, rows, np.argsort(order).astype(np.int32)))), None


def _products_of_others(x: Tensor, axis: np.int32) -> Tensor:
    """For each element the product of all others along the axis."""
    return F.Mul(F.Cumprod(x, axis, exclusive=True), F.Cumprod(x, axis, exclusive=True, reverse=True))


def _others_of_rows(moved: Tensor, rows: Tensor, back: Tensor | np.ndarray) -> Tensor:
    """`_products_of_others` over the leading axes, `rows` elements together, with the axes moved `back`."""
    flat = F.Reshape(moved, F.Pack([rows, F.FloorDiv(F.Size(moved), F.Maximum(rows, np.int32(1)))]))
    return F.Transpose(F.Reshape(_products_of_others(flat, np.int32(0)), F.Shape(moved)), back)


def _product_gradient_of_unknown(x: Tensor, indices: Tensor, dy: Tensor) -> Tensor:
    rank = F.Rank(x)
    axes = F.Reshape(F.Cast(indices, DstT=dtypes.int32), np.array([-1], np.int32))
    axes = F.FloorMod(F.AddV2(axes, rank), rank)
    every = F.Range(np.int32(0), rank, np.int32(1))
    others = F.ListDiff(every, axes)[0]
    order = F.ConcatV2([axes, others], np.int32(0))
    rows = F.Prod(F.GatherV2(F.Shape(x), axes, np.int32(0)), np.array([0], np.int32))
    back = F.InvertPermutation(order)
    return F.Mul(dy, conjugate(_others_of_rows(F.Transpose(x, order), rows, back)))


@euclidean_norm_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[0]
    y, dy = _with_kept_dims(op, op.outputs[0], dy)
    return F.Mul(x, F.RealDiv(dy, y)), None


# ---- public functions


def _reduce(
    declaration: OpDeclaration,
    input_tensor: Any,
    axis: Any,
    keep_dims: bool,
    name: str | None,
    reduction_indices: Any,
) -> Tensor:
    if reduction_indices is not None:
        if axis is not None:
            raise ValueError("Can't specify both 'axis' and 'reduction_indices'.")
        axis = reduction_indices
    result = declaration(input_tensor, _axes(input_tensor, axis), keep_dims=bool(keep_dims), name=name)
    if axis is None and not keep_dims:
        result.set_shape(())  # also where the rank is unknown, and with it the axes
    return result


def _axes(x: Any, axis: Any) -> Any:
    """The axes to give to an op; for None all of them, as a constant where the rank of a tensor is known."""
    if axis is not None:
        return axis
    if isinstance(x, Tensor) and x.ndim is not None:
        return convert_to_tensor(np.arange(x.ndim, dtype=np.int32), name="Const")
    return F.Range(np.int32(0), rank(x), np.int32(1), name="range")


def reducer(declaration: OpDeclaration, what: str) -> Callable[..., Tensor]:
    """The public function over a reduction; `what` begins its docstring."""

    def reduce(
        input_tensor: Any,
        axis: Any = None,
        keep_dims: bool = False,
        name: str | None = None,
        reduction_indices: Any = None,
        keepdims: bool | None = None,
    ) -> Tensor:
        if keepdims is not None:
            keep_dims = keepdims
        return _reduce(declaration, input_tensor, axis, keep_dims, name, reduction_indices)

    reduce.__doc__ = f"""{what} over `axis`: an int, a list of them, or None for all.

    `keep_dims` (or `keepdims`) keeps the reduced dimensions with size 1; `reduction_indices` is an old name
    of `axis`. ValueError for an axis that does not exist, and for both names at once.
    """
    return reduce


reduce_sum = reducer(sum_op, "The sum")
reduce_mean = reducer(mean_op, "The mean (of integers rounded towards zero)")
reduce_prod = reducer(prod_op, "The product")
reduce_max = reducer(max_op, "The maximum")
reduce_min = reducer(min_op, "The minimum")
reduce_all = reducer(all_op, "Whether all are true")
reduce_any = reducer(any_op, "Whether any is true")
for _name in (
    "reduce_sum",
    "reduce_mean",
    "reduce_prod",
    "reduce_max",
    "reduce_min",
    "reduce_all",
    "reduce_any",
):
    globals()[_name].__name__ = globals()[_name].__qualname__ = _name
    globals()[_name] = dispatched(_name)(globals()[_name])


def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keep_dims: bool = False,
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """log(sum(exp(x))) over `axis` without overflow; the other arguments are those of `reduce_sum`."""
    keep_dims = keep_dims if keepdims is None else keepdims
    axis = reduction_indices if axis is None else axis
    x = convert_to_tensor(input_tensor, name="input_tensor")
    with x.graph.name_scope(name or "ReduceLogSumExp"):
        highest = reduce_max(x, axis, True)
        shift = F.StopGradient(F.Select(F.IsFinite(highest), highest, zeros_like(highest)))
        result = F.Log(reduce_sum(F.Exp(F.Sub(x, shift)), axis, keep_dims))
        if not keep_dims:
            shift = F.Reshape(shift, shape_of(result))
        return F.Add(result, shift)


def count_nonzero(
    input_tensor: Any,
    axis: Any = None,
    keep_dims: bool = False,
    dtype: Any = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """How many elements are not zero (of strings, not empty) over `axis`, as `dtype`."""
    keep_dims = keep_dims if keepdims is None else keepdims
    axis = reduction_indices if axis is None else axis
    x, dtype = convert_to_tensor(input_tensor, name="input_tensor"), dtypes.as_dtype(dtype)
    with x.graph.name_scope(name or "count_nonzero"):
        zero = b"" if x.dtype.base_dtype is dtypes.string else x.dtype.as_numpy_dtype(0)
        zero = convert_to_tensor(zero, x.dtype.base_dtype, name="zeros")
        count = reduce_sum(F.Cast(F.NotEqual(x, zero), DstT=dtypes.int64), axis, keep_dims)
        return count if dtype is dtypes.int64 else F.Cast(count, DstT=dtype)
