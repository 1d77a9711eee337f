"""Ragged tensors from and to dense and sparse ones, constants and placeholders."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays import constants as arrays
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.masks import boolean_mask, sequence_mask
from flowstone.ops.arrays.shapes import reshape, shape
from flowstone.ops.control.checks import assert_equal
from flowstone.ops.numbers.reductions import reduce_all, reduce_max
from flowstone.ops.ragged.ragged_tensor import RaggedTensor, as_ragged_or_tensor
from flowstone.ops.ragged.ragged_values import partitioned
from flowstone.ops.ragged.row_layouts import counted, places

__all__ = ["constant", "from_sparse", "from_tensor", "placeholder", "to_sparse", "to_tensor"]


def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """A constant of nested lists, whose rows may have different lengths: a Tensor if nothing is ragged.

    Args:
        pylist: lists, tuples and arrays, all scalars at one depth.
        dtype: the element type.
        ragged_rank: how many dimensions are ragged; by default all but the first and those of `inner_shape`.
        inner_shape: the shape of the innermost values, which are dense.
        name: of the operations.
        row_splits_dtype: int32 or int64.

    Raises ValueError for scalars at several depths, and ranks that do not fit.
    """
    kind = dtypes.as_dtype(row_splits_dtype)
    if kind not in (dtypes.int32, dtypes.int64):
        raise ValueError("row_splits_dtype must be int32 or int64")
    with get_default_graph().name_scope(name or "RaggedConstant"):
        flat, splits = partitioned(pylist, ragged_rank, inner_shape)
        sizes = None if inner_shape is None else [len(flat), *inner_shape] if splits else list(inner_shape)
        if dtype is None and not _has_scalars(flat):
            dtype = dtypes.float32
        values = arrays.constant(flat, dtype, sizes, name="flat_values")
        parts = [arrays.constant(each, kind, name="row_splits") for each in splits]
        return RaggedTensor.from_nested_row_splits(values, parts, validate=False) if parts else values


def _has_scalars(value: Any) -> bool:
    return not hasattr(value, "__len__") or isinstance(value, (str, bytes)) or any(map(_has_scalars, value))


def placeholder(dtype: Any, ragged_rank: int, value_shape: Any = None, name: str | None = None) -> Any:
    """A RaggedTensor that is fed a RaggedTensorValue; `value_shape`: of the innermost values, without their
    first dimension."""
    if ragged_rank == 0:
        return arrays.placeholder(dtype, value_shape, name)
    with get_default_graph().name_scope(name or "RaggedPlaceholder"):
        sizes = None if value_shape is None else [None, *value_shape]
        result: Any = arrays.placeholder(dtype, sizes, "flat_values")
        for i in reversed(builtins.range(ragged_rank)):
            splits = arrays.placeholder(dtypes.int64, [None], f"row_splits_{i}")
            result = RaggedTensor(result, splits, internal=True)
        return result


# ---- dense


def from_tensor(
    tensor: Any,
    lengths: Any = None,
    padding: Any = None,
    ragged_rank: int = 1,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """A RaggedTensor of a dense one, whose rows end after `lengths` elements, or where nothing but `padding`
    follows.

    `lengths` may be a list of vectors, one for each ragged dimension. Raises ValueError for both, for
    `padding` of several ragged dimensions or not of an element's shape, and for a rank that is too large.
    """
    kind = dtypes.as_dtype(row_splits_dtype)
    if lengths is not None and padding is not None:
        raise ValueError("Specify lengths or padding, but not both")
    if not isinstance(ragged_rank, int):
        raise TypeError(f"ragged_rank expected int, got {ragged_rank!r}")
    if ragged_rank <= 0:
        raise ValueError(f"ragged_rank must be greater than 0; got {ragged_rank}")
    with get_default_graph().name_scope(name or "RaggedFromTensor"):
        tensor = convert_to_tensor(tensor, name="tensor")
        tensor.shape.with_rank_at_least(ragged_rank + 1)
        if lengths is not None and isinstance(lengths, (list, tuple)) and _is_nested(lengths):
            if ragged_rank not in (1, len(lengths)):
                raise ValueError("If lengths is a nested list, it must have ragged_rank vectors.")
            return _by_lengths(tensor, list(lengths), kind)
        if ragged_rank > 1:
            if padding is not None:
                raise ValueError("padding may be given for one ragged dimension")
            return _of_inner_rows(tensor, lengths, ragged_rank, kind)
        return _rows(tensor, lengths, padding, kind)


def _is_nested(lengths: Any) -> bool:
    return any(isinstance(each, (list, tuple)) or (hasattr(each, "shape") and each.shape) for each in lengths)


def _by_lengths(tensor: Tensor, lengths: list[Any], kind: Any) -> Any:
    outer = _rows(tensor, lengths[0], None, kind)
    if len(lengths) == 1:
        return outer
    return outer.with_values(_by_lengths(outer.values, lengths[1:], kind))


def _of_inner_rows(tensor: Tensor, lengths: Any, ragged_rank: int, kind: Any) -> Any:
    """The inner dimensions first: they are whole rows, but for what `lengths` cuts off the innermost."""
    sizes = shape(tensor, out_type=kind)
    outer = reshape(tensor, concat([F.ExpandDims(sizes[0] * sizes[1], 0), sizes[2:]], axis=0))
    outer.set_shape(TensorShape([None]).concatenate(tensor.shape[2:]))
    inner = from_tensor(outer, lengths, ragged_rank=ragged_rank - 1, row_splits_dtype=kind)
    ends = counted(sizes[0] + 1) * sizes[1]
    return RaggedTensor.from_row_splits(inner, ends, validate=False)


def _rows(tensor: Tensor, lengths: Any, padding: Any, kind: Any) -> Any:
    sizes = shape(tensor, out_type=kind)
    columns = sizes[1]
    if padding is not None:
        padding = convert_to_tensor(padding, tensor.dtype)
        padding.shape.assert_is_compatible_with(tensor.shape[2:])
        is_padding = F.Equal(tensor, padding)
        if (dims := tensor.dims) is None:
            is_padding = reduce_all(is_padding, axis=F.Range(2, F.Rank(tensor), 1))
        elif len(dims) > 2:
            is_padding = reduce_all(is_padding, axis=list(builtins.range(2, len(dims))))
        numbers = counted(columns + 1, 1)
        kept = numbers * F.Cast(F.LogicalNot(is_padding), DstT=kind)
        zero = F.Fill(F.Pack([sizes[0], convert_to_tensor(1, kind)]), convert_to_tensor(0, kind))
        lengths = reduce_max(concat([zero, kept], axis=1), axis=1)
    if lengths is not None:
        lengths = convert_to_tensor(lengths)
        lengths = F.Minimum(F.Maximum(F.Cast(lengths, DstT=kind), convert_to_tensor(0, kind)), columns)
        values = boolean_mask(tensor, sequence_mask(lengths, columns))
        return RaggedTensor.from_row_lengths(values, lengths, validate=False)
    values = reshape(tensor, concat([F.ExpandDims(sizes[0] * columns, 0), sizes[2:]], axis=0))
    ends = counted(sizes[0] + 1) * columns
    if (known := tensor.dims) is not None:
        rows, length = known[:2]
        values.set_shape([None if rows is None or length is None else rows * length, *known[2:]])
        ends.set_shape([None if rows is None else rows + 1])
    return RaggedTensor.from_row_splits(values, ends, validate=False)


def to_tensor(rt_input: Any, default_value: Any = None, name: str | None = None) -> Tensor:
    """The dense tensor, rows filled up with `default_value` (a scalar; by default 0, False or '').

    ValueError for a default of another shape or type.
    """
    with get_default_graph().name_scope(name or "RaggedToTensor"):
        ragged = as_ragged_or_tensor(rt_input)
        if not isinstance(ragged, RaggedTensor):
            return ragged  # type: ignore[no-any-return]
        kind = ragged.dtype
        if default_value is None:
            default_value = "" if kind == dtypes.string else kind.as_numpy_dtype(0)
        default = convert_to_tensor(default_value, kind)
        splits = ragged.nested_row_splits
        result: Tensor = F.RaggedTensorToTensor(
            convert_to_tensor(-1, splits[0].dtype), ragged.flat_values, default, list(splits),
            row_partition_types=["ROW_SPLITS"] * len(splits),
        )  # fmt: skip
        known = [static_value(each) for each in splits]
        widths = [
            int(np.diff(each).max(initial=0)) if isinstance(each, np.ndarray) else None for each in known
        ]
        if result.dims is not None and ragged.shape.ndims is not None:
            result.set_shape([ragged.shape.as_list()[0], *widths, *result.dims[len(splits) + 1 :]])
        return result


# ---- sparse


def from_sparse(st_input: Any, name: str | None = None, row_splits_dtype: Any = dtypes.int64) -> Any:
    """The RaggedTensor of a SparseTensor of rank 2 whose rows have no gaps, which a step checks.

    TypeError for what is no SparseTensor, ValueError for another rank, or one that is not known.
    """
    if not isinstance(st_input, SparseTensor):
        raise TypeError(f"Expected SparseTensor, got {type(st_input).__name__}")
    kind = dtypes.as_dtype(row_splits_dtype)
    with get_default_graph().name_scope(name or "RaggedFromSparse"):
        rank = st_input.dense_shape.shape.as_list()[0] or st_input.shape.ndims
        if rank is None:
            raise ValueError("Sparse tensor must have static rank.")
        if rank != 2:
            raise ValueError("Only rank 2 sparse tensors are supported")
        rows, columns = st_input.indices[:, 0], st_input.indices[:, 1]
        ids = F.Cast(rows, DstT=kind)
        found = RaggedTensor.from_value_rowids(
            st_input.values, ids, F.Cast(st_input.dense_shape[0], DstT=kind), validate=False
        )
        expected, _ = places(found.row_starts() * 0, found.row_lengths())
        check = assert_equal(
            F.Cast(columns, DstT=kind), expected,
            message="SparseTensor is not right-ragged; to_ragged needs rows without gaps, in order",
        )  # fmt: skip
        with get_default_graph().control_dependencies([] if check is None else [check]):
            return found.with_values(F.Identity(found.values))


def to_sparse(rt_input: Any, name: str | None = None) -> SparseTensor:
    """The SparseTensor that has all values."""
    with get_default_graph().name_scope(name or "RaggedToSparse"):
        ragged = as_ragged_or_tensor(rt_input)
        if not isinstance(ragged, RaggedTensor):
            raise TypeError(f"Expected a RaggedTensor, got {rt_input!r}")
        splits = list(ragged.nested_row_splits)
        return SparseTensor(*F.RaggedTensorToSparse.several(splits, ragged.flat_values))
