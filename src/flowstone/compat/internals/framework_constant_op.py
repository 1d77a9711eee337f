"""`tensorflow.python.framework.constant_op`: how a TensorShape becomes a tensor."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["_tensor_shape_tensor_conversion_function"]


def _tensor_shape_tensor_conversion_function(
    s: tf.TensorShape, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> tf.Tensor:
    """The sizes of a shape as a vector of int32, or of `dtype`. ValueError for a shape that is not known."""
    return tf.convert_to_tensor(s, dtype, name or "shape_as_tensor")
