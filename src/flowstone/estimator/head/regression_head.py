"""Heads of regression: `RegressionHead`, `PoissonRegressionHead`, `LogisticRegressionHead`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.estimator.export.export_output import RegressionOutput
from flowstone.estimator.head.base_head import Head, dense_labels
from flowstone.estimator.head.threshold_metrics import mean_of

__all__ = ["LogisticRegressionHead", "PoissonRegressionHead", "RegressionHead"]


class RegressionHead(Head):
    """Real values, trained by the squared error.

    Args:
        label_dimension: the size of labels' and logits' last axis, at least 1 (ValueError otherwise).
        weight_column: the feature with examples' weights.
        loss_reduction: "sum_over_batch_size" or "sum", or a `tf.losses.Reduction`.
        loss_fn: a function of labels and logits that gives each example's loss.
        inverse_link_fn: from logits to predictions.
        name: see `Head`.

    Predictions: predictions, and logits if there is an `inverse_link_fn`.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: Any = None,
        inverse_link_fn: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name, weight_column, loss_reduction, loss_fn)
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}.")
        self._logits_dimension, self._inverse_link_fn = label_dimension, inverse_link_fn

    @property
    def logits_dimension(self) -> int:
        """The size of the labels' last axis."""
        return self._logits_dimension

    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        """The predictions by name."""
        del keys
        logits = self._checked_logits(logits)
        with tf.name_scope("predictions"):
            if self._inverse_link_fn is None:
                return {"predictions": logits}
            return {"predictions": self._inverse_link_fn(logits), "logits": logits}

    def _labels_and_loss(self, labels: Any, logits: Any, features: Any) -> tuple[Any, Any]:
        labels = tf.to_float(dense_labels(labels, logits, self._logits_dimension))
        if self._loss_fn is not None:
            return labels, self._own_loss(labels, logits, features)
        return labels, tf.losses.mean_squared_error(labels, logits, reduction=tf.losses.Reduction.NONE)

    def metrics(self, regularization_losses: Any = None) -> dict[str, Any]:
        """The metrics by name."""
        return self._empty_metrics(["average_loss", "prediction/mean", "label/mean"], regularization_losses)

    def _metric_ops(self, loss: Any, logits: Any, regularization: Any) -> dict[str, Any]:
        predictions = self.predictions(logits)["predictions"]
        found = {
            "average_loss": mean_of(loss.unreduced_loss, loss.weights),
            "prediction/mean": mean_of(predictions, loss.weights, "prediction/mean"),
            "label/mean": mean_of(loss.processed_labels, loss.weights),
        }
        if regularization is not None:
            found["regularization_loss"] = tf.metrics.mean(regularization, name="regularization_loss")
        return self._keyed(found)

    def _exports(self, predictions: dict[str, Any]) -> dict[str, Any]:
        output = RegressionOutput(predictions["predictions"])
        return {"serving_default": output, "regression": output}


class PoissonRegressionHead(RegressionHead):
    """Counts, whose logarithms are the logits, trained by the Poisson distribution's likelihood.

    Args: as of `RegressionHead`; `compute_full_loss`: with the logarithm of the labels' factorials, by
    Stirling's approximation.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        compute_full_loss: bool = True,
        name: str | None = None,
    ) -> None:
        def poisson_loss(labels: Any, logits: Any) -> Any:
            return tf.nn.log_poisson_loss(labels, logits, compute_full_loss=compute_full_loss)

        super().__init__(label_dimension, weight_column, loss_reduction, poisson_loss, tf.exp, name)


class LogisticRegressionHead(RegressionHead):
    """Probabilities by the sigmoid of one logit, trained by its cross entropy with labels between 0 and 1.

    Args: as of `RegressionHead`.
    """

    def __init__(
        self, weight_column: Any = None, loss_reduction: str = "sum_over_batch_size", name: str | None = None
    ) -> None:
        def logistic_loss(labels: Any, logits: Any) -> Any:
            least = tf.assert_non_negative(labels, message="Labels must be in range [0, 1]")
            most = tf.assert_less_equal(labels, 1.0, message="Labels must be in range [0, 1]")
            with tf.control_dependencies([least, most]):
                labels = tf.identity(labels)
            return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

        super().__init__(1, weight_column, loss_reduction, logistic_loss, tf.sigmoid, name)
