"""Reductions over axes: sums, means, products, extremes, norms, truth; their gradients and public functions.

Their kernels are in `reduction_calls.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, F, Gradients, OpDeclaration
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node, Output, static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant, zeros_like
from flowstone.ops.arrays.shapes import rank
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.arrays.shapes import size as size_of
from flowstone.ops.numbers.elementwise import ALL_NUMBERS, QUANTIZED, REAL, conjugate, constant_like
from flowstone.ops.numbers.reduction_calls import (
    axes_of,
    call_over,
    copy_call,
    extreme_calls,
    folded_extremes,
    folded_steps,
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


def _fold_steps(declaration: OpDeclaration, function: Callable[..., torch.Tensor]) -> None:
    """Where a host is to look for extremes along one axis, and ATen's vectors fit what follows it badly."""
    plain = declaration.kernels[CPU]

    @declaration.kernel(CPU)
    def _(node: Node, env: Environment) -> Kernel:
        dtype, given, shape = node.dtype(0), node.constant(1), node.static_shape(0)
        if given is None or shape is None or dtype not in (dtypes.float32, dtypes.float64) or given.size != 1:
            return plain(node, env)
        (axis,) = axes_of(given, len(shape))
        fold = folded_steps(shape, axis, dtype.size)
        if fold == 1 or env.device.type != "cpu":
            return plain(node, env)
        return Call(folded_extremes, function, X0, axis, node.attributes["keep_dims"], fold)


_fold_steps(max_op, torch.amax)
_fold_steps(min_op, torch.amin)


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


def _reduced_shape(shape: Tensor, axes: Tensor) -> Tensor:
    """The shape of what is reduced over the axes, had it kept its reduced dimensions: the nodes say so, which
    are TensorFlow's."""
    if axes.dtype is not dtypes.int32:
        axes = F.Cast(axes, DstT=dtypes.int32, name="Cast")
    rank = size_of(shape)
    axes = F.FloorMod(F.AddV2(axes, rank, name="add"), rank, name="mod")
    sizes = shape_of(axes)
    every = F.Range(np.int32(0), rank, np.int32(1), name="range")
    return F.DynamicStitch([every, axes], [shape, F.Fill(sizes, np.int32(1), name="Fill")])


def _repetitions(shape: Any, reduced: Any) -> Tensor:
    """How often each dimension of the reduced shape is repeated in `shape`."""
    return F.FloorDiv(shape, F.Maximum(reduced, np.int32(1), name="Maximum"), name="floordiv")


def _known_reduction(x: Tensor, axes: np.ndarray) -> tuple[Any, Any]:
    """`_reduced_shape` and `_repetitions` of known sizes, as arrays.

    TensorFlow finds them by nodes, which stay in the graph, unread, and remembers what it found.
    """
    shape, wanted = np.array(x.dims, np.int32), axes.astype(np.int32).ravel()
    reduced = shape.copy()
    reduced[positive_axes(wanted, len(shape))] = 1
    asked, question = get_default_graph().shapes_asked, ("reduce", x.dims, tuple(wanted.tolist()))
    if question not in asked:
        asked.add(question)
        sizes = constant(shape, name="Cast/x")
        given = constant(wanted if wanted.size else np.zeros(0, np.float32), name="Cast_1/x")
        if not wanted.size:
            given = F.Cast(given, DstT=dtypes.int32, name="Cast_1")
        _reduced_shape(sizes, given)
        _repetitions(shape, reduced)
    return reduced, shape // np.maximum(reduced, 1)


def _repeated(op: Operation, dy: Tensor) -> Tensor:
    """The gradient `dy` of each sum at each of its terms."""
    x, axes = op.inputs[0], op.constant(1)
    if x.dims is not None and axes is not None:
        known = None not in x.dims
        if np.array_equal(axes, np.arange(len(x.dims))):
            dy = F.Reshape(dy, np.ones(len(x.dims), np.int32))
            return F.Tile(dy, constant(np.array(x.dims, np.int32)) if known else F.Shape(x))
        if known:
            reduced, repetitions = _known_reduction(x, axes)
            return F.Tile(F.Reshape(dy, reduced), repetitions)
    shape = shape_of(x)
    with x.graph.colocate_with(shape.op):
        reduced = _reduced_shape(shape, op.inputs[1])
        repetitions = _repetitions(shape, reduced)
    return F.Tile(F.Reshape(dy, reduced), repetitions)


sum_op.gradient(lambda op, dy: (_repeated(op, dy), None))


@mean_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, y = op.inputs[0], op.outputs[0]
    dx = _repeated(op, dy)
    size, results = x.shape.num_elements(), y.shape.num_elements()
    if size is not None and results is not None:
        return F.RealDiv(dx, constant_like(size // max(results, 1), dx), name="truediv"), None
    sizes, kept = shape_of(x), shape_of(y)
    elements = F.Prod(sizes, constant(np.array([0], np.int32)))
    count = _repetitions(elements, F.Prod(kept, constant(np.array([0], np.int32))))
    return F.RealDiv(dx, F.Cast(count, DstT=dx.dtype), name="truediv"), None


@max_op.gradient
@min_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[0]
    reduced = _reduced_shape(shape_of(x), op.inputs[1])
    y, dy = F.Reshape(op.outputs[0], reduced), F.Reshape(dy, reduced)
    chosen = F.Cast(F.Equal(y, x), DstT=dy.dtype)
    ties = F.Reshape(F.Sum(chosen, op.inputs[1]), reduced)
    return F.Mul(F.RealDiv(chosen, ties, name="truediv"), dy, name="mul"), None


@prod_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """The products of all others, element by element, with the reduced axes in front as rows."""
    x = op.inputs[0]
    shape = shape_of(x)
    axes = F.Reshape(op.inputs[1], np.array([-1], np.int32))
    reduced = _reduced_shape(shape, op.inputs[1])
    repetitions = _repetitions(shape, reduced)
    dy = F.Tile(F.Reshape(dy, reduced), repetitions)
    count = rank(x)
    if axes.dtype is not dtypes.int32:
        axes = F.Cast(axes, DstT=dtypes.int32, name="Cast")
    axes = F.FloorMod(F.AddV2(axes, count, name="add"), count, name="mod")
    every = F.Range(np.int32(0), count, np.int32(1), name="range")
    others = F.ListDiff(every, axes)[0]
    order = F.ConcatV2([axes, others], np.int32(0), name="concat")
    rows = F.Prod(F.GatherV2(shape, axes, np.int32(0)), constant(np.array([0], np.int32)))
    columns = F.Prod(F.GatherV2(shape, others, np.int32(0)), constant(np.array([0], np.int32)))
    moved = F.Transpose(x, order, name="transpose")
    sizes = shape_of(moved)
    flat = F.Reshape(moved, [rows, columns])
    before = F.Cumprod(flat, np.int32(0), exclusive=True)
    products = F.Mul(before, F.Cumprod(flat, np.int32(0), exclusive=True, reverse=True), name="mul")
    products = F.Reshape(conjugate(products), sizes)
    back = F.Transpose(products, F.InvertPermutation(order), name="transpose")
    return F.Reshape(F.Mul(dy, back, name="mul"), shape), None


@euclidean_norm_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, y = op.inputs[0], op.outputs[0]
    if not op.attributes["keep_dims"]:
        reduced = _reduced_shape(shape_of(x), op.inputs[1])
        y, dy = F.Reshape(y, reduced), F.Reshape(dy, reduced)
    return F.Mul(x, F.RealDiv(dy, y, name="truediv"), name="mul"), None


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
