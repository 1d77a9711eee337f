"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.scalar_distribution import own_parameters, positive
from flowstone.distributions import Gamma

__all__ = ["Chi2", "Chi2WithAbsDf"]


class Chi2(Gamma):
    """The distribution of the sum of the squares of df standard normal numbers.

    Args:
        df: the degrees of freedom, positive, floating; need not be whole.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self, df: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2"
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._df = positive(df, validate_args, "df")
            concentration = 0.5 * self._df
            rate = tf.constant(0.5, dtype=self._df.dtype)
        super().__init__(concentration, rate, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> Any:
        return cls._all_of_shape(sample_shape, "df")

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self._df


class Chi2WithAbsDf(Chi2):
    """`Chi2` of floor(|df|) degrees of freedom."""

    def __init__(
        self, df: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2WithAbsDf"
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            df = tf.floor(tf.abs(df, name="abs_df"), name="floor_abs_df")
        super().__init__(df, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)
