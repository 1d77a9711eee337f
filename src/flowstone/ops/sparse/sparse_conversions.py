"""Functions that make sparse tensors of something else, and something else of them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays import constants
from flowstone.ops.arrays.choice import where
from flowstone.ops.arrays.index_tuples import gather_nd
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import expand_dims, shape
from flowstone.ops.numbers.casts import cast
from flowstone.ops.sparse.sparse_arithmetic import as_sparse, is_sparse_like
from flowstone.ops.sparse.sparse_layout import sparse_reorder
from flowstone.ops.sparse.sparse_serialization import (
    deserialize_many_sparse_op,
    deserialize_sparse_op,
    serialize_many_sparse_op,
    serialize_sparse_op,
)
from flowstone.ops.sparse.sparse_to_dense import sparse_to_dense

# ---- dense tensors


def sparse_tensor_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """A SparseTensor as a dense Tensor, with `default_value` (default: zero) where it has no element.

    InvalidArgumentError in the step for indices outside of the shape, and with `validate_indices` for those
    that repeat or are not in row-major order.
    """
    sparse = as_sparse(sp_input)
    if default_value is None:
        default_value = constants.zeros([], sparse.dtype.base_dtype)
    parts = (sparse.indices, sparse.dense_shape, sparse.values)
    return sparse_to_dense(*parts, default_value, validate_indices, name)


def sparse_from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """A SparseTensor of the elements of a dense one that are not zero (of strings: not empty)."""
    with get_default_graph().name_scope(name or "dense_to_sparse"):
        tensor = convert_to_tensor(tensor)
        dtype = tensor.dtype.base_dtype
        places = where(F.NotEqual(tensor, constants.constant(b"" if dtype is dtypes.string else 0, dtype)))
        return SparseTensor(places, gather_nd(tensor, places), shape(tensor, out_type=dtypes.int64))


def sparse_eye(
    num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """A sparse matrix with ones on its diagonal; square unless `num_columns` is given."""
    with get_default_graph().name_scope(name or "eye"):
        rows = convert_to_tensor(num_rows, dtypes.int64, name="num_rows")
        columns = rows if num_columns is None else convert_to_tensor(num_columns, dtypes.int64, "num_columns")
        diagonal = constants.range(F.Minimum(rows, columns))
        indices = F.Pack([diagonal, diagonal], axis=1, name="stack")
        sizes = [static_value(each) for each in (rows, columns)]
        whole: Any = F.Pack([rows, columns]) if None in sizes else [int(n) for n in sizes]
        return SparseTensor(indices, constants.ones(shape(diagonal), dtype), whole)


# ---- ids


def sparse_to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """A dense bool Tensor that says which ids occur.

    Args:
        sp_input: SparseTensor [d0, …, dn] of int32 or int64 ids below `vocab_size`.
        vocab_size: int.

    Returns:
        bool [d0, …, d(n-1), vocab_size]: true at the ids that the slice along the last dimension holds.

    Raises:
        TypeError: ids of another type.
        InvalidArgumentError: (in the step) ids out of range.
    """
    sparse = as_sparse(sp_input)
    with get_default_graph().name_scope(name or "SparseToIndicator") as scope:
        count = shape(sparse.indices)[0]
        truths = constants.fill(expand_dims(count, 0), True)
        values = SparseTensor(sparse.indices, truths, sparse.dense_shape)
        merged = _merged([sparse], values, [vocab_size], already_sorted=False)
        return sparse_tensor_to_dense(merged, False, validate_indices=False, name=scope)


def sparse_merge(
    sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None, already_sorted: bool = False
) -> SparseTensor:
    """A SparseTensor of the values at the ids: what a batch of (id, value) lists stands for.

    Args:
        sp_ids: SparseTensor [d0, …, dn] of int32 or int64 ids; or a list of them, one for each new dimension.
        sp_values: SparseTensor of the same indices: the values.
        vocab_size: int, the number of ids; or a list of them.
        name: the scope's name.
        already_sorted: whether ids within a slice increase, so that nothing needs to be put in order.

    Returns:
        SparseTensor [d0, …, d(n-1), vocab_size…].

    Raises:
        TypeError: ids of another type, or arguments that are not sparse.
        ValueError: lists of unequal lengths.
    """
    is_list = isinstance(sp_ids, (list, tuple)) and not is_sparse_like(sp_ids)
    ids = [as_sparse(each) for each in (sp_ids if is_list else [sp_ids])]
    if isinstance(vocab_size, (Tensor, Integral)):
        sizes = [vocab_size]
    else:
        sizes = list(vocab_size)
    if len(ids) != len(sizes):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    with get_default_graph().name_scope(name or "SparseMerge"):
        return _merged(ids, as_sparse(sp_values), sizes, already_sorted)


def _merged(
    ids: list[SparseTensor], values: SparseTensor, sizes: list[Any], already_sorted: bool
) -> SparseTensor:
    for each in ids:
        if each.values.dtype.base_dtype not in dtypes.INDICES:
            raise TypeError(
                f"sp_ids has to be a SparseTensor of int32 or int64 values, not {each.values.dtype.name}"
            )
    columns = [expand_dims(cast(each.values, dtypes.int64), 1) for each in ids]
    ends = [cast(size, dtypes.int64) for size in sizes]
    rows = concat([ids[0].indices[:, :-1], *columns], 1)
    new_shape = concat([ids[0].dense_shape[:-1], ends], 0)
    result = SparseTensor(rows, values.values, new_shape)
    known = [static_value(each) for each in ends]
    if ids[0].shape.ndims is not None:
        new_sizes = [None if n is None else int(n) for n in known]
        result.set_shape(TensorShape([*ids[0].shape.as_list()[:-1], *new_sizes]))
    return result if already_sorted else sparse_reorder(result)


# ---- strings


def serialize_sparse(sp_input: Any, name: str | None = None, out_type: Any = dtypes.string) -> Tensor:
    """A SparseTensor as a vector of three strings (or variants): TensorProtos of its indices, values and
    shape.
    """
    sparse = as_sparse(sp_input)
    parts = (sparse.indices, sparse.values, sparse.dense_shape)
    return serialize_sparse_op(*parts, out_type=dtypes.as_dtype(out_type), name=name)


def serialize_many_sparse(sp_input: Any, name: str | None = None, out_type: Any = dtypes.string) -> Tensor:
    """A SparseTensor [n, …] as a matrix [n, 3] of strings (or variants), a row for each of its slices.

    InvalidArgumentError in the step for a vector, and for indices out of order or bounds.
    """
    sparse = as_sparse(sp_input)
    parts = (sparse.indices, sparse.values, sparse.dense_shape)
    return serialize_many_sparse_op(*parts, out_type=dtypes.as_dtype(out_type), name=name)


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The SparseTensor of serialised ones as its slices, as large as the largest in every dimension.

    Args:
        serialized_sparse: string [n, 3], from `serialize_many_sparse` or batches of `serialize_sparse`.
        dtype: the type of the values.
        rank: the rank of the result, if it is known: one more than that of each of the n tensors.
        name: the node's name.

    Raises:
        InvalidArgumentError: (in the step) strings that are no sparse tensors, or of other types or ranks.
    """
    return _read(deserialize_many_sparse_op, serialized_sparse, dtype, rank, name)


def deserialize_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The SparseTensor of serialised ones [..., 3]; see `deserialize_many_sparse`."""
    return _read(deserialize_sparse_op, serialized_sparse, dtype, rank, name)


def _read(declaration: Any, serialized: Any, dtype: Any, rank: int | None, name: str | None) -> SparseTensor:
    indices, values, sizes = declaration.several(serialized, dtype=dtypes.as_dtype(dtype), name=name)
    indices.set_shape([None, rank])
    sizes.set_shape([rank])
    return SparseTensor(indices, values, sizes)
