"""Products and reversals of TensorFlow 0.x."""

from __future__ import annotations

from typing import Any

import flowstone

__all__ = ["batch_matmul", "reverse"]

_reverse: Any = flowstone.reverse


def batch_matmul(x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None) -> Any:
    """`tf.matmul` of the last two dimensions, with either factor conjugated and transposed."""
    return flowstone.matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


def reverse(tensor: Any, axis: Any = None, name: str | None = None, *, dims: Any = None) -> Any:
    """`tf.reverse(tensor, axis)`, or `tf.reverse(tensor, dims)` of TensorFlow 0.x with a bool a dimension."""
    if dims is None and _is_bools(axis):
        dims = axis
    if dims is not None:
        return flowstone.raw_ops.Reverse(tensor=tensor, dims=dims, name=name)
    return _reverse(tensor, axis, name)


def _is_bools(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return flowstone.as_dtype(dtype).base_dtype == flowstone.bool
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(x, bool) for x in value)
