"""An affine function whose scale is a linear operator."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_shape import DistributionShape, through_columns

__all__ = ["AffineLinearOperator"]


class AffineLinearOperator(Bijector):
    """y = scale x + shift for vectors x [..., k].

    Args:
        shift: floating, [..., k]; nothing is added by default.
        scale: a LinearOperator [..., k, k] that is known to be non-singular; the identity by default.
        validate_args: whether steps check that the scale is non-singular.
        name: the scope of its operations.
        event_ndims: see `Bijector`.

    TypeError if the scale is no LinearOperator or the types differ, ValueError if it may be singular.
    """

    def __init__(
        self,
        shift: Any = None,
        scale: Any = None,
        validate_args: bool = False,
        name: str = "affine_linear_operator",
        event_ndims: Any = None,
    ) -> None:
        parents: list[Any] = []
        dtype = None
        with tf.name_scope(name), tf.name_scope("init"):
            if shift is not None:
                shift = tf.convert_to_tensor(shift, name="shift")
                parents, dtype = [shift], shift.dtype.base_dtype
            if scale is not None:
                if not isinstance(scale, tf.linalg.LinearOperator):
                    raise TypeError("scale is not an instance of tf.LinearOperator")
                if dtype is not None and scale.dtype is not None and scale.dtype.base_dtype != dtype:
                    raise TypeError(f"shift has the type {dtype.name}, but scale has {scale.dtype.name}.")
                if validate_args and not scale.is_non_singular:
                    raise ValueError("Scale matrix must be non-singular.")
                parents = parents + list(scale.graph_parents)
                dtype = dtype or scale.dtype
            rank = 2 if scale is None else scale.tensor_rank
            self._shapes = None if rank is None else DistributionShape(rank - 2, 1)
        self._shift, self._scale = shift, scale
        super().__init__(
            forward_min_event_ndims=1,
            graph_parents=parents,
            is_constant_jacobian=True,
            dtype=dtype,
            validate_args=validate_args,
            name=name,
            event_ndims=event_ndims,
        )

    @property
    def shift(self) -> Any:
        """What is added, or None."""
        return self._shift

    @property
    def scale(self) -> Any:
        """The linear operator, or None."""
        return self._scale

    def _forward(self, x: Any) -> Any:
        y = x if self.scale is None else through_columns(self._shapes, self.scale.matmul, x)
        return y if self.shift is None else y + self.shift

    def _inverse(self, y: Any) -> Any:
        x = y if self.shift is None else y - self.shift
        return x if self.scale is None else through_columns(self._shapes, self.scale.solve, x)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        if self.scale is None:
            return tf.zeros([], dtype=x.dtype.base_dtype)
        return self.scale.log_abs_determinant()
