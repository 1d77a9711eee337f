"""What searches hyperparameters: an interface."""

from __future__ import annotations

import abc
from typing import Any

__all__ = ["Tuner"]


class Tuner(abc.ABC):
    """Gives trials of hyperparameters and runs experiments with them."""

    @abc.abstractmethod
    def next_trial(self) -> bool:
        """Goes on to the next trial; false if there is none."""

    @abc.abstractmethod
    def run_experiment(self, experiment_fn: Any) -> None:
        """Runs an experiment that `experiment_fn` makes, as long as there are trials."""
