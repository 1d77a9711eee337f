"""``tf.assign``, ``tf.scatter_update`` …: updates as functions of a variable of either kind or of a
reference tensor.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.variables.variables import Variable

__all__ = [
    "assign",
    "assign_add",
    "assign_sub",
    "batch_scatter_update",
    "count_up_to",
    "scatter_add",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd_add",
    "scatter_nd_sub",
    "scatter_nd_update",
    "scatter_sub",
    "scatter_update",
]


def _is_reference(ref: Any) -> bool:
    return bool(ref.dtype.is_ref)


def assign(
    ref: Any,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Any:
    """Gives `ref` the value; returns the reference (a resource variable's `UpdatedVariable`).

    `validate_shape`: whether the shapes must agree (the default). Raises ValueError where they are known
    not to.
    """
    if _is_reference(ref):
        return F.Assign(ref, value, validate_shape=validate_shape, use_locking=use_locking, name=name)
    return ref.assign(value, name=name)


def assign_add(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Adds a value of its shape to `ref`; returns as `assign`."""
    if _is_reference(ref):
        return F.AssignAdd(ref, value, use_locking=use_locking, name=name)
    return ref.assign_add(value)


def assign_sub(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Subtracts a value of its shape from `ref`; returns as `assign`."""
    if _is_reference(ref):
        return F.AssignSub(ref, value, use_locking=use_locking, name=name)
    return ref.assign_sub(value)


def count_up_to(ref: Any, limit: int, name: str | None = None) -> Tensor:
    """The value of an integer scalar `ref`, which then grows by 1; OutOfRangeError in the step at `limit`."""
    if _is_reference(ref):
        return F.CountUpTo(ref, limit=limit, name=name)
    return F.ResourceCountUpTo(ref.handle, limit=limit, T=ref.dtype, name=name)


def _scatter(kind: str, ref: Any, indices: Any, updates: Any, use_locking: bool, name: str | None) -> Any:
    if _is_reference(ref):
        return getattr(F, f"Scatter{kind}")(ref, indices, updates, use_locking=use_locking, name=name)
    rows = convert_to_tensor(updates, ref.dtype)
    operation = getattr(F, f"ResourceScatter{kind}")(ref.handle, indices, rows, name=name)
    return ref._updated(operation)


def scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Assigns rows: ``ref[indices] = updates``; updates: indices.shape + ref.shape[1:], or a scalar."""
    return _scatter("Update", ref, indices, updates, use_locking, name)


def scatter_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Adds to rows; indices that repeat add up."""
    return _scatter("Add", ref, indices, updates, use_locking, name)


def scatter_sub(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtracts from rows."""
    return _scatter("Sub", ref, indices, updates, use_locking, name)


def scatter_mul(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Multiplies rows."""
    return _scatter("Mul", ref, indices, updates, use_locking, name)


def scatter_div(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Divides rows; integers are truncated."""
    return _scatter("Div", ref, indices, updates, use_locking, name)


def scatter_max(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Raises rows to the updates."""
    return _scatter("Max", ref, indices, updates, use_locking, name)


def scatter_min(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Lowers rows to the updates."""
    return _scatter("Min", ref, indices, updates, use_locking, name)


def _scatter_nd(kind: str, ref: Any, indices: Any, updates: Any, use_locking: bool, name: str | None) -> Any:
    if _is_reference(ref):
        return getattr(F, f"ScatterNd{kind}")(ref, indices, updates, use_locking=use_locking, name=name)
    values = convert_to_tensor(updates, ref.dtype)
    operation = getattr(F, f"ResourceScatterNd{kind}")(
        ref.handle, indices, values, use_locking=use_locking, name=name
    )
    return ref._updated(operation)


def scatter_nd_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Assigns elements or slices at index tuples; updates: indices.shape[:-1] +
    ref.shape[indices.shape[-1]:].
    """
    return _scatter_nd("Update", ref, indices, updates, use_locking, name)


def scatter_nd_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Adds at index tuples."""
    return _scatter_nd("Add", ref, indices, updates, use_locking, name)


def scatter_nd_sub(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtracts at index tuples."""
    return _scatter_nd("Sub", ref, indices, updates, use_locking, name)


def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Assigns along the last dimension of `indices`: ``ref[i1, …, indices[i1, …, n]] = updates[i1, …, n]``.

    The leading dimensions of `indices` are those of `ref`; updates: indices.shape + ref.shape[indices.ndim:].
    """
    with (ref.graph if isinstance(ref, (Variable, Tensor)) else ref).name_scope(
        name or "batch_scatter_update"
    ):
        indices = convert_to_tensor(indices, name="indices")
        rank = indices.shape.ndims
        sizes = shape(indices)
        parts = []
        for axis in range(rank - 1):
            lengths = [1] * rank
            lengths[axis] = -1
            positions = F.Reshape(F.Range(0, sizes[axis], 1), lengths)
            parts.append(F.Tile(positions, F.ConcatV2([sizes[:axis], [1], sizes[axis + 1 :]], 0)))
        tuples = stack([*parts, indices], axis=-1) if parts else F.ExpandDims(indices, -1)
        return scatter_nd_update(ref, tuples, updates, use_locking)
