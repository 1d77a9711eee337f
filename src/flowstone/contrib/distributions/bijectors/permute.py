"""Permutations of vectors."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import checked
from flowstone.framework.tensors.node import static_value

__all__ = ["Permute"]


class Permute(Bijector):
    """y[..., i] = x[..., permutation[i]].

    Args:
        permutation: a whole vector with each of 0 … k - 1 once.
        validate_args: whether steps check it if it is not known.
        name: the scope of its operations.

    TypeError if the permutation is not whole, ValueError if it is known to be none.
    """

    def __init__(self, permutation: Any, validate_args: bool = False, name: str | None = None) -> None:
        with tf.name_scope(name or "permute"):
            permutation = tf.convert_to_tensor(permutation, name="permutation")
            if not permutation.dtype.is_integer:
                raise TypeError(f"permutation must be whole, but its type is {permutation.dtype.name}.")
            known = static_value(permutation)
            if known is not None:
                if sorted(int(each) for each in known) != list(range(len(known))):
                    raise ValueError(
                        "Permutation over `d` must contain exactly one of each of `{0, 1, ..., d}`."
                    )
            else:
                size = tf.size(permutation)
                ordered = tf.nn.top_k(-permutation, k=size).values
                permutation = checked(
                    validate_args,
                    permutation,
                    lambda: tf.assert_equal(
                        -ordered, tf.range(size), message="The permutation must have each index once."
                    ),
                )
        self._permutation = permutation
        super().__init__(
            forward_min_event_ndims=1,
            is_constant_jacobian=True,
            validate_args=validate_args,
            name=name or "permute",
        )

    @property
    def permutation(self) -> Any:
        """The permutation, a vector."""
        return self._permutation

    def _forward(self, x: Any) -> Any:
        return tf.gather(x, self.permutation, axis=-1)

    def _inverse(self, y: Any) -> Any:
        return tf.gather(y, tf.invert_permutation(self.permutation), axis=-1)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return tf.constant(0.0, dtype=y.dtype.base_dtype)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.constant(0.0, dtype=x.dtype.base_dtype)
