"""Autoregressive distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.distributions import Distribution
from flowstone.framework.tensors.node import static_value

__all__ = ["Autoregressive"]


class Autoregressive(Distribution):
    """A distribution of x whose element i depends on the elements before it.

    Args:
        distribution_fn: gives the distribution of x, of which element i depends on x_0 … x_(i-1) only.
        sample0: what sampling starts with; by default ``distribution_fn()`` is drawn from.
        num_steps: how often a draw is made of the one before; as many as there are elements by default.
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError for fewer than one step; NotImplementedError if their number is not known.
    """

    def __init__(
        self,
        distribution_fn: Any,
        sample0: Any = None,
        num_steps: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Autoregressive",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._distribution_fn, self._sample0 = distribution_fn, sample0
            self._distribution0 = distribution_fn() if sample0 is None else distribution_fn(sample0)
            own = self._distribution0
            if num_steps is None:
                num_steps = own.event_shape.num_elements()
                if num_steps is None:
                    num_steps = tf.reduce_prod(own.event_shape_tensor())
            known = static_value(tf.convert_to_tensor(num_steps))
            if known is not None and known < 1:
                raise ValueError(f"num_steps ({num_steps}) must be at least 1.")
            if known is None:
                raise NotImplementedError("The number of steps must be known when the graph is built.")
            self._num_steps, self._known_steps = num_steps, int(known)
        super().__init__(
            dtype=own.dtype,
            reparameterization_type=own.reparameterization_type,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            name=scope,
        )

    @property
    def distribution_fn(self) -> Any:
        """The function that gives a distribution of a draw."""
        return self._distribution_fn

    @property
    def sample0(self) -> Any:
        """What sampling starts with, or None."""
        return self._sample0

    @property
    def num_steps(self) -> Any:
        """How often a draw is made of the one before."""
        return self._num_steps

    @property
    def distribution0(self) -> Any:
        """The distribution of the start."""
        return self._distribution0

    def _batch_shape(self) -> Any:
        return self.distribution0.batch_shape

    def _batch_shape_tensor(self) -> Any:
        return self.distribution0.batch_shape_tensor()

    def _event_shape(self) -> Any:
        return self.distribution0.event_shape

    def _event_shape_tensor(self) -> Any:
        return self.distribution0.event_shape_tensor()

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        # Every step has the same noise, so that elements that are settled stay as they are.
        if seed is None:
            seed = np.random.randint(2**31 - 1)
        if self.sample0 is None:
            draws = self.distribution0.sample(n, seed=seed)
        else:
            sizes = tf.concat([[n], tf.shape(self.sample0)], axis=0)
            draws = tf.broadcast_to(tf.convert_to_tensor(self.sample0), sizes)
        for _ in range(self._known_steps):
            draws = self.distribution_fn(draws).sample(seed=seed)
        return draws

    def _log_prob(self, value: Any) -> Any:
        return self.distribution_fn(value).log_prob(value)

    def _prob(self, value: Any) -> Any:
        return self.distribution_fn(value).prob(value)
