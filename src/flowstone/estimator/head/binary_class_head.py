"""`BinaryClassHead`: two classes, one logit."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.estimator.export.export_output import RegressionOutput
from flowstone.estimator.head.base_head import Head, dense_labels
from flowstone.estimator.head.class_labels import (
    all_class_ids,
    all_classes,
    checked_vocabulary,
    class_texts,
    label_ids,
    score_classes,
)
from flowstone.estimator.head.threshold_metrics import (
    accuracy_baseline,
    at_thresholds,
    checked_thresholds,
    mean_of,
    threshold_names,
)

__all__ = ["BinaryClassHead"]

_METRICS = [
    "average_loss", "accuracy", "precision", "recall", "prediction/mean", "label/mean", "accuracy_baseline",
    "auc", "auc_precision_recall",
]  # fmt: skip


class BinaryClassHead(Head):
    """Two classes by the sigmoid of one logit, trained by its cross entropy.

    Args:
        weight_column: the feature with examples' weights.
        thresholds: probabilities at which accuracy, precision and recall are also computed.
        label_vocabulary: the labels' texts; None: labels are 0 and 1, or probabilities.
        loss_reduction: "sum_over_batch_size" or "sum", or a `tf.losses.Reduction`.
        loss_fn: a function of labels and logits that gives each example's loss.
        name: see `Head`.

    Predictions: logits, logistic, probabilities, class_ids, classes, all_class_ids, all_classes.
    """

    def __init__(
        self, weight_column: Any = None, thresholds: Any = None, label_vocabulary: Any = None,
        loss_reduction: str = "sum_over_batch_size", loss_fn: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, weight_column, loss_reduction, loss_fn)
        self._thresholds = checked_thresholds(thresholds)
        self._label_vocabulary = checked_vocabulary(label_vocabulary, 2)

    @property
    def logits_dimension(self) -> int:
        """1."""
        return 1

    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        """The predictions by name; only those of `keys`, if given."""
        logits = self._checked_logits(logits)
        with tf.name_scope("predictions"):
            two = tf.concat([tf.zeros_like(logits), logits], -1, name="two_class_logits")
            ids = tf.expand_dims(tf.argmax(two, -1, name="class_ids"), -1)
            found = {
                "logits": logits,
                "logistic": tf.sigmoid(logits, name="logistic"),
                "probabilities": tf.nn.softmax(two, name="probabilities"),
                "class_ids": ids,
                "classes": class_texts(ids, self._label_vocabulary),
                "all_class_ids": all_class_ids(logits, 2),
                "all_classes": all_classes(logits, 2, self._label_vocabulary),
            }
        return {key: value for key, value in found.items() if keys is None or key in keys}

    def _labels_and_loss(self, labels: Any, logits: Any, features: Any) -> tuple[Any, Any]:
        labels = dense_labels(labels, logits, 1)
        if self._label_vocabulary is not None:
            labels = label_ids(labels, self._label_vocabulary)
        labels = tf.to_float(labels)
        with tf.name_scope("assert_range"):
            less = tf.assert_less_equal(labels, 1.0, message="Labels must be <= n_classes - 1")
            positive = tf.assert_non_negative(labels, message="Labels must be >= 0")
        with tf.control_dependencies([less, positive]):
            labels = tf.identity(labels)
        if self._loss_fn is not None:
            return labels, self._own_loss(labels, logits, features)
        return labels, tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def metrics(self, regularization_losses: Any = None) -> dict[str, Any]:
        """The metrics by name."""
        return self._empty_metrics([*_METRICS, *threshold_names(self._thresholds)], regularization_losses)

    def _metric_ops(self, loss: Any, logits: Any, regularization: Any) -> dict[str, Any]:
        labels, weights = loss.processed_labels, loss.weights
        predictions = self.predictions(logits, ["logistic", "class_ids"])
        probabilities, ids = predictions["logistic"], predictions["class_ids"]
        with tf.name_scope("metrics"):
            label_mean = mean_of(labels, weights, "label/mean")
            found = {
                "average_loss": mean_of(loss.unreduced_loss, weights, "average_loss"),
                "accuracy": tf.metrics.accuracy(labels, ids, weights, name="accuracy"),
                "precision": tf.metrics.precision(labels, ids, weights, name="precision"),
                "recall": tf.metrics.recall(labels, ids, weights, name="recall"),
                "prediction/mean": mean_of(probabilities, weights, "prediction/mean"),
                "label/mean": label_mean,
                "accuracy_baseline": accuracy_baseline(label_mean),
                "auc": tf.metrics.auc(labels, probabilities, weights, name="auc"),
                "auc_precision_recall": tf.metrics.auc(
                    labels, probabilities, weights, curve="PR", name="auc_precision_recall"
                ),
                **at_thresholds(labels, probabilities, weights, self._thresholds),
            }
            if regularization is not None:
                found["regularization_loss"] = tf.metrics.mean(regularization, name="regularization_loss")
        return self._keyed(found)

    def _exports(self, predictions: dict[str, Any]) -> dict[str, Any]:
        output = score_classes(predictions["probabilities"], 2, self._label_vocabulary)
        return {
            "serving_default": output,
            "classification": output,
            "regression": RegressionOutput(predictions["logistic"]),
        }
