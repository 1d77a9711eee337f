"""`tensorflow.python.ops.array_ops`: sizes as operations, whether or not they are known."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["prevent_gradient", "rank_internal", "shape_internal", "size_internal"]


def shape_internal(input: Any, name: str | None = None, optimize: bool = True, out_type: Any = None) -> Any:
    """The shape of `input` as a vector of `out_type` (int32).

    Without `optimize` the op Shape computes it in the step, also where it is known.
    """
    out_type = tf.as_dtype(out_type or tf.int32)
    if optimize or isinstance(input, tf.SparseTensor):
        return tf.shape(input, name, out_type)
    return tf.raw_ops.Shape(input=tf.convert_to_tensor(input), out_type=out_type, name=name)


def size_internal(input: Any, name: str | None = None, optimize: bool = True, out_type: Any = None) -> Any:
    """The number of elements of `input`, a scalar of `out_type` (int32); `optimize` as for the shape."""
    out_type = tf.as_dtype(out_type or tf.int32)
    if optimize or isinstance(input, tf.SparseTensor):
        return tf.size(input, name, out_type)
    return tf.raw_ops.Size(input=tf.convert_to_tensor(input), out_type=out_type, name=name)


def rank_internal(input: Any, name: str | None = None, optimize: bool = True) -> Any:
    """The number of dimensions of `input`, a scalar of int32; `optimize` as for the shape."""
    if optimize or isinstance(input, tf.SparseTensor):
        return tf.rank(input, name)
    return tf.raw_ops.Rank(input=tf.convert_to_tensor(input), name=name)


def prevent_gradient(input: Any, message: str = "", name: str | None = None) -> Any:
    """The tensor itself; LookupError, with this message, where its gradient is asked for."""
    return tf.raw_ops.PreventGradient(input=tf.convert_to_tensor(input), message=message, name=name)
