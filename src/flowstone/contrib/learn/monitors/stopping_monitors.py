"""Monitors that end the training: at a step, or when the loss is not a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.learn.monitors.base_monitor import BaseMonitor, EveryN, _extract_output

__all__ = ["NanLoss", "StopAtStep"]


class StopAtStep(BaseMonitor):
    """Ends the training after `num_steps` steps, or at the step `last_step`.

    Raises ValueError unless exactly one of them is given.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        super().__init__()
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    @property
    def run_on_all_workers(self) -> bool:
        """True: every worker stops."""
        return True

    def step_begin(self, step: int) -> list[Any]:
        """Counts from the first step that it sees."""
        super().step_begin(step)
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = step + self._num_steps - 1
        return []

    def step_end(self, step: int, output: Mapping[Any, Any]) -> bool:
        """Whether the last step has been reached."""
        super().step_end(step, output)
        assert self._last_step is not None
        return step >= self._last_step


class NanLoss(EveryN):
    """Ends the training when the loss is not a number.

    Args:
        loss_tensor: the scalar tensor that is the loss.
        every_n_steps: how many steps lie between two on which it is looked at.
        fail_on_nan_loss: whether a NanLossDuringTrainingError is raised; otherwise training stops.
    """

    def __init__(self, loss_tensor: Any, every_n_steps: int = 100, fail_on_nan_loss: bool = True) -> None:
        super().__init__(every_n_steps=every_n_steps)
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def every_n_step_begin(self, step: int) -> list[Any]:
        """Asks for the loss."""
        super().every_n_step_begin(step)
        return [self._loss_tensor]

    def every_n_step_end(self, step: int, outputs: Mapping[Any, Any]) -> bool:
        """Raises NanLossDuringTrainingError, or returns True, if the loss is not a number."""
        super().every_n_step_end(step, outputs)
        if not np.isnan(_extract_output(outputs, self._loss_tensor)):
            return False
        message = "Model diverged with loss = NaN."
        if self._fail_on_nan_loss:
            tf.logging.error(message)
            raise tf.train.NanLossDuringTrainingError
        tf.logging.warning(message)
        return True
