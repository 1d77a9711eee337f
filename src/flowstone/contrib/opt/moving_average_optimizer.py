"""An optimiser that also keeps moving averages of what it trains."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["MovingAverageOptimizer"]


class MovingAverageOptimizer(Optimizer):
    """Wraps an optimiser and, after each of its steps, updates exponential moving averages of the variables.

    Args:
        opt: the optimiser.
        average_decay, num_updates: as of `tf.train.ExponentialMovingAverage`.
        sequential_update: whether the averages wait for the step, or may be of before it.
    """

    def __init__(
        self, opt: Any, average_decay: float = 0.9999, num_updates: Any = None, sequential_update: bool = True
    ) -> None:
        self._optimizer = opt
        self._ema = tf.train.ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._swapped_variable_name_map: dict[str, str] | None = None
        self._sequential_update = sequential_update

    def get_name(self) -> str:
        """The optimiser's name."""
        return self._optimizer.get_name()  # type: ignore[no-any-return]

    def get_slot(self, var: Any, name: str) -> Any:
        """The optimiser's slot."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the optimiser's slots."""
        return self._optimizer.get_slot_names()  # type: ignore[no-any-return]

    def variables(self) -> list[Any]:
        """The optimiser's variables."""
        return self._optimizer.variables()  # type: ignore[no-any-return]

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """As of the optimiser."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The operation of the optimiser's step and of the averages'."""
        pairs = list(grads_and_vars)
        train_op = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        var_list = [var for grad, var in pairs if grad is not None]
        self._swapped_variable_name_map = {}
        if self._sequential_update:
            with tf.control_dependencies([train_op]):
                averages = self._ema.apply(var_list)
        else:
            averages = self._ema.apply(var_list)
        for var in var_list:
            average = self._ema.average(var)
            self._swapped_variable_name_map[var.op.name] = average.op.name
            self._swapped_variable_name_map[average.op.name] = var.op.name
        return tf.group(train_op, averages, name="train_with_avg")

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Any:
        """A Saver that saves the averages under the variables' names and the variables under the averages'.

        Args:
            var_list: what is saved: a list or a dict by name; None for all variables.
            name: of the saver. kwargs: further arguments of `tf.train.Saver`.

        Raises RuntimeError before `apply_gradients`, ValueError for an average without its variable.
        """
        if self._swapped_variable_name_map is None:
            raise RuntimeError("Must call apply_gradients or minimize before creating the swapping_saver")
        variables = tf.global_variables() if var_list is None else var_list
        if not isinstance(variables, dict):
            variables = {var.op.name: var for var in variables}
        by_own_name = {var.op.name: key for key, var in variables.items() if hasattr(var, "op")}
        swapped = {}
        for key, var in variables.items():
            other = self._swapped_variable_name_map.get(getattr(getattr(var, "op", None), "name", ""), None)
            if other is not None and other not in by_own_name:
                raise ValueError(f"Variable to swap {other} is not part of variables to save")
            swapped[key if other is None else by_own_name[other]] = var
        return tf.train.Saver(swapped, name=name, **kwargs)
