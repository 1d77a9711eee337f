"""An optimiser that leaves out gradients of variables that others have updated too often since."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["DropStaleGradientOptimizer"]


class DropStaleGradientOptimizer(Optimizer):
    """Wraps an optimiser: a step is taken if the global step grew by at most `staleness` meanwhile.

    Its variable `stale_counter` counts the steps that were left out; their part of all is in a summary.

    Args:
        opt: the optimiser.
        staleness: the number of steps that others may take meanwhile.
        use_locking, name: as of `tf.train.Optimizer`.
    """

    def __init__(
        self, opt: Any, staleness: int, use_locking: bool = False, name: str = "DropStaleGradient"
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._staleness = staleness
        self._local_step: Any = None

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """As of the optimiser, with the global step as it was before noted."""
        step = tf.train.get_or_create_global_step()
        self._local_step = step.read_value() + 0
        with tf.control_dependencies([self._local_step]):
            return self._opt.compute_gradients(tf.identity(loss), *args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The optimiser's slot."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The names of the optimiser's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Any]:
        """The optimiser's variables."""
        return self._opt.variables()  # type: ignore[no-any-return]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The operation of the step, or of leaving it out. ValueError without `global_step`."""
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        pairs = list(grads_and_vars)
        counter = tf.get_variable(
            "stale_counter", [], initializer=tf.zeros_initializer(), trainable=False, dtype=tf.float32
        )
        before = 0 if self._local_step is None else self._local_step
        with tf.control_dependencies([grad for grad, _ in pairs if grad is not None]):
            staleness = tf.reshape(global_step.read_value() - before, [])

        def step() -> Any:
            with tf.control_dependencies([self._opt.apply_gradients(pairs, global_step, name)]):
                return tf.constant(0.0)

        left_out = tf.cond(tf.less_equal(staleness, self._staleness), step, lambda: tf.constant(1.0))
        part = counter.read_value() / (tf.cast(global_step.read_value(), tf.float32) + 1.0)
        tf.summary.scalar("Gradient_staleness_percentage", part)
        return tf.assign_add(counter, left_out).op
