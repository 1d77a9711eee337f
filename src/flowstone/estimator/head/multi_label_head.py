"""`MultiLabelHead`: any of several classes, a logit for each."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.estimator.head.base_head import Head, dense_labels
from flowstone.estimator.head.class_labels import checked_vocabulary, label_ids, score_classes
from flowstone.estimator.head.threshold_metrics import (
    at_thresholds,
    checked_thresholds,
    mean_of,
    threshold_names,
)

__all__ = ["MultiLabelHead"]


class MultiLabelHead(Head):
    """Any of several classes by the sigmoids of logits, trained by the mean of their cross entropies.

    Args:
        n_classes: how many classes, at least 2 (ValueError otherwise).
        weight_column: the feature with examples' weights.
        thresholds: probabilities at which accuracy, precision and recall are also computed.
        label_vocabulary: the labels' texts. Labels are a SparseTensor of texts or numbers, or a dense tensor
            [batch, n_classes] of zeros and ones.
        loss_reduction: "sum_over_batch_size" or "sum", or a `tf.losses.Reduction`.
        loss_fn: a function of labels and logits that gives each example's loss.
        classes_for_class_based_metrics: classes, numbers or texts, with metrics of their own.
        name: see `Head`.

    Predictions: logits, probabilities.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: Any = None,
        classes_for_class_based_metrics: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name, weight_column, loss_reduction, loss_fn)
        if n_classes is None or n_classes < 2:
            raise ValueError(f"n_classes must be > 1 for multi-label classification. Given: {n_classes}")
        self._n_classes = n_classes
        self._thresholds = checked_thresholds(thresholds)
        self._label_vocabulary = checked_vocabulary(label_vocabulary, n_classes)
        self._classes = self._checked_classes(classes_for_class_based_metrics)

    def _checked_classes(self, classes: Any) -> list[int]:
        found = []
        for each in classes or ():
            number = self._label_vocabulary.index(each) if isinstance(each, str) else each
            if not 0 <= number < self._n_classes:
                raise ValueError(
                    f"All classes_for_class_based_metrics must be in range [0, n_classes). Given: {each}"
                )
            found.append(number)
        return found

    @property
    def logits_dimension(self) -> int:
        """The number of classes."""
        return self._n_classes

    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        """The predictions by name; only those of `keys`, if given."""
        logits = self._checked_logits(logits)
        with tf.name_scope("predictions"):
            found = {"logits": logits, "probabilities": tf.sigmoid(logits, name="probabilities")}
        return {key: value for key, value in found.items() if keys is None or key in keys}

    def _indicators(self, labels: Any, logits: Any) -> Any:
        """The labels as zeros and ones [batch, classes]."""
        if isinstance(labels, (tf.SparseTensor, tf.SparseTensorValue)):
            labels = tf.SparseTensor.from_value(labels)
            ids = label_ids(labels.values, self._label_vocabulary)
            sparse = tf.SparseTensor(labels.indices, tf.to_int64(ids), labels.dense_shape)
            return tf.to_int64(tf.sparse_to_indicator(sparse, self._n_classes))
        labels = dense_labels(labels, logits, self._n_classes)
        if not labels.dtype.is_integer:
            raise ValueError(f"Labels dtype should be integer. Instead got {labels.dtype}.")
        least = tf.assert_non_negative(labels, message="labels must be an integer indicator in {0, 1}")
        most = tf.assert_less_equal(
            labels, tf.ones([], labels.dtype), message="labels must be an integer indicator in {0, 1}"
        )
        with tf.control_dependencies([least, most]):
            return tf.identity(labels)

    def _labels_and_loss(self, labels: Any, logits: Any, features: Any) -> tuple[Any, Any]:
        labels = self._indicators(labels, logits)
        if self._loss_fn is not None:
            return labels, self._own_loss(labels, logits, features)
        loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.to_float(labels), logits=logits)
        return labels, tf.reduce_mean(loss, -1, keepdims=True)

    def _class_names(self) -> list[tuple[int, str]]:
        """The classes with metrics of their own, and the ends of these metrics' names."""
        vocabulary = self._label_vocabulary
        return [
            (each, f"class{each}" if vocabulary is None else str(vocabulary[each])) for each in self._classes
        ]

    def metrics(self, regularization_losses: Any = None) -> dict[str, Any]:
        """The metrics by name."""
        names = ["average_loss", "auc", "auc_precision_recall", *threshold_names(self._thresholds)]
        for _, end in self._class_names():
            kinds = ("probability_mean", "auc", "auc_precision_recall")
            names += [f"{kind}/{end}" for kind in kinds]
        return self._empty_metrics(names, regularization_losses)

    def _metric_ops(self, loss: Any, logits: Any, regularization: Any) -> dict[str, Any]:
        labels, weights = loss.processed_labels, loss.weights
        probabilities = self.predictions(logits, ["probabilities"])["probabilities"]
        with tf.name_scope("metrics"):
            found = {
                "average_loss": mean_of(loss.unreduced_loss, weights, "average_loss"),
                "auc": tf.metrics.auc(labels, probabilities, weights, name="auc"),
                "auc_precision_recall": tf.metrics.auc(
                    labels, probabilities, weights, curve="PR", name="auc_precision_recall"
                ),
                **at_thresholds(labels, probabilities, weights, self._thresholds),
            }
            for number, end in self._class_names():
                truth, chance = labels[:, number : number + 1], probabilities[:, number : number + 1]
                found[f"probability_mean/{end}"] = mean_of(chance, weights, f"probability_mean_{number}")
                found[f"auc/{end}"] = tf.metrics.auc(truth, chance, weights)
                found[f"auc_precision_recall/{end}"] = tf.metrics.auc(truth, chance, weights, curve="PR")
            if regularization is not None:
                found["regularization_loss"] = tf.metrics.mean(regularization)
        return self._keyed(found)

    def _exports(self, predictions: dict[str, Any]) -> dict[str, Any]:
        output = score_classes(predictions["probabilities"], self._n_classes, self._label_vocabulary)
        return {"serving_default": output, "classification": output}
