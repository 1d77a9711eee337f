"""``ragged[...]``: rows, slices of rows, and what is within them; what index tuples name."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays import gathering, index_tuples
from flowstone.ops.arrays.joining import concat
from flowstone.ops.ragged.conversions import from_tensor, to_tensor
from flowstone.ops.ragged.functions import expand_dims, gather, rows_between
from flowstone.ops.ragged.ragged_tensor import RaggedTensor, as_ragged_or_tensor
from flowstone.ops.ragged.row_layouts import places

__all__ = ["gather_nd", "getitem"]

_ALL = slice(None, None, None)


def getitem(ragged: Any, key: Any) -> Any:
    """Part of a ragged tensor, as Python and NumPy write it; the result is ragged where it has to be.

    ValueError for one element of each row of a ragged dimension, whose rows may be too short, and for an
    unknown rank with an ellipsis; TypeError for what is no index.
    """
    keys = list(key) if isinstance(key, (tuple, list)) else [key]
    if any(isinstance(each, RaggedTensor) for each in keys):
        raise TypeError("Only tensors and numbers are indices, no RaggedTensors")
    return _item(ragged, _without_ellipsis(ragged, keys))


def _without_ellipsis(ragged: Any, keys: list[Any]) -> list[Any]:
    at = [i for i, each in enumerate(keys) if each is Ellipsis]
    if not at:
        return keys
    if len(at) > 1:
        raise ValueError("Only one ellipsis is allowed")
    ndims = ragged.shape.ndims
    if ndims is None:
        raise ValueError("Ellipsis not supported for unknown shape RaggedTensors")
    used = sum(each is not None and each is not Ellipsis for each in keys)
    return keys[: at[0]] + [_ALL] * (ndims - used) + keys[at[0] + 1 :]


def _item(ragged: Any, keys: list[Any]) -> Any:
    if not keys:
        return ragged
    if not isinstance(ragged, RaggedTensor):
        return ragged[tuple(keys)]
    first, inner = keys[0], keys[1:]
    if first is None:
        return expand_dims(_item(ragged, inner), 0)
    if isinstance(first, slice):
        return _within(_rows(ragged, first), inner)
    starts, limits = ragged.row_starts(), ragged.row_limits()
    at = convert_to_tensor(first, dtypes.int64 if not isinstance(first, Tensor) else None)
    if not at.dtype.is_integer:
        raise TypeError(f"Indices must be integers or slices, got {first!r}")
    return _item(ragged.values[starts[at] : limits[at]], inner)


def _rows(ragged: RaggedTensor, key: slice) -> RaggedTensor:
    """A slice of the rows."""
    if key == _ALL:
        return ragged
    starts, limits = ragged.row_starts()[key], ragged.row_limits()[key]
    return rows_between(ragged, starts, limits)  # type: ignore[no-any-return]


def _within(ragged: Any, keys: list[Any]) -> Any:
    """The same of each row."""
    if not keys or all(isinstance(each, slice) and each == _ALL for each in keys):
        return ragged
    first, inner = keys[0], keys[1:]
    if first is None:
        return _under_new(ragged, inner)
    if not isinstance(first, slice):
        raise ValueError(
            "Cannot index into an inner ragged dimension: its rows may have too few values for the index."
        )
    cut = _columns(ragged, first)
    if not inner:
        return cut
    return cut.with_values(_item(cut.values, [_ALL, *inner]))


def _under_new(ragged: Any, keys: list[Any]) -> Any:
    return expand_dims(_within(ragged, keys), 1)


def _columns(ragged: RaggedTensor, key: slice) -> RaggedTensor:
    """A slice of each row."""
    if key == _ALL:
        return ragged
    kind = ragged.row_splits.dtype
    lengths, starts = ragged.row_lengths(), ragged.row_starts()
    step = 1 if key.step is None else key.step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    zero = convert_to_tensor(0, kind)
    if step > 0:
        first = zero * lengths if key.start is None else _bounded(key.start, lengths, zero, lengths)
        last = lengths if key.stop is None else _bounded(key.stop, lengths, zero, lengths)
    else:
        first = lengths - 1 if key.start is None else _bounded(key.start, lengths, zero - 1, lengths - 1)
        last = zero * lengths - 1 if key.stop is None else _bounded(key.stop, lengths, zero - 1, lengths - 1)
    if step == 1:
        return rows_between(ragged, starts + first, starts + last)  # type: ignore[no-any-return]
    at, splits = places(starts + first, starts + last, convert_to_tensor(step, kind))
    return RaggedTensor.from_row_splits(  # type: ignore[no-any-return]
        gather(ragged.values, at), F.Cast(splits, DstT=kind), validate=False
    )


def _bounded(value: Any, lengths: Tensor, low: Any, high: Any) -> Tensor:
    """The place in each row, counted from its end where it is negative."""
    kind = lengths.dtype
    at = convert_to_tensor(value, None if isinstance(value, Tensor) else kind)
    at = at if at.dtype == kind else F.Cast(at, DstT=kind)
    found = F.SelectV2(at < 0, at + lengths, at + 0 * lengths)
    return F.Minimum(F.Maximum(found, low), high)


def gather_nd(
    params: Any, indices: Any, name: str | None = None, batch_dims: int = 0, bad_indices_policy: str = ""
) -> Any:
    """The parts of `params`, ragged or dense, at index tuples ``indices[..., :]``, ragged or dense.

    ValueError for batch dimensions, and for indices whose rank, or length of tuples, is not known. As in
    TensorFlow, an index within a row is not compared with the row's length.
    """
    if not isinstance(batch_dims, int) or batch_dims != 0:
        raise ValueError("batch_dims != 0 is not supported for ragged gather yet.")
    with get_default_graph().name_scope(name or "RaggedGatherNd"):
        params, indices = as_ragged_or_tensor(params), as_ragged_or_tensor(indices)
        return _at_tuples(params, indices)


def _at_tuples(params: Any, indices: Any) -> Any:
    if isinstance(indices, RaggedTensor):
        return indices.with_values(_at_tuples(params, indices.values))
    if not isinstance(params, RaggedTensor):
        return index_tuples.gather_nd(params, indices)
    ndims = indices.shape.ndims
    if ndims is None:
        raise ValueError("indices.rank must be known when the graph is built")
    if not ndims:
        raise ValueError("indices.rank must be at least 1.")
    if ndims > 2:
        rows = from_tensor(indices, ragged_rank=ndims - 2)
        found = rows.with_flat_values(_at_tuples(params, rows.flat_values))
        return to_tensor(found) if found.ragged_rank == ndims - 2 else found
    length = indices.dims[-1]
    if length is None:
        raise ValueError("indices.shape[-1] must be known when the graph is built")
    tuples = F.ExpandDims(indices, 0) if ndims == 1 else indices
    if not length:
        return gather(expand_dims(params, 0), F.Fill(F.Shape(tuples)[:1], 0))
    at, used = tuples[:, 0], 1
    while used < length and isinstance(params, RaggedTensor):
        starts = gathering.gather(params.row_splits, at)
        at = starts + F.Cast(tuples[:, used], DstT=starts.dtype)
        params, used = params.values, used + 1
    if used == length:
        return gather(params, at)
    rest = F.Cast(tuples[:, used:], DstT=at.dtype)
    return index_tuples.gather_nd(params, concat([F.ExpandDims(at, 1), rest], 1))
