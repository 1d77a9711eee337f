"""Functions of sets: what `tf.sets` offers over the ops of `set_operations`."""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.graph_functions import convert_to_tensor_or_sparse_tensor
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.sparse.set_operations import (
    TYPES,
    dense_to_dense_op,
    dense_to_sparse_op,
    set_size_op,
    sparse_to_sparse_op,
)


def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """How many different elements each set of a SparseTensor has.

    Args:
        a: SparseTensor [s1, …, sn, any] of integers or strings, with indices in row-major order.
        validate_indices: whether to check their order and range.

    Returns:
        int32 Tensor [s1, …, sn].

    Raises:
        TypeError: `a` is not sparse, or of another type.
    """
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a}.")
    _check_type(a, "a")
    return set_size_op(a.indices, a.values, a.dense_shape, validate_indices=validate_indices)


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that a set of `a` and the set of `b` at the same place both have.

    Args:
        a: Tensor or SparseTensor [s1, …, sn, any] of integers or strings; sparse indices in row-major order.
        b: Tensor or SparseTensor of the same type, and sizes but for the last.
        validate_indices: whether to check the order and range of sparse indices.

    Returns:
        SparseTensor [s1, …, sn, size of the largest result]; each set in increasing order.

    Raises:
        TypeError: types that differ or are not supported.
        InvalidArgumentError: (in the step) other shapes, or indices out of order.
    """
    a, b, _ = _operands(a, b)
    return _operation(a, b, "intersection", validate_indices)


def set_difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """The elements of a set of `a` that the set of `b` lacks, or with ``aminusb=False`` the converse; see
    `set_intersection`.
    """
    a, b, swapped = _operands(a, b)
    return _operation(a, b, "a-b" if aminusb != swapped else "b-a", validate_indices)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that a set of `a` or the set of `b` has; see `set_intersection`."""
    a, b, _ = _operands(a, b)
    return _operation(a, b, "union", validate_indices)


def _operands(a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Both as tensors, a dense one first, and whether they are swapped."""
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    _check_type(a, "a")
    b = convert_to_tensor_or_sparse_tensor(b, name="b")
    if b.dtype.base_dtype is not a.dtype.base_dtype:
        raise TypeError(f"Types don't match, {a.dtype!r} vs {b.dtype!r}.")
    if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        return b, a, True
    return a, b, False


def _check_type(a: Any, name: str) -> None:
    if a.dtype.base_dtype not in TYPES:
        raise TypeError(
            f"{name!r} has the type {a.dtype.name}; sets are of {', '.join(dtype.name for dtype in TYPES)}."
        )


def _operation(a: Any, b: Any, kind: str, validate: bool) -> SparseTensor:
    operands = [a.indices, a.values, a.dense_shape] if isinstance(a, SparseTensor) else [a]
    operands += [b.indices, b.values, b.dense_shape] if isinstance(b, SparseTensor) else [b]
    operation = {2: dense_to_dense_op, 4: dense_to_sparse_op, 6: sparse_to_sparse_op}[len(operands)]
    return SparseTensor(*operation.several(*operands, set_operation=kind, validate_indices=validate))
