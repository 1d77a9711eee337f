"""Functions that compute with sparse tensors: sums, extremes, reductions, soft-max and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F, OpDeclaration
from flowstone.framework.tensors.composite import SparseTensor, SparseTensorValue
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.constants import constant
from flowstone.ops.sparse.sparse_products import sparse_matmul_op, sparse_tensor_dense_matmul_op
from flowstone.ops.sparse.sparse_reductions import (
    sparse_reduce_max_op,
    sparse_reduce_max_sparse_op,
    sparse_reduce_sum_op,
    sparse_reduce_sum_sparse_op,
    sparse_softmax_op,
)
from flowstone.ops.sparse.sparse_sums import (
    sparse_add_op,
    sparse_sparse_maximum_op,
    sparse_sparse_minimum_op,
)
from flowstone.ops.sparse.sparse_with_dense import sparse_tensor_dense_add_op


def as_sparse(value: Any) -> SparseTensor:
    """`value` as a SparseTensor. TypeError unless it is one or a SparseTensorValue."""
    if isinstance(value, SparseTensor):
        return value
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    raise TypeError(f"Input must be a SparseTensor, got {value!r}.")


def is_sparse_like(value: Any) -> bool:
    """Whether `value` is a SparseTensor or a SparseTensorValue."""
    return isinstance(value, (SparseTensor, SparseTensorValue))


def of_known_shape(parts: Sequence[Tensor], shape: TensorShape) -> SparseTensor:
    """The sparse tensor of indices, values and sizes; a shape that is wholly known replaces the sizes."""
    indices, values, sizes = parts
    known = np.array(shape.as_list(), np.int64) if shape.is_fully_defined() else sizes
    result = SparseTensor(indices, values, known)
    result.set_shape(shape)
    return result


# ---- two tensors


def sparse_add(a: Any, b: Any, thresh: Any = None, threshold: Any = None) -> Any:
    """a + b, of which at least one is sparse.

    Args:
        a: Tensor or SparseTensor.
        b: Tensor or SparseTensor of the same type and shape; nothing is broadcast.
        thresh: scalar of the real type of the values, default 0. Sums of two stored elements with a smaller
            magnitude are left out. Not used where one operand is dense.
        threshold: another name for `thresh`.

    Returns:
        SparseTensor if both are sparse, its indices in row-major order; else Tensor.

    Raises:
        TypeError: neither is sparse.
        InvalidArgumentError: (in the step) shapes that differ, or indices outside of a dense operand.
    """
    if not (is_sparse_like(a) or is_sparse_like(b)):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if not (is_sparse_like(a) and is_sparse_like(b)):
        sparse, dense = (as_sparse(a), b) if is_sparse_like(a) else (as_sparse(b), a)
        return sparse_tensor_dense_add_op(sparse.indices, sparse.values, sparse.dense_shape, dense)
    a, b = as_sparse(a), as_sparse(b)
    limit = threshold if thresh is None else thresh
    real = a.values.dtype.base_dtype.real_dtype
    limit = convert_to_tensor(0 if limit is None else limit, real, name="threshold")
    parts = (a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape)
    return of_known_shape(sparse_add_op.several(*parts, limit), a.shape.merge_with(b.shape))


def sparse_maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The element-wise maximum of two SparseTensors of one shape; what one lacks counts as zero.

    The result has an element wherever one of them has.
    """
    return _extreme(sparse_sparse_maximum_op, sp_a, sp_b, name)


def sparse_minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The element-wise minimum of two SparseTensors; see `sparse_maximum`."""
    return _extreme(sparse_sparse_minimum_op, sp_a, sp_b, name)


def _extreme(declaration: OpDeclaration, a: Any, b: Any, name: str | None) -> SparseTensor:
    a, b = as_sparse(a), as_sparse(b)
    parts = (a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape)
    indices, values = declaration.several(*parts, name=name or declaration.name)
    return SparseTensor(indices, values, a.dense_shape)


# ---- reductions


def sparse_reduce_sum(
    sp_input: Any,
    axis: Any = None,
    keep_dims: bool = False,
    reduction_axes: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The sums of a SparseTensor along `axis`, as a dense Tensor.

    Args:
        sp_input: SparseTensor of numbers; the order of its indices does not matter.
        axis: int32 scalar or vector of axes, which may be negative; None for all.
        keep_dims: whether reduced dimensions stay, with size 1.
        reduction_axes: an old name of `axis`.
        keepdims: another name of `keep_dims`.

    Raises:
        ValueError: both names of an argument are given.
        InvalidArgumentError: (in the step) no such axis.
    """
    total: Tensor = _reduced(sparse_reduce_sum_op, sp_input, axis, keep_dims, reduction_axes, keepdims)
    return total


def sparse_reduce_max(
    sp_input: Any,
    axis: Any = None,
    keep_dims: bool = False,
    reduction_axes: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The maxima of the stored elements along `axis`, 0 where there is none; see `sparse_reduce_sum`."""
    largest: Tensor = _reduced(sparse_reduce_max_op, sp_input, axis, keep_dims, reduction_axes, keepdims)
    return largest


def sparse_reduce_sum_sparse(
    sp_input: Any,
    axis: Any = None,
    keep_dims: bool = False,
    reduction_axes: Any = None,
    keepdims: bool | None = None,
) -> SparseTensor:
    """As `sparse_reduce_sum`, but a SparseTensor, with an element for each sum of stored elements."""
    return SparseTensor(
        *_reduced(sparse_reduce_sum_sparse_op, sp_input, axis, keep_dims, reduction_axes, keepdims)
    )


def sparse_reduce_max_sparse(
    sp_input: Any,
    axis: Any = None,
    keep_dims: bool = False,
    reduction_axes: Any = None,
    keepdims: bool | None = None,
) -> SparseTensor:
    """As `sparse_reduce_max`, but a SparseTensor, with an element for each maximum of stored elements."""
    return SparseTensor(
        *_reduced(sparse_reduce_max_sparse_op, sp_input, axis, keep_dims, reduction_axes, keepdims)
    )


def _reduced(
    declaration: OpDeclaration, sp_input: Any, axis: Any, keep_dims: Any, old_axis: Any, keepdims: Any
) -> Any:
    if old_axis is not None and axis is not None:
        raise ValueError("Can't specify both 'axis' and 'reduction_axes'.")
    sparse = as_sparse(sp_input)
    axes = _axes(sparse, old_axis if axis is None else axis)
    parts = (sparse.indices, sparse.values, sparse.dense_shape)
    return declaration.several(*parts, axes, keep_dims=bool(keep_dims if keepdims is None else keepdims))


def _axes(sparse: SparseTensor, axis: Any) -> Any:
    """The axes to reduce; all of them for None."""
    if axis is not None:
        return axis
    rank = sparse.dense_shape.dims
    if rank is not None and rank[0] is not None:
        return constant(np.arange(rank[0], dtype=np.int32))
    return F.Range(np.int32(0), F.Size(sparse.dense_shape, name="Rank"), np.int32(1), name="range")


# ---- soft-max and products


def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The soft-max over the last dimension of a SparseTensor, among the elements that are there.

    `sp_input`: [..., n, m], two dimensions at least, of floats. The shape and the places stay.
    """
    sparse = as_sparse(sp_input)
    with get_default_graph().name_scope(name or "SparseSoftmax"):
        values = sparse_softmax_op(sparse.indices, sparse.values, sparse.dense_shape)
        return SparseTensor(sparse.indices, values, sparse.dense_shape)


def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The product of a sparse matrix and a dense one, [m, k] and [k, n].

    Args:
        sp_a: SparseTensor of two dimensions; fastest with indices in row-major order.
        b: Tensor of two dimensions and the same type.
        adjoint_a: whether `sp_a` is conjugated and transposed first.
        adjoint_b: whether `b` is.

    Raises:
        InvalidArgumentError: (in the step) sizes that do not fit, or indices outside of the shape.
    """
    sparse = as_sparse(sp_a)
    with get_default_graph().name_scope(name or "SparseTensorDenseMatMul"):
        b = convert_to_tensor(b, name="b")
        parts = (sparse.indices, sparse.values, sparse.dense_shape)
        return sparse_tensor_dense_matmul_op(*parts, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


def sparse_matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product, in float32, of two dense matrices of float32 or bfloat16 that may have many zeros.

    `transpose_a`, `transpose_b`: whether one is transposed first. `a_is_sparse` and `b_is_sparse` say which
    has many zeros; the result does not depend on it.
    """
    flags = {"a_is_sparse": a_is_sparse, "b_is_sparse": b_is_sparse}
    return sparse_matmul_op(a, b, transpose_a=transpose_a, transpose_b=transpose_b, **flags, name=name)
