"""`CustomLossHead`: a head of a loss and a link that a program gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.contrib.learn.constants import PredictionKey
from flowstone.contrib.learn.estimators.head import _RegressionHead

__all__ = ["CustomLossHead"]


class CustomLossHead(_RegressionHead):
    """Numbers by a loss of one's own.

    Args:
        loss_fn: the loss by (labels, logits, weights).
        link_fn: the predictions by logits.
        logit_dimension: how many logits an example has.
        head_name, weight_column_name: see the heads of `tf.contrib.learn`.
        metrics_fn: more metrics by (predictions, labels, weights).
    """

    def __init__(
        self,
        loss_fn: Callable[..., Any],
        link_fn: Callable[[Any], Any],
        logit_dimension: int,
        head_name: str | None = None,
        weight_column_name: str | None = None,
        metrics_fn: Callable[..., Any] | None = None,
    ) -> None:
        def loss_and_average(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
            loss = loss_fn(labels, logits, weights)
            return loss, loss

        super().__init__(
            label_name=None,
            weight_column_name=weight_column_name,
            label_dimension=logit_dimension,
            enable_centered_bias=False,
            head_name=head_name,
            loss_fn=loss_and_average,
            link_fn=link_fn,
        )
        self._metrics_fn = metrics_fn

    def _metrics(self, average_loss: Any, labels: Any, predictions: Any, weights: Any) -> dict[str, Any]:
        found = super()._metrics(average_loss, labels, predictions, weights)
        if self._metrics_fn is not None:
            found.update(self._metrics_fn(predictions[PredictionKey.SCORES], labels, weights))
        return found
