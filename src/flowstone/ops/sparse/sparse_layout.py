"""Functions that give sparse tensors another order or shape, or other axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays import constants
from flowstone.ops.arrays.gathering import gather
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.rearranging import transpose
from flowstone.ops.arrays.shapes import rank, shape, size
from flowstone.ops.control.checks import assert_equal, assert_less_equal
from flowstone.ops.control.control_flow import with_dependencies
from flowstone.ops.numbers.casts import cast
from flowstone.ops.sparse.sparse_arithmetic import as_sparse, of_known_shape
from flowstone.ops.sparse.sparse_order import sparse_reorder_op, sparse_reshape_op


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The same SparseTensor with its indices in row-major order, as most operations want them.

    Equal indices stay in the order that they have.
    """
    sparse = as_sparse(sp_input)
    parts = (sparse.indices, sparse.values, sparse.dense_shape)
    indices, values = sparse_reorder_op.several(*parts, name=name)
    sizes = sparse.dense_shape if sparse.shape.is_fully_defined() else F.Identity(sparse.dense_shape)
    return of_known_shape((indices, values, sizes), sparse.shape)


def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements, in row-major order, in another shape.

    Args:
        sp_input: SparseTensor.
        shape: int64 vector of sizes with the same product; one may be -1, and is worked out.

    Raises:
        ValueError: sizes that are known not to fit.
        InvalidArgumentError: (in the step) sizes that do not fit.
    """
    sparse = as_sparse(sp_input)
    sizes = cast(shape, dtypes.int64)
    with get_default_graph().name_scope(name or "SparseReshape") as scope:
        known = _reshaped(sparse.shape, static_value(sizes))
        is_said = known is not None and None not in known and _unwritten(sizes) <= 1
        indices, found = sparse_reshape_op.several(sparse.indices, sparse.dense_shape, sizes, name=scope)
        if is_said:
            found = constants.constant(np.array(known, np.int64))
        result = SparseTensor(indices, F.Identity(sparse.values), found)
        result.set_shape(TensorShape(known))
        return result


def _unwritten(sizes: Tensor) -> int:
    """How many of the sizes are computed: of more than one TensorFlow says nothing before the step."""
    node = sizes.op
    if node.type in ("Cast", "StridedSlice") and sizes.dims != ():
        return _unwritten(node.inputs[0])
    if node.type in ("Pack", "ConcatV2"):
        return sum(_unwritten(x) for x in node.inputs)
    if node.type in ("Const", "Shape", "Size", "Rank"):
        return 0
    return 1 if sizes.dims == () else 2


def _reshaped(before: TensorShape, sizes: Any) -> list[int | None] | None:
    """What is known of the new shape. ValueError where it cannot be."""
    if not isinstance(sizes, np.ndarray):
        return [None] * len(sizes) if isinstance(sizes, tuple) else None
    found = [None if n == -1 else int(n) for n in sizes]
    if found.count(None) > 1:
        raise ValueError(f"At most one dimension can be inferred (-1). Found: {sizes}")
    total = before.num_elements()
    rest = math.prod(n for n in found if n is not None)
    if total is None or (None in found and not rest):
        return found
    if (total % rest if None in found else total - rest) != 0:
        raise ValueError(f"Cannot reshape a tensor with {total} elements to shape {found} ({rest} elements).")
    return [total // rest if n is None else n for n in found]


def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """The SparseTensor with its axes in the order `perm`, by default reversed; its indices in order."""
    sparse = as_sparse(sp_input)
    with get_default_graph().name_scope(name or "SparseTranspose"):
        order = None if perm is None or isinstance(perm, Tensor) else np.asarray(perm)
        if perm is None:
            count = rank(sparse)
            perm = F.Sub(F.Sub(count, np.int32(1), name="sub"), constants.range(0, count, 1), name="sub")
        rows = transpose(gather(transpose(sparse.indices, [1, 0]), perm), [1, 0])
        known = _permuted(sparse.shape, order)
        sizes = sparse.dense_shape if known.is_fully_defined() else gather(sparse.dense_shape, perm)
        return sparse_reorder(of_known_shape((rows, sparse.values, sizes), known))


def _permuted(before: TensorShape, order: Any) -> TensorShape:
    if before.ndims is None or not isinstance(order, np.ndarray):
        return TensorShape(None)
    dims = before.as_list()
    return TensorShape([dims[int(axis)] for axis in order])


def sparse_expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """The SparseTensor with one dimension of size 1 more, at `axis` of the result.

    `axis`: int32 scalar; negative ones count from the end, and the default, -1, makes it the last.
    """
    sparse = as_sparse(sp_input)
    with get_default_graph().name_scope(name or "expand_dims"):
        axis = convert_to_tensor(-1 if axis is None else axis, dtypes.int32, name="axis")
        after = F.AddV2(F.AddV2(axis, rank(sparse)), np.int32(1))
        place = F.SelectV2(F.GreaterEqual(axis, np.int32(0)), axis, after)
        column = constants.zeros([size(sparse.values), 1], dtypes.int64)
        rows = concat([sparse.indices[:, :place], column, sparse.indices[:, place:]], 1)
        one = constants.constant([1], dtypes.int64)
        sizes = concat([sparse.dense_shape[:place], one, sparse.dense_shape[place:]], 0)
        result = SparseTensor(rows, sparse.values, sizes)
        at = static_value(place)
        if isinstance(at, np.ndarray) and sparse.shape.ndims is not None:
            dims = sparse.shape.as_list()
            result.set_shape([*dims[: int(at)], 1, *dims[int(at) :]])
        return result


def sparse_reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same elements in a shape of the same rank: `new_shape`, or the smallest that holds them.

    Args:
        sp_input: SparseTensor.
        new_shape: vector of sizes, none smaller than those of `sp_input`.

    Raises:
        ValueError: sizes that are known to be smaller, too many or too few.
        InvalidArgumentError: (in the step) the same, where it is only known there.
    """
    sparse = as_sparse(sp_input)
    indices, values, sizes = (F.Identity(x) for x in (sparse.indices, sparse.values, sparse.dense_shape))
    if new_shape is None:
        largest = F.Max(indices, np.int32(0), name="Max")
        none = constants.constant(0, dtypes.int64)
        return SparseTensor(indices, values, F.Maximum(none, F.Add(largest, constants.ones_like(sizes))))
    wanted = cast(convert_to_tensor(new_shape), dtypes.int64)
    wanted.shape.assert_has_rank(1)
    if sizes.dims is not None:
        wanted.shape[0].assert_is_compatible_with(sizes.shape[0])
    known, before = static_value(wanted), static_value(sizes)
    if isinstance(known, np.ndarray) and isinstance(before, np.ndarray):
        if (known < before).any():
            raise ValueError(
                "Requested new_shape should have dimension sizes >= sp_input.shape.  Found new_shape "
                f"({known}), sp_input.shape ({before})."
            )
        return SparseTensor(indices, values, known)
    wanted = with_dependencies([assert_equal(shape(sizes), shape(wanted))], wanted)
    return SparseTensor(indices, values, with_dependencies([assert_less_equal(sizes, wanted)], wanted))


def as_int64(value: Any) -> Tensor:
    """A vector of sizes or indices as an int64 tensor."""
    return convert_to_tensor(value, dtypes.int64)
