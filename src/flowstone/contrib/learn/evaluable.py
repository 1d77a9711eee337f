"""What can be evaluated: the interface of estimators."""

from __future__ import annotations

import abc
from typing import Any

__all__ = ["Evaluable"]


class Evaluable(abc.ABC):
    """What has a folder of checkpoints and can be evaluated on data."""

    @property
    @abc.abstractmethod
    def model_dir(self) -> str:
        """The folder of checkpoints."""

    @abc.abstractmethod
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Any = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Any = None,
    ) -> Any:
        """Evaluates a checkpoint.

        Args:
            x: features [rows, …]; None where `input_fn` gives them.
            y: labels [rows] or [rows, labels].
            input_fn: a function of no arguments that gives features and labels.
            feed_fn: gives a feed for each batch, where `input_fn` makes placeholders.
            batch_size: how many rows of `x` a batch has.
            steps: how many batches; None takes all.
            metrics: the metrics, `MetricSpec`s by name.
            name: tells evaluations of several sets apart.
            checkpoint_path: the checkpoint; None takes the latest.
            hooks: of the evaluation's session.

        Returns a dict of results by metric, with the global step.
        """
