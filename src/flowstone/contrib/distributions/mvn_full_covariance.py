"""Normal distributions of vectors with a covariance matrix."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.mvn_tril import MultivariateNormalTriL
from flowstone.contrib.distributions.scalar_distribution import own_parameters

__all__ = ["MultivariateNormalFullCovariance"]


class MultivariateNormalFullCovariance(MultivariateNormalTriL):
    """Normal vectors with this covariance; its Cholesky factor is the scale.

    Args:
        loc: [..., k], floating; zeros by default.
        covariance_matrix: [..., k, k], symmetric, positive definite; the identity by default.
        validate_args: whether steps check that it is symmetric.
        allow_nan_stats, name: see `Distribution`.

    ValueError if neither is given.
    """

    def __init__(
        self,
        loc: Any = None,
        covariance_matrix: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalFullCovariance",
    ) -> None:
        parameters = dict(locals())
        scale_tril = None
        with tf.name_scope(name) as scope:
            if covariance_matrix is not None:
                matrix = tf.convert_to_tensor(covariance_matrix, name="covariance_matrix")
                if validate_args:
                    message = "Matrix was not symmetric"
                    check = tf.assert_near(matrix, tf.matrix_transpose(matrix), message=message)
                    with tf.control_dependencies([check]):
                        matrix = tf.identity(matrix)
                scale_tril = tf.cholesky(matrix)
            super().__init__(loc, scale_tril, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)
