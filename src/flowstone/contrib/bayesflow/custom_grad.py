"""Values with gradients that are given."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["custom_gradient"]


def custom_gradient(
    fx: Any, gx: Any, x: Any, axis: Any = (), fx_gx_manually_stopped: bool = False, name: str | None = None
) -> Any:
    """The value fx, whose gradient by x is gx.

    Args:
        fx: the value.
        gx: the gradient, of x's shape.
        x: what the gradient is by.
        axis: the dimensions of gx x that fx does not have.
        fx_gx_manually_stopped: whether gradients are stopped at fx and gx already.
        name: the scope of its operations, ``custom_gradient`` by default.
    """
    with tf.name_scope(name or "custom_gradient"):
        fx = tf.convert_to_tensor(fx, name="fx")
        gx = tf.convert_to_tensor(gx, dtype=fx.dtype, name="gx")
        if not fx_gx_manually_stopped:
            fx, gx = tf.stop_gradient(fx), tf.stop_gradient(gx)
        # The sum has fx's value, because the product is taken away again without its gradient.
        product = tf.reduce_sum(gx * tf.convert_to_tensor(x, dtype=fx.dtype), axis=axis)
        return fx + (product - tf.stop_gradient(product))
