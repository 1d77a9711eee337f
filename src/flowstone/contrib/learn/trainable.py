"""What can be trained: the interface of estimators."""

from __future__ import annotations

import abc
from typing import Any

__all__ = ["Trainable"]


class Trainable(abc.ABC):
    """What can be fitted to data."""

    @abc.abstractmethod
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Any = None,
        max_steps: int | None = None,
    ) -> Any:
        """Trains the model, and returns it.

        Args:
            x: features [rows, …]; None where `input_fn` gives them.
            y: labels [rows] or [rows, labels].
            input_fn: a function of no arguments that gives features and labels.
            steps: how many steps to train from here; None trains until the data end.
            batch_size: how many rows of `x` a batch has.
            monitors: monitors or hooks that watch the training.
            max_steps: the global step at which training ends.
        """
