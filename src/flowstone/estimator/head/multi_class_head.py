"""`MultiClassHead`: one of several classes, a logit for each."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.estimator.head.base_head import Head, dense_labels
from flowstone.estimator.head.class_labels import (
    all_class_ids,
    all_classes,
    checked_vocabulary,
    class_texts,
    label_ids,
    score_classes,
)
from flowstone.estimator.head.threshold_metrics import mean_of

__all__ = ["MultiClassHead"]


class MultiClassHead(Head):
    """One of several classes by the softmax of logits, trained by its cross entropy.

    Args:
        n_classes: how many classes, at least 3 (ValueError otherwise).
        weight_column: the feature with examples' weights.
        label_vocabulary: the labels' texts; None: labels are numbers below `n_classes`.
        loss_reduction: "sum_over_batch_size" or "sum", or a `tf.losses.Reduction`.
        loss_fn: a function of labels and logits that gives each example's loss.
        name: see `Head`.

    Predictions: logits, probabilities, class_ids, classes, all_class_ids, all_classes.
    """

    def __init__(
        self, n_classes: int, weight_column: Any = None, label_vocabulary: Any = None,
        loss_reduction: str = "sum_over_batch_size", loss_fn: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, weight_column, loss_reduction, loss_fn)
        if n_classes is None or n_classes <= 2:
            raise ValueError(f"n_classes must be > 2 for classification: {n_classes}.")
        self._n_classes = n_classes
        self._label_vocabulary = checked_vocabulary(label_vocabulary, n_classes)

    @property
    def logits_dimension(self) -> int:
        """The number of classes."""
        return self._n_classes

    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        """The predictions by name; only those of `keys`, if given."""
        logits = self._checked_logits(logits)
        with tf.name_scope("predictions"):
            ids = tf.expand_dims(tf.argmax(logits, -1, name="class_ids"), -1)
            found = {
                "logits": logits,
                "probabilities": tf.nn.softmax(logits, name="probabilities"),
                "class_ids": ids,
                "classes": class_texts(ids, self._label_vocabulary),
                "all_class_ids": all_class_ids(logits, self._n_classes),
                "all_classes": all_classes(logits, self._n_classes, self._label_vocabulary),
            }
        return {key: value for key, value in found.items() if keys is None or key in keys}

    def _labels_and_loss(self, labels: Any, logits: Any, features: Any) -> tuple[Any, Any]:
        ids = label_ids(dense_labels(labels, logits, 1), self._label_vocabulary)
        with tf.name_scope("assert_range"):
            less = tf.assert_less(
                ids, tf.cast(self._n_classes, ids.dtype), message="Labels must be < n_classes"
            )
            positive = tf.assert_non_negative(ids, message="Labels must be >= 0")
        with tf.control_dependencies([less, positive]):
            ids = tf.identity(ids)
        if self._loss_fn is not None:
            return ids, self._own_loss(ids, logits, features)
        loss = tf.losses.sparse_softmax_cross_entropy(
            tf.squeeze(ids, -1), logits, reduction=tf.losses.Reduction.NONE
        )
        return ids, tf.expand_dims(loss, -1)

    def metrics(self, regularization_losses: Any = None) -> dict[str, Any]:
        """The metrics by name."""
        return self._empty_metrics(["average_loss", "accuracy"], regularization_losses)

    def _metric_ops(self, loss: Any, logits: Any, regularization: Any) -> dict[str, Any]:
        ids = self.predictions(logits, ["class_ids"])["class_ids"]
        with tf.name_scope("metrics"):
            found = {
                "average_loss": mean_of(loss.unreduced_loss, loss.weights, "average_loss"),
                "accuracy": tf.metrics.accuracy(loss.processed_labels, ids, loss.weights, name="accuracy"),
            }
            if regularization is not None:
                found["regularization_loss"] = tf.metrics.mean(regularization, name="regularization_loss")
        return self._keyed(found)

    def _exports(self, predictions: dict[str, Any]) -> dict[str, Any]:
        output = score_classes(predictions["probabilities"], self._n_classes, self._label_vocabulary)
        return {"serving_default": output, "classification": output}
