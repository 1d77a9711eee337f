"""An affine function whose scale is a sum of simple matrices."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_shape import DistributionShape, through_columns
from flowstone.contrib.distributions.distribution_util import checked, make_diag_scale, make_tril_scale

__all__ = ["Affine"]


class Affine(Bijector):
    """y = (c I + diag(d) + L + U diag(e) Uᵀ) x + shift for vectors x [..., k].

    Args:
        shift: floating, [..., k]; nothing is added by default.
        scale_identity_multiplier: the number c.
        scale_diag: d [..., k].
        scale_tril: L [..., k, k]; what is above its diagonal is left out.
        scale_perturb_factor: U [..., k, r].
        scale_perturb_diag: e [..., r]; ones by default.
        validate_args: whether steps check that the scale is not singular.
        name: the scope of its operations.
        event_ndims: see `Bijector`.

    Without any scale it is the identity. The determinant of a perturbed scale is found from r x r matrices.
    TypeError if the types differ, ValueError if the perturbation is given without what it perturbs.
    """

    def __init__(
        self,
        shift: Any = None,
        scale_identity_multiplier: Any = None,
        scale_diag: Any = None,
        scale_tril: Any = None,
        scale_perturb_factor: Any = None,
        scale_perturb_diag: Any = None,
        validate_args: bool = False,
        name: str = "affine",
        event_ndims: Any = None,
    ) -> None:
        scales = (scale_diag, scale_tril, scale_perturb_factor)
        self._is_only_identity_multiplier = all(each is None for each in scales)
        with tf.name_scope(name), tf.name_scope("init"):
            dtype = _common_dtype(
                shift,
                scale_identity_multiplier,
                scale_diag,
                scale_tril,
                scale_perturb_factor,
                scale_perturb_diag,
            )
            self._shift = None if shift is None else tf.convert_to_tensor(shift, dtype, name="shift")
            if self._is_only_identity_multiplier:
                one = 1.0 if scale_identity_multiplier is None else scale_identity_multiplier
                self._scale: Any = tf.convert_to_tensor(one, dtype)
                self._scale = checked(
                    validate_args,
                    self._scale,
                    lambda: tf.assert_none_equal(self._scale, tf.zeros([], self._scale.dtype)),
                )
            else:
                self._scale = _operator(
                    scale_identity_multiplier,
                    scale_diag,
                    scale_tril,
                    scale_perturb_factor,
                    scale_perturb_diag,
                    validate_args,
                    dtype,
                )
            rank = 2 if self._is_only_identity_multiplier else self._scale.tensor_rank
            self._shapes = None if rank is None else DistributionShape(rank - 2, 1)
        super().__init__(
            forward_min_event_ndims=1,
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
        """The scale as a LinearOperator, or the number that multiplies the identity."""
        return self._scale

    def _forward(self, x: Any) -> Any:
        if self._is_only_identity_multiplier:
            y = x * self._scale
        else:
            y = through_columns(self._shapes, self._scale.matmul, x)
        return y if self.shift is None else y + self.shift

    def _inverse(self, y: Any) -> Any:
        x = y if self.shift is None else y - self.shift
        if self._is_only_identity_multiplier:
            return x / self._scale
        return through_columns(self._shapes, self._scale.solve, x)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        if self._is_only_identity_multiplier:
            size = tf.cast(tf.shape(x)[-1], x.dtype.base_dtype)
            return size * tf.log(tf.abs(self._scale))
        return self._scale.log_abs_determinant()


def _common_dtype(*values: Any) -> Any:
    """The type of the first tensor among the values, else of the first that is given; float32 of none."""
    given = [value for value in values if value is not None]
    typed = [value for value in given if hasattr(value, "dtype")]
    if not given:
        return tf.float32
    found = tf.convert_to_tensor((typed or given)[0]).dtype.base_dtype
    for each in typed:
        if tf.as_dtype(each.dtype).base_dtype != found:
            raise TypeError(
                f"Affine's tensors have the types {found.name} and {tf.as_dtype(each.dtype).name}."
            )
    return found


def _operator(
    multiplier: Any, diag: Any, tril: Any, factor: Any, perturb_diag: Any, validate_args: bool, dtype: Any
) -> Any:
    convert = {"validate_args": validate_args, "dtype": dtype}
    if factor is None:
        if tril is not None:
            return make_tril_scale(None, tril, diag, multiplier, **convert)
        return make_diag_scale(None, diag, multiplier, assert_positive=False, **convert)
    factor = tf.convert_to_tensor(factor, dtype, name="scale_perturb_factor")
    if tril is not None:
        base = make_tril_scale(None, tril, diag, multiplier, **convert)
    else:
        hint = factor.shape[-2].value if factor.shape.ndims else None
        hint = tf.shape(factor)[-2] if hint is None else hint
        base = make_diag_scale(None, diag, multiplier, shape_hint=hint, assert_positive=False, **convert)
    return tf.linalg.LinearOperatorLowRankUpdate(
        base,
        u=factor,
        diag_update=None
        if perturb_diag is None
        else tf.convert_to_tensor(perturb_diag, dtype, name="scale_perturb_diag"),
        is_diag_update_positive=perturb_diag is None,
        is_non_singular=True,
        is_self_adjoint=tril is None,
        is_positive_definite=(tril is None and diag is None and perturb_diag is None) or None,
    )
