"""Reading and writing by index: gather, scatter into a new tensor, one-hot, masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradient, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import is_compatible, merge
from flowstone.ops.arrays.arrays import (
    boxed,
    in_signed,
    invalid,
    is_handle,
    is_text,
    places_by_code,
    product,
    sizes_of,
    unboxing,
)
from flowstone.ops.arrays.columns import picked_columns
from flowstone.ops.arrays.gather_sums import gather_sum
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.row_additions import add_rows
from flowstone.ops.arrays.shapes import reshape, shape, size, squeeze
from flowstone.ops.numbers.unsigned_integers import needs_help
from flowstone.ops.variables.scatter import elements_by_code, rows_or_zeros

__all__ = ["batch_gather", "gather", "scatter_nd"]

_INDEX = (dtypes.int32, dtypes.int64)
_FEW_INDICES = 64  # up to which Python checks and counts them faster than ATen

# ---- Gather

gather_v1_op = op(
    "Gather",
    "params: Tparams, indices: Tindices -> output: Tparams",
    "validate_indices: bool = true",
    Tparams=None,
    Tindices=_INDEX,
    rows=work.first_output,
)


@gather_v1_op.infer
def _(node: Node) -> Shapes:
    params, indices = node.dims(0), node.dims(1)
    if params == ():
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    return None if params is None or indices is None else (*indices, *params[1:])


@gather_v1_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return _gather_kernel(node, env, 0, 0)


@gather_v1_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return _gather_slices(op, dy), None


gather_op = op(
    "GatherV2",
    "params: Tparams, indices: Tindices, axis: Taxis[] -> output: Tparams",
    "batch_dims: int = 0",
    Tparams=None,
    Tindices=(dtypes.int16, *_INDEX),
    Taxis=_INDEX,
    moves=True,
    host=["axis"],
    rows=work.first_output,
)


@gather_op.infer
def _(node: Node) -> Shapes:
    params, indices, axis = node.dims(0), node.dims(1), node.constant(2)
    batch = node.attributes["batch_dims"]
    if params is not None and axis is not None and not -len(params) <= axis < len(params):
        least = int(axis) + 1 if axis >= 0 else -int(axis)
        raise ValueError(f"Shape must be at least rank {least} but is rank {len(params)}")
    if params is None or indices is None:
        return None
    batch = batch + len(indices) if batch < 0 else batch
    if axis is None:
        return (None,) * int(len(params) + len(indices) - 1 - batch)
    at = int(axis) % len(params)
    leading = params[:at]
    if batch:
        leading = (*(merge(params[:batch], indices[:batch]) or ()), *params[batch:at])
    return (*leading, *indices[batch:], *params[at + 1 :])


@gather_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    axis, batch = node.constant(2), node.attributes["batch_dims"]
    if axis is not None:
        return _gather_kernel(node, env, int(axis), batch)
    if is_text(node):
        return lambda params, indices, at: _gather_text(params, indices, int(at), batch)
    return in_signed(node.dtype(0), lambda params, indices, at: _gather(params, indices, int(at), batch), 0)


def _gather_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise invalid(f"Expected axis in the range [{-rank}, {rank}), but got {axis}")
    return axis % rank


def _gather_kernel(node: Node, env: Environment, axis: int, batch: int) -> Kernel:
    params, indices = node.dims(0), node.dims(1)
    if is_text(node):
        return lambda params, indices, *_: _gather_text(params, indices, axis, batch)
    if is_handle(node):
        return unboxing(lambda params, indices, *_: _gather_text(params, indices, axis, batch))
    if env.device.type != "cpu" and not batch and axis == 0 and node.dtype(1) is not dtypes.int16:
        return lambda params, indices, *_: rows_or_zeros(params, indices)
    if (
        not batch
        and params is not None
        and indices is not None
        and node.dtype(1) is not dtypes.int16
        and not needs_help(node.dtype(0))
    ):
        if len(indices) == 1:
            is_last = env.device.type == "cpu" and len(params) > 1 and axis in (-1, len(params) - 1)
            return Call(picked_columns, X0, X1) if is_last else Call(torch.index_select, X0, axis, X1)
        if len(params) == 2 and axis == 0 and indices and node.dtype(0).is_floating:
            return Call(torch.embedding, X0, X1)
    function = lambda params, indices, *_: _gather(params, indices, axis, batch)  # noqa: E731
    return in_signed(node.dtype(0), function, 0)


def _gather_text(params: Any, indices: Any, axis: int, batch: int) -> Any:
    if batch:  # of each batch's own: the places of what is gathered
        places = torch.arange(params.size).view(params.shape)
        return boxed(params.reshape(-1)[_gather(places, indices, axis, batch).numpy()])
    places, axis = indices.numpy(), _gather_axis(axis, params.ndim)
    if places.size and not 0 <= places.min() <= places.max() < params.shape[axis]:
        raise invalid(f"indices = {places.tolist()} is not in [0, {params.shape[axis]})")
    return boxed(np.take(params, places, axis))


def _gather(params: Any, indices: Any, axis: int, batch: int) -> Any:
    axis, batch = _gather_axis(axis, params.ndim), batch + indices.ndim if batch < 0 else batch
    sizes, flat = params.shape, indices.reshape(-1)
    if flat.dtype is torch.int16:
        flat = flat.long()
    if not batch:
        is_last = axis == params.ndim - 1
        found = picked_columns(params, flat) if is_last else torch.index_select(params, axis, flat)
        return found.reshape([*sizes[:axis], *indices.shape, *sizes[axis + 1 :]])
    batches = product(sizes[:batch])
    before, after = product(sizes[batch:axis]), product(sizes[axis + 1 :])
    count = product(indices.shape[batch:])
    table = params.reshape(batches, before, sizes[axis], after)
    places = indices.long().reshape(batches, 1, count, 1).expand(batches, before, count, after)
    result = torch.gather(table, 2, places)
    return result.reshape([*sizes[:axis], *indices.shape[batch:], *sizes[axis + 1 :]])


def _gather_slices(op: Operation, dy: Any) -> Gradient:
    """The gradient of a gather along the first dimension: the gathered slices and where they came from."""
    params, indices = op.inputs[0], op.inputs[1]
    with params.graph.colocate_with(params):
        whole = F.Cast(shape(params, out_type=dtypes.int64), DstT=dtypes.int32)
    return slices_of(dy, indices, whole)


def slices_of(dy: Any, indices: Tensor, whole: Tensor) -> IndexedSlices:
    """The gradient `dy` of rows at `indices` as slices of a tensor of shape `whole`."""
    count = F.ExpandDims(size(indices), np.int32(0))
    return IndexedSlices(reshape(dy, concat([count, whole[1:]], 0)), reshape(indices, count), whole)


@gather_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    axis, batch, indices = op.constant(2), op.attributes["batch_dims"], op.inputs[1]
    if batch < 0:
        batch += len(indices.known_dims)
    if axis is not None and int(axis) == 0 and not batch:
        return _gather_slices(op, dy), None, None
    return gather_sum(op, convert_to_tensor(dy), batch), None, None


# ---- GatherNd and ScatterNd

gather_nd_op = op(
    "GatherNd",
    "params: Tparams, indices: Tindices -> output: Tparams",
    Tparams=None,
    Tindices=(dtypes.int16, *_INDEX),
    rows=work.first_output,
)


@gather_nd_op.infer
def _(node: Node) -> Shapes:
    params, indices = node.dims(0), node.dims(1)
    if indices == ():
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if params is None or indices is None or indices[-1] is None:
        return None
    if indices[-1] > len(params):
        saw = f"indices shape: {indices} and params shape: {params}"
        raise ValueError(f"indices.shape[-1] must be <= params.rank, but saw {saw}")
    return (*indices[:-1], *params[indices[-1] :])


@gather_nd_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if is_text(node):
        return _gather_nd_text
    return _with_known_tuples(node, env) or in_signed(node.dtype(0), _gather_nd, 0)


def _with_known_tuples(node: Node, env: Environment) -> Callable[..., Any] | None:
    """The kernel where few indices are constant and within a known shape: rows by their numbers."""
    indices, dims, result = node.constant(1), node.static_shape(0), node.outputs[0].static_shape
    if indices is None or not dims or 0 in dims or result is None or not 0 < indices.size <= _FEW_INDICES:
        return None
    depth = indices.shape[-1]
    sizes = dims[:depth]
    if (indices < 0).any() or (indices >= np.array(sizes)).any():
        return None  # which the step says
    places = torch.from_numpy(np.array(_row_numbers(indices, sizes))).to(env.device)
    table = (product(sizes), *dims[depth:])

    def pick(params: Any, _: Any) -> Any:
        return torch.index_select(params.reshape(table), 0, places).reshape(result)

    return in_signed(node.dtype(0), pick, 0)


def _row_numbers(indices: Any, sizes: tuple[int, ...]) -> Any:
    """The row-major numbers of tuples within these sizes."""
    tuples = np.moveaxis(indices.reshape(-1, len(sizes)).astype(np.int64), 1, 0)
    return np.ravel_multi_index(tuple(tuples), sizes)


def _gather_nd(params: Any, indices: Any) -> Any:
    depth = indices.shape[-1]
    if not params.ndim:
        raise invalid("params must be at least a vector")
    if depth > params.ndim:
        raise invalid(
            f"index innermost dimension length must be <= params rank; saw: {depth} vs. {params.ndim}"
        )
    outer, rest = indices.shape[:-1], params.shape[depth:]
    if not params.numel() and product(outer):
        raise invalid(
            f"Requested more than 0 entries, but params is empty. Params shape: {list(params.shape)}"
        )
    found = elements_by_code(params, indices)
    if found is not None:
        return found
    table = params.reshape([product(params.shape[:depth]), *rest])
    return torch.index_select(table, 0, flat_places(indices, params.shape[:depth])).reshape([*outer, *rest])


def flat_places(indices: Any, sizes: Any) -> Any:
    """Row-major positions of index tuples [..., depth] as a vector. InvalidArgumentError outside `sizes`."""
    if len(sizes) == 1:
        return indices.reshape(-1).long()  # the caller checks it
    if indices.device.type != "cpu":
        return _flat_places(indices, sizes).reshape(-1)
    if indices.numel() <= _FEW_INDICES:
        return _few_places(indices, sizes)
    found = places_by_code(indices, sizes)
    if found is not None:
        return found
    for n, column in zip(sizes, indices.unbind(-1)):
        low, high = torch.aminmax(column)
        if not 0 <= int(low) <= int(high) < n:
            raise _outside(list(sizes), indices)
    return _flat_places(indices, sizes).reshape(-1)


def _flat_places(indices: Any, sizes: Any) -> Any:
    columns = indices.unbind(-1)
    if not columns:
        return torch.zeros(indices.shape[:-1], dtype=torch.int64, device=indices.device)
    flat = columns[0].long()
    for n, column in zip(sizes[1:], columns[1:]):
        flat = torch.add(column, flat, alpha=n)
    return flat


def _few_places(indices: Any, sizes: Any) -> Any:
    """The same of so few indices that Python is faster."""
    places = []
    for row in indices.reshape(product(indices.shape[:-1]), indices.shape[-1]).tolist():
        place = 0
        for n, i in zip(sizes, row):
            if not 0 <= i < n:
                raise _outside(list(sizes), indices)
            place = place * n + i
        places.append(place)
    return torch.tensor(places, dtype=torch.int64)


def _outside(sizes: list[int], indices: Any) -> Exception:
    """The error that names the first index outside of `sizes`."""
    rows = indices.reshape(-1, indices.shape[-1])
    limits = torch.tensor(sizes[: rows.shape[1]], device=rows.device)
    bad = int(((rows < 0) | (rows >= limits)).any(1).nonzero()[0])
    return invalid(f"indices[{bad}] = {rows[bad].tolist()} does not index into shape {sizes}")


def _gather_nd_text(params: Any, indices: Any) -> Any:
    places = indices.numpy()
    columns = tuple(np.moveaxis(places, -1, 0))
    for n, column in zip(params.shape, columns):
        if column.size and not 0 <= column.min() <= column.max() < n:
            raise invalid(f"indices = {column.tolist()} does not index into param shape {list(params.shape)}")
    return boxed(params[columns])


@gather_nd_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    params, indices = op.inputs
    whole = shape(params, out_type=indices.dtype.base_dtype)
    dims = indices.dims
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
def _(node: Node) -> Shapes:
    indices, updates, dims = node.dims(0), node.dims(1), sizes_of(node, 2)
    if () in (indices, updates):
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    given = [x for x in (indices, updates) if x is not None and None not in x and 0 not in x]
    if dims is not None and 0 in dims and given:
        raise ValueError(f"Indices and updates specified for empty output shape {dims}")
    if indices is None or updates is None or dims is None or indices[-1] is None:
        return dims
    depth, outer = indices[-1], len(indices) - 1
    if not is_compatible(indices[:-1], updates[:outer]):
        raise ValueError(
            f"Dimensions [0,{outer}) of indices{indices} must match dimensions of updates{updates}"
        )
    if not is_compatible(dims[depth:], updates[outer:]):
        raise ValueError(
            f"Dimensions [{depth},{len(dims)}) of input{dims} must match dimensions of updates{updates}"
        )
    return dims


@scatter_nd_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return in_signed(node.dtype(1), _scatter_nd, 1)


def _scatter_nd(indices: Any, updates: Any, shape: Any) -> Any:
    sizes = shape.tolist()
    depth, rest = indices.shape[-1], sizes[indices.shape[-1] :]
    if [*indices.shape[:-1], *rest] != list(updates.shape):
        raise invalid(
            f"Must have updates.shape = indices.shape[:-1] + shape[{depth}:], got {list(updates.shape)}"
        )
    if 0 in sizes and (indices.numel() or updates.numel()):
        raise invalid(f"Indices and updates specified for empty output shape {sizes}")
    result = torch.zeros(product(sizes[:depth]), *rest, dtype=updates.dtype, device=updates.device)
    places = flat_places(indices, sizes[:depth])
    try:
        return add_rows(result, places, updates.reshape(len(places), *rest)).reshape(sizes)
    except (IndexError, RuntimeError) as error:
        if ((places < 0) | (places >= len(result))).any():
            raise _outside(sizes, indices) from error
        raise


@scatter_nd_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return None, F.GatherNd(dy, op.inputs[0]), None


# ---- public functions


@dispatched("gather")
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """The slices of `params` at `indices` (int32 or int64, any shape) along `axis`.

    The shape is params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]. The first
    `batch_dims` dimensions are common to both. A step raises InvalidArgumentError for an index out of range.
    """
    if axis is None:
        axis = batch_dims
    by_rows = not isinstance(axis, Tensor) and np.ndim(axis) == 0 and axis == 0 and batch_dims == 0
    if by_rows and is_resource(params):
        return params.sparse_read(indices, name=name)  # type: ignore[no-any-return]
    return gather_op(params, indices, axis, batch_dims=batch_dims, name=name)


def is_resource(params: Any) -> bool:
    """Whether it is a variable that gives some of its elements without reading all."""
    return getattr(getattr(params, "handle", None), "dtype", None) is dtypes.resource


@dispatched("batch_gather")
def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """Gathers along the last dimension of `indices`, whose other dimensions are common with `params`."""
    indices = convert_to_tensor(indices, name="indices")
    depth = indices.shape.ndims
    if depth is None:
        raise ValueError("batch_gather does not allow indices with unknown shape.")
    return gather(params, indices, name=name, axis=depth - 1, batch_dims=depth - 1)


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of shape `shape` with `updates` added at index tuples ``indices[..., :]``."""
    return scatter_nd_op(indices, updates, shape, name=name)
