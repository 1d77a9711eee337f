"""Reading and writing by index: gather, scatter into a new tensor, one-hot, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework import dtypes
from flowstone.framework.composite import IndexedSlices
from flowstone.framework.kernel import CPU, GPU, X0, X1, Call
from flowstone.framework.operation import F, op
from flowstone.framework.scope import get_default_graph
from flowstone.framework.shape import is_compatible, merge
from flowstone.framework.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays import boxed, in_signed, invalid, is_text, product, replaced, sizes_of
from flowstone.ops.constants import constant
from flowstone.ops.joining import concat
from flowstone.ops.shapes import reshape, shape, size, squeeze

__all__ = ["batch_gather", "boolean_mask", "gather", "gather_nd", "one_hot", "scatter_nd", "sequence_mask"]

_INDEX = (dtypes.int32, dtypes.int64)

# ---- Gather

gather_v1_op = op(
    "Gather",
    "params: Tparams, indices: Tindices -> output: Tparams",
    "validate_indices: bool = true",
    Tparams=None,
    Tindices=_INDEX,
)


@gather_v1_op.infer
def _(node):
    params, indices = node.dims(0), node.dims(1)
    if params == ():
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    return None if params is None or indices is None else (*indices, *params[1:])


@gather_v1_op.kernel(CPU, GPU)
def _(node, env):
    return _gather_kernel(node, 0, 0)


@gather_v1_op.gradient
def _(op, dy):
    return _gather_slices(op, dy), None


gather_op = op(
    "GatherV2",
    "params: Tparams, indices: Tindices, axis: Taxis -> output: Tparams",
    "batch_dims: int = 0",
    Tparams=None,
    Tindices=(dtypes.int16, *_INDEX),
    Taxis=_INDEX,
    host=["axis"],
)


@gather_op.infer
def _(node):
    params, indices, axis = node.dims(0), node.dims(1), node.constant(2)
    batch = node.attributes["batch_dims"]
    if params is None or indices is None:
        return None
    batch = batch + len(indices) if batch < 0 else batch
    if axis is None:
        return (None,) * (len(params) + len(indices) - 1 - batch)
    at = int(axis)
    if not -len(params) <= at < len(params):
        raise ValueError(f"Shape must be at least rank {at + 1 if at >= 0 else -at} but is rank {len(params)}")
    at %= len(params)
    leading = params[:at]
    if batch:
        leading = (*merge(params[:batch], indices[:batch]), *params[batch:at])
    return (*leading, *indices[batch:], *params[at + 1 :])


@gather_op.kernel(CPU, GPU)
def _(node, env):
    axis, batch = node.constant(2), node.attributes["batch_dims"]
    if axis is not None:
        return _gather_kernel(node, int(axis), batch)
    return lambda params, indices, at: _gather(params, indices, _gather_axis(int(at), params.ndim), batch)


def _gather_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise invalid(f"Expected axis in the range [{-rank}, {rank}), but got {axis}")
    return axis % rank


def _gather_kernel(node: Any, axis: int, batch: int) -> Any:
    params, indices = node.dims(0), node.dims(1)
    if is_text(node):
        return lambda params, indices, *_: _gather_text(params, indices, axis)
    if not batch and params is not None and indices is not None and node.dtype(1) is not dtypes.int16:
        if len(indices) == 1:
            return Call(torch.index_select, X0, axis, X1)
        if len(params) == 2 and axis == 0 and indices and node.dtype(0).is_floating:
            return Call(torch.embedding, X0, X1)
    function = lambda params, indices, *_: _gather(params, indices, _gather_axis(axis, params.ndim), batch)  # noqa: E731
    return in_signed(node.dtype(0), function, 0) if batch else function


def _gather_text(params: Any, indices: Any, axis: int) -> Any:
    places = indices.numpy()
    if places.size and not 0 <= places.min() <= places.max() < params.shape[axis]:
        raise invalid(f"indices = {places.tolist()} is not in [0, {params.shape[axis]})")
    return boxed(np.take(params, places, axis))


def _gather(params: Any, indices: Any, axis: int, batch: int) -> Any:
    batch = batch + indices.ndim if batch < 0 else batch
    sizes, flat = params.shape, indices.reshape(-1)
    if flat.dtype is torch.int16:
        flat = flat.long()
    if not batch:
        return torch.index_select(params, axis, flat).reshape([*sizes[:axis], *indices.shape, *sizes[axis + 1 :]])
    batches = product(sizes[:batch])
    before, after = product(sizes[batch:axis]), product(sizes[axis + 1 :])
    count = product(indices.shape[batch:])
    table = params.reshape(batches, before, sizes[axis], after)
    places = indices.long().reshape(batches, 1, count, 1).expand(batches, before, count, after)
    result = torch.gather(table, 2, places)
    return result.reshape([*sizes[:axis], *indices.shape[batch:], *sizes[axis + 1 :]])


def _gather_slices(op: Any, dy: Any) -> Any:
    """The gradient of a gather along the first dimension: the gathered slices and where they came from."""
    params, indices = op.inputs[0], op.inputs[1]
    with params.graph.colocate_with(params):
        whole = shape(params, out_type=dtypes.int64)
        whole = F.Cast(whole, DstT=dtypes.int32)
    dims = indices._dims
    if dims is not None and len(dims) == 1:
        return IndexedSlices(convert_to_tensor(dy), indices, whole)
    count = F.ExpandDims(size(indices), 0)
    values = reshape(convert_to_tensor(dy), concat([count, whole[1:]], 0))
    return IndexedSlices(values, reshape(indices, count), whole)


@gather_op.gradient
def _(op, dy):
    axis, batch, indices = op.constant(2), op.attributes["batch_dims"], op.inputs[1]
    if batch < 0:
        batch += len(indices._dims)
    if axis is not None and int(axis) == 0 and not batch:
        return _gather_slices(op, dy), None, None
    return _gather_sum(op, convert_to_tensor(dy), batch), None, None


def _gather_sum(op: Any, dy: Any, batch: int) -> Any:
    """The gradient along any dimension, by sums over equal indices.

    params count as [batches, before, n, after], so `dy` as [batches, before, places, after].
    """
    params, indices, axis = op.inputs
    sizes, places = shape(params), shape(indices)
    at = F.FloorMod(F.Cast(axis, DstT=dtypes.int32), F.Rank(params))
    after_at = F.AddV2(at, 1)
    n = F.Reshape(F.Slice(sizes, F.Pack([at]), [1]), [])
    batches = F.Prod(F.Slice(sizes, [0], [batch]), [0])
    before = F.Prod(F.Slice(sizes, [batch], F.Pack([F.Sub(at, batch)])), [0])
    after = F.Prod(F.Slice(sizes, F.Pack([after_at]), [-1]), [0])
    count = F.Prod(F.Slice(places, [batch], [-1]), [0])
    moved = F.Transpose(F.Reshape(dy, F.Pack([batches, before, count, after])), [0, 2, 1, 3])
    rows = F.Reshape(moved, F.Pack([F.Mul(batches, count), before, after]))
    matrix = F.Reshape(F.Cast(indices, DstT=dtypes.int32), F.Pack([batches, count]))
    offsets = F.ExpandDims(F.Mul(F.Range(0, batches, 1), n), 1)
    summed = F.UnsortedSegmentSum(rows, F.Reshape(F.AddV2(matrix, offsets), [-1]), F.Mul(batches, n))
    whole = F.Transpose(F.Reshape(summed, F.Pack([batches, n, before, after])), [0, 2, 1, 3])
    return F.Reshape(whole, sizes)


# ---- GatherNd and ScatterNd

gather_nd_op = op(
    "GatherNd",
    "params: Tparams, indices: Tindices -> output: Tparams",
    Tparams=None,
    Tindices=(dtypes.int16, *_INDEX),
)


@gather_nd_op.infer
def _(node):
    params, indices = node.dims(0), node.dims(1)
    if indices == ():
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if params is None or indices is None or indices[-1] is None:
        return None
    if indices[-1] > len(params):
        raise ValueError(f"indices.shape[-1] must be <= params.rank, but saw indices shape: {indices} and params shape: {params}")
    return (*indices[:-1], *params[indices[-1] :])


@gather_nd_op.kernel(CPU, GPU)
def _(node, env):
    return _gather_nd_text if is_text(node) else _gather_nd


def _gather_nd(params: Any, indices: Any) -> Any:
    depth = indices.shape[-1]
    if depth > params.ndim:
        raise invalid(f"index innermost dimension length must be <= params rank; saw: {depth} vs. {params.ndim}")
    outer, rest = indices.shape[:-1], params.shape[depth:]
    table = params.reshape([product(params.shape[:depth]), *rest])
    return torch.index_select(table, 0, _flat_places(indices, params.shape[:depth])).reshape([*outer, *rest])


def _flat_places(indices: Any, sizes: Any) -> Any:
    """Row-major positions of index tuples [..., depth] as a vector. InvalidArgumentError outside `sizes`."""
    if len(sizes) == 1:
        return indices.reshape(-1).long()  # the caller checks it
    flat = torch.zeros(indices.shape[:-1], dtype=torch.int64, device=indices.device)
    for n, column in zip(sizes, indices.unbind(-1)):
        if indices.device.type == "cpu" and column.numel() and not 0 <= int(column.min()) <= int(column.max()) < n:
            raise invalid(f"indices[...] does not index into shape {list(sizes)}")
        flat = flat * n + column
    return flat.reshape(-1)


def _gather_nd_text(params: Any, indices: Any) -> Any:
    places = indices.numpy()
    columns = tuple(np.moveaxis(places, -1, 0))
    for n, column in zip(params.shape, columns):
        if column.size and not 0 <= column.min() <= column.max() < n:
            raise invalid(f"indices = {column.tolist()} does not index into param shape {list(params.shape)}")
    return boxed(params[columns])


@gather_nd_op.gradient
def _(op, dy):
    params, indices = op.inputs
    whole = shape(params, out_type=indices.dtype.base_dtype)
    dims = indices._dims
    if dims is not None and len(dims) == 2 and dims[-1] == 1:
        return IndexedSlices(dy, squeeze(indices, -1), whole), None
    return F.ScatterNd(indices, dy, whole), None


scatter_nd_op = op(
    "ScatterNd",
    "indices: Tindices, updates: T, shape: Tindices -> output: T",
    "bad_indices_policy: string = ''",
    T=None,
    Tindices=(dtypes.int16, *_INDEX),
    host=["shape"],
)


@scatter_nd_op.infer
def _(node):
    indices, updates, dims = node.dims(0), node.dims(1), sizes_of(node, 2)
    if dims is None or indices is None or updates is None or not indices or indices[-1] is None:
        return dims
    depth, outer = indices[-1], len(indices) - 1
    if not is_compatible(indices[:-1], updates[:outer]):
        raise ValueError(f"Dimensions [0,{outer}) of indices{indices} must match dimensions of updates{updates}")
    if not is_compatible(dims[depth:], updates[outer:]):
        raise ValueError(f"Dimensions [{depth},{len(dims)}) of input{dims} must match dimensions of updates{updates}")
    return dims


@scatter_nd_op.kernel(CPU, GPU)
def _(node, env):
    return in_signed(node.dtype(1), _scatter_nd, 1)


def _scatter_nd(indices: Any, updates: Any, shape: Any) -> Any:
    sizes = shape.tolist()
    depth, rest = indices.shape[-1], sizes[indices.shape[-1] :]
    if [*indices.shape[:-1], *rest] != list(updates.shape):
        raise invalid(f"Must have updates.shape = indices.shape[:-1] + shape[{depth}:], got {list(updates.shape)}")
    result = torch.zeros(product(sizes[:depth]), *rest, dtype=updates.dtype, device=updates.device)
    places = _flat_places(indices, sizes[:depth])
    return result.index_add_(0, places, updates.reshape(len(places), *rest)).reshape(sizes)


@scatter_nd_op.gradient
def _(op, dy):
    return None, F.GatherNd(dy, op.inputs[0]), None


# ---- OneHot

one_hot_op = op(
    "OneHot",
    "indices: TI, depth: int32, on_value: T, off_value: T -> output: T",
    "axis: int = -1 ; TI: type in [uint8, int8, int32, int64] = int64",
    T=None,
    host=["depth"],
)
one_hot_op.not_differentiable()


@one_hot_op.infer
def _(node):
    dims, depth, axis = node.dims(0), node.constant(1), node.attributes["axis"]
    if axis < -1:
        raise ValueError("axis must be >= -1")
    count = None if depth is None else int(depth)
    if count is not None and count < 0:
        raise ValueError(f"Dimension size, given by scalar input 1, must be non-negative but is {count}")
    if dims is None:
        return None
    if axis > len(dims):
        return None  # the step will say so
    at = len(dims) if axis == -1 else axis
    return (*dims[:at], count, *dims[at:])


@one_hot_op.kernel(CPU, GPU)
def _(node, env):
    axis, text = node.attributes["axis"], is_text(node, 2)

    def one_hot(indices: Any, depth: Any, on: Any, off: Any) -> Any:
        count = int(depth)
        if count < 0:
            raise invalid(f"depth must be non-negative, got: {count}")
        if axis > indices.ndim:
            raise invalid(f"Expected axis to be -1 or between [0, {indices.ndim + 1}). But received: {axis}")
        at = indices.ndim if axis == -1 else axis
        places = torch.arange(count, device=indices.device).reshape([count] + [1] * (indices.ndim - at))
        hot = indices.unsqueeze(at) == places
        return np.where(hot.numpy(), on, off) if text else torch.where(hot, on, off)

    return one_hot


# ---- public functions


def gather(
    params: Any, indices: Any, validate_indices: Any = None, name: str | None = None, axis: Any = None, batch_dims: int = 0
) -> Tensor:
    """The slices of `params` at `indices` (int32 or int64, any shape) along `axis`.

    The shape is params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]. The first `batch_dims`
    dimensions are common to both. A step raises InvalidArgumentError for an index out of range.
    """
    return gather_op(params, indices, batch_dims if axis is None else axis, batch_dims=batch_dims, name=name)  # type: ignore[no-any-return]


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """Gathers along the last dimension of `indices`, whose other dimensions are common with `params`."""
    indices = convert_to_tensor(indices, name="indices")
    depth = indices.shape.ndims
    if depth is None:
        raise ValueError("batch_gather does not allow indices with unknown shape.")
    return gather(params, indices, name=name, axis=depth - 1, batch_dims=depth - 1)


def gather_nd(
    params: Any, indices: Any, name: str | None = None, batch_dims: int = 0, bad_indices_policy: str = ""
) -> Tensor:
    """The slices of `params` at index tuples ``indices[..., :]``, which index its first dimensions."""
    if batch_dims:
        raise ValueError("gather_nd with batch_dims is not available here: use gather with batch_dims.")
    return gather_nd_op(params, indices, name=name)  # type: ignore[no-any-return]


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of shape `shape` with `updates` added at index tuples ``indices[..., :]``."""
    return scatter_nd_op(indices, updates, shape, name=name)  # type: ignore[no-any-return]


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """`on_value` (1) at ``indices`` along a new dimension of size `depth` at `axis` (-1: last), elsewhere `off_value` (0).

    The type is `dtype`, else that of the values, else float32. TypeError if they disagree.
    """
    with get_default_graph().name_scope(name or "one_hot") as scope:
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        given = []
        for what, value in (("on_value", on_value), ("off_value", off_value)):
            tensor = None if value is None else convert_to_tensor(value, preferred_dtype=wanted)
            if tensor is not None and wanted is not None and tensor.dtype.base_dtype is not wanted:
                raise TypeError(f"dtype {tensor.dtype.base_dtype!r} of {what} does not match dtype parameter {wanted!r}")
            given.append(tensor)
        on, off = given
        if on is not None and off is not None and on.dtype.base_dtype is not off.dtype.base_dtype:
            raise TypeError(f"dtype {on.dtype!r} of on_value does not match dtype {off.dtype!r} of off_value")
        wanted = wanted or next((t.dtype.base_dtype for t in given if t is not None), dtypes.float32)
        on = constant(1, wanted, name="on_value") if on is None else on
        off = constant(0, wanted, name="off_value") if off is None else off
        return one_hot_op(indices, depth, on, off, axis=-1 if axis is None else axis, name=scope)  # type: ignore[no-any-return]


def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: int | None = None) -> Tensor:
    """The elements (slices) of `tensor` where `mask` is true: [K, ...].

    `mask`: bool, of known rank above 0; its shape equals the dimensions of `tensor` from `axis` (0) on.
    Raises ValueError for a scalar mask, a mask of unknown rank, or shapes that do not fit.
    """
    with get_default_graph().name_scope(name or "boolean_mask"):
        tensor = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        depth, at = mask.shape.ndims, axis or 0
        if depth == 0:
            raise ValueError("mask cannot be scalar.")
        if depth is None:
            raise ValueError("Number of mask dimensions must be specified, even if some dimensions are None.")
        if at < 0 and tensor.shape.ndims is not None:
            at += tensor.shape.ndims
        tensor.shape[at : at + depth].assert_is_compatible_with(mask.shape)
        count = F.Prod(shape(tensor)[at : at + depth], [0])
        flat = reshape(tensor, concat([shape(tensor)[:at], F.Pack([count]), shape(tensor)[at + depth :]], 0))
        if tensor.shape.ndims is not None and at + depth <= tensor.shape.ndims:
            part = tensor._dims[at : at + depth]
            flat.set_shape(replaced(tensor._dims[:at] + (None,) + tensor._dims[at + depth :], at, None if None in part else product(part)))
        places = squeeze(F.Where(reshape(mask, [-1])), axis=[1])
        return gather(flat, places, axis=at)


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool, name: str | None = None) -> Tensor:
    """For each length a row of `maxlen` (the largest length if None) elements, the first `length` of them true (1).

    Shape lengths.shape + [maxlen]. ValueError if `maxlen` is no scalar.
    """
    with get_default_graph().name_scope(name or "SequenceMask"):
        lengths = convert_to_tensor(lengths)
        kind = lengths.dtype.base_dtype
        if maxlen is None:
            every = constant(np.arange(lengths.shape.ndims or 0, dtype=np.int32)) if lengths.shape.ndims is not None else F.Range(0, F.Rank(lengths), 1)
            maxlen = F.Maximum(constant(0, kind), F.Max(lengths, every))
        else:
            maxlen = convert_to_tensor(maxlen)
        if maxlen.shape.ndims not in (None, 0):
            raise ValueError("maxlen must be scalar for sequence_mask")
        row = F.Range(constant(0, maxlen.dtype.base_dtype), maxlen, constant(1, maxlen.dtype.base_dtype))
        matrix = F.Cast(F.ExpandDims(lengths, -1), DstT=maxlen.dtype.base_dtype)
        result = F.Less(row, matrix)
        wanted = dtypes.as_dtype(dtype)
        return result if wanted is dtypes.bool else F.Cast(result, DstT=wanted)  # type: ignore[no-any-return]
