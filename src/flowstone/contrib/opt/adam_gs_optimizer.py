"""Adam whose powers of beta follow from the global step, so that a step updates no variable for them."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.opt.adam_variants import LazyAdamOptimizer
from flowstone.training.optimizers.adam import AdamOptimizer

__all__ = ["AdamGSOptimizer", "LazyAdamGSOptimizer"]


class AdamGSOptimizer(AdamOptimizer):
    """Adam (Kingma and Ba 2014) corrected by ``beta ** (global_step + 1)``.

    Args:
        global_step: the number of steps before this one: an integer, variable or tensor.

    The other arguments are those of `tf.train.AdamOptimizer`.
    """

    def __init__(
        self,
        global_step: Any = 0,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)
        self._global_step = global_step
        self._powers: tuple[Any, Any] | None = None

    def _create_slots(self, var_list: Any) -> None:
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _prepare(self) -> None:
        super()._prepare()
        step = tf.cast(tf.convert_to_tensor(self._global_step) + 1, tf.float32)
        betas = (tf.cast(beta, tf.float32) for beta in (self._beta1_t, self._beta2_t))
        beta1_power, beta2_power = (tf.pow(beta, step) for beta in betas)
        self._powers = (beta1_power, beta2_power)

    def _get_beta_accumulators(self) -> Any:
        return self._powers

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        return tf.group(*update_ops, name=name_scope)


class LazyAdamGSOptimizer(AdamGSOptimizer, LazyAdamOptimizer):
    """`LazyAdamOptimizer` with the correction and the arguments of `AdamGSOptimizer`."""
