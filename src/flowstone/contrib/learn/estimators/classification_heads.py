"""The heads of classes: two, several, several at once, and two with a margin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import PredictionKey, ProblemType
from flowstone.contrib.learn.estimators.head_losses import (
    hinge_loss,
    log_loss_with_two_classes,
    sigmoid_cross_entropy_loss,
    softmax_cross_entropy_loss,
    wrapped_loss,
)
from flowstone.contrib.learn.estimators.metric_key import MetricKey as mkey
from flowstone.contrib.learn.estimators.single_head import SingleHead

__all__ = ["BinaryLogisticHead", "BinarySvmHead", "MultiClassHead", "MultiLabelHead"]


class BinaryLogisticHead(SingleHead):
    """Two classes by the logistic function of one logit."""

    def __init__(
        self, label_name: Any, weight_column_name: Any, enable_centered_bias: bool, head_name: str | None,
        loss_fn: Any, thresholds: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            ProblemType.LOGISTIC_REGRESSION, 1, label_name, weight_column_name, head_name,
            "binary_logistic_head", log_loss_with_two_classes if loss_fn is None else wrapped_loss(loss_fn),
            enable_centered_bias,
        )  # fmt: skip
        self._thresholds = tuple(thresholds) if thresholds else (0.5,)

    def _predictions(self, logits: Any) -> dict[str, Any]:
        with tf.name_scope(None, "predictions", (logits,)):
            two = tf.concat((tf.zeros_like(logits), logits), 1)
            return {
                PredictionKey.LOGITS: logits,
                PredictionKey.LOGISTIC: tf.sigmoid(logits, name=PredictionKey.LOGISTIC),
                PredictionKey.PROBABILITIES: tf.nn.softmax(two, name=PredictionKey.PROBABILITIES),
                PredictionKey.CLASSES: tf.argmax(two, 1, name=PredictionKey.CLASSES),
            }

    def _output_alternatives(self, predictions: dict[str, Any]) -> dict[Any, Any]:
        return _classes_as_text(self._head_name, self._problem_type, predictions)

    def _metrics(self, average_loss: Any, labels: Any, predictions: Any, weights: Any) -> dict[str, Any]:
        labels = _column(tf.to_float(labels))
        weights = None if weights is None else _column(weights)
        logistic = predictions[PredictionKey.LOGISTIC]
        classes = _column(tf.to_float(predictions[PredictionKey.CLASSES]))
        found = {
            mkey.LOSS: tf.metrics.mean(average_loss),
            mkey.ACCURACY: tf.metrics.accuracy(labels, classes, weights),
            mkey.PREDICTION_MEAN: tf.metrics.mean(logistic, weights),
            mkey.LABEL_MEAN: tf.metrics.mean(labels, weights),
            mkey.ACCURACY_BASELINE: tf.metrics.mean(labels, weights),
            mkey.AUC: tf.metrics.auc(labels, logistic, weights),
            mkey.AUC_PR: tf.metrics.auc(labels, logistic, weights, curve="PR"),
        }
        for threshold in self._thresholds:
            above = tf.to_float(tf.greater_equal(logistic, threshold))
            found[mkey.ACCURACY_MEAN % threshold] = tf.metrics.accuracy(labels, above, weights)
            found[mkey.PRECISION_MEAN % threshold] = _first(
                tf.metrics.precision_at_thresholds(labels, logistic, [threshold], weights)
            )
            found[mkey.RECALL_MEAN % threshold] = _first(
                tf.metrics.recall_at_thresholds(labels, logistic, [threshold], weights)
            )
        return found


class BinarySvmHead(SingleHead):
    """Two classes by the sign of one logit, with the hinge loss."""

    def __init__(
        self, label_name: Any, weight_column_name: Any, enable_centered_bias: bool, head_name: str | None,
        thresholds: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            ProblemType.LOGISTIC_REGRESSION, 1, label_name, weight_column_name, head_name,
            "binary_svm_head", hinge_loss, enable_centered_bias,
        )  # fmt: skip
        self._thresholds = tuple(thresholds) if thresholds else (0.5,)

    def _predictions(self, logits: Any) -> dict[str, Any]:
        with tf.name_scope(None, "predictions", (logits,)):
            two = tf.concat((tf.zeros_like(logits), logits), 1)
            classes = tf.argmax(two, 1, name=PredictionKey.CLASSES)
            return {PredictionKey.LOGITS: logits, PredictionKey.CLASSES: classes}

    def _metrics(self, average_loss: Any, labels: Any, predictions: Any, weights: Any) -> dict[str, Any]:
        weights = None if weights is None else _column(weights)
        classes = _column(tf.to_float(predictions[PredictionKey.CLASSES]))
        return {
            mkey.LOSS: tf.metrics.mean(average_loss),
            mkey.ACCURACY: tf.metrics.accuracy(_column(tf.to_float(labels)), classes, weights),
        }


class MultiClassHead(SingleHead):
    """One of several classes, by the softmax of as many logits."""

    def __init__(
        self, n_classes: int, label_name: Any, weight_column_name: Any, enable_centered_bias: bool,
        head_name: str | None, loss_fn: Any, thresholds: Any, metric_class_ids: Any, label_keys: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            ProblemType.CLASSIFICATION, n_classes, label_name, weight_column_name, head_name,
            "multi_class_head", softmax_cross_entropy_loss if loss_fn is None else wrapped_loss(loss_fn),
            enable_centered_bias,
        )  # fmt: skip
        if n_classes <= 2:
            raise ValueError(f"n_classes must be > 2: {n_classes}.")
        self._thresholds = tuple(thresholds or ())
        self._metric_class_ids = _checked_ids(metric_class_ids, n_classes)
        if label_keys and len(label_keys) != n_classes:
            raise ValueError("label_keys must have size n_classes.")
        self._label_keys = list(label_keys) if label_keys else None

    def _transform_labels(self, mode: str, labels: Any) -> Any:
        found = super()._transform_labels(mode, labels)
        if found is None or self._label_keys is None:
            return found
        table = tf.contrib.lookup.index_table_from_tensor(self._label_keys, name="label_id_lookup")
        return table.lookup(found)

    def _predictions(self, logits: Any) -> dict[str, Any]:
        with tf.name_scope(None, "predictions", (logits,)):
            found = {
                PredictionKey.LOGITS: logits,
                PredictionKey.PROBABILITIES: tf.nn.softmax(logits, name=PredictionKey.PROBABILITIES),
            }
            ids = tf.argmax(logits, 1, name=PredictionKey.CLASSES)
            if self._label_keys is not None:
                table = tf.contrib.lookup.index_to_string_table_from_tensor(
                    self._label_keys, name="class_string_lookup"
                )
                ids = table.lookup(ids)
            return {**found, PredictionKey.CLASSES: ids}

    def _output_alternatives(self, predictions: dict[str, Any]) -> dict[Any, Any]:
        return _classes_as_text(self._head_name, self._problem_type, predictions, self._label_keys)

    def _metrics(self, average_loss: Any, labels: Any, predictions: Any, weights: Any) -> dict[str, Any]:
        if len(labels.shape) == 2:
            labels = tf.squeeze(labels, [1])
        weights = None if weights is None else _row(weights)
        logits = predictions[PredictionKey.LOGITS]
        probabilities = predictions[PredictionKey.PROBABILITIES]
        ids = tf.argmax(logits, 1)
        found = {
            mkey.LOSS: tf.metrics.mean(average_loss),
            mkey.ACCURACY: tf.metrics.accuracy(labels, ids, weights),
        }
        for each in self._metric_class_ids:
            mean = tf.metrics.mean
            found[mkey.CLASS_PREDICTION_MEAN % each] = mean(tf.to_float(tf.equal(ids, each)), weights)
            found[mkey.CLASS_LABEL_MEAN % each] = mean(
                tf.to_float(tf.equal(labels, tf.cast(each, labels.dtype))), weights
            )
            found[mkey.CLASS_PROBABILITY_MEAN % each] = mean(probabilities[:, each], weights)
            found[mkey.CLASS_LOGITS_MEAN % each] = mean(logits[:, each], weights)
        return found


class MultiLabelHead(SingleHead):
    """Classes that do not exclude each other, by the logistic function of a logit each."""

    def __init__(
        self, n_classes: int, label_name: Any, weight_column_name: Any, enable_centered_bias: bool,
        head_name: str | None, thresholds: Any, metric_class_ids: Any, loss_fn: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            ProblemType.CLASSIFICATION, n_classes, label_name, weight_column_name, head_name,
            "multi_label_head", sigmoid_cross_entropy_loss if loss_fn is None else wrapped_loss(loss_fn),
            enable_centered_bias,
        )  # fmt: skip
        self._thresholds = tuple(thresholds or ())
        self._metric_class_ids = _checked_ids(metric_class_ids, n_classes)

    def _transform_labels(self, mode: str, labels: Any) -> Any:
        given = labels[self._label_name] if isinstance(labels, dict) else labels
        if isinstance(given, tf.SparseTensor) and mode != "infer":
            return tf.to_int64(tf.sparse_to_indicator(tf.cast(given, tf.int64), self._logits_dimension))
        return super()._transform_labels(mode, labels)

    def _predictions(self, logits: Any) -> dict[str, Any]:
        with tf.name_scope(None, "predictions", (logits,)):
            above = tf.to_int64(tf.greater(logits, 0.0), name=PredictionKey.CLASSES)
            return {
                PredictionKey.LOGITS: logits,
                PredictionKey.PROBABILITIES: tf.sigmoid(logits, name=PredictionKey.PROBABILITIES),
                PredictionKey.CLASSES: above,
            }

    def _output_alternatives(self, predictions: dict[str, Any]) -> dict[Any, Any]:
        return _classes_as_text(self._head_name, self._problem_type, predictions)

    def _metrics(self, average_loss: Any, labels: Any, predictions: Any, weights: Any) -> dict[str, Any]:
        logits = predictions[PredictionKey.LOGITS]
        probabilities, classes = (
            predictions[PredictionKey.PROBABILITIES], predictions[PredictionKey.CLASSES],
        )  # fmt: skip
        row = None if weights is None or weights.shape.as_list()[1:] not in ([], [1]) else _row(weights)
        weights = weights if row is None else _column(row)
        found = {
            mkey.LOSS: tf.metrics.mean(average_loss),
            mkey.ACCURACY: tf.metrics.accuracy(labels, classes, weights),
            mkey.AUC: tf.metrics.auc(labels, probabilities, weights),
            mkey.AUC_PR: tf.metrics.auc(labels, probabilities, weights, curve="PR"),
        }
        for each in self._metric_class_ids:
            mean = tf.metrics.mean
            truth = tf.to_float(labels[:, each])
            found[mkey.CLASS_PREDICTION_MEAN % each] = mean(tf.to_float(classes[:, each]), row)
            found[mkey.CLASS_LABEL_MEAN % each] = mean(truth, row)
            found[mkey.CLASS_PROBABILITY_MEAN % each] = mean(probabilities[:, each], row)
            found[mkey.CLASS_LOGITS_MEAN % each] = mean(logits[:, each], row)
            found[mkey.CLASS_AUC % each] = tf.metrics.auc(truth, probabilities[:, each], row)
            found[mkey.CLASS_AUC_PR % each] = tf.metrics.auc(truth, probabilities[:, each], row, curve="PR")
        return found


def _checked_ids(ids: Iterable[int] | None, n_classes: int) -> tuple[int, ...]:
    found = tuple(ids or ())
    for each in found:
        if not 0 <= each < n_classes:
            raise ValueError(f"Class ID {each} not in [0, {n_classes}).")
    return found


def _column(values: Any) -> Any:
    """The values as [batch, 1]."""
    return tf.expand_dims(values, 1) if len(values.shape) == 1 else values


def _row(values: Any) -> Any:
    """The values as [batch]."""
    return tf.squeeze(values, [1]) if len(values.shape) == 2 else values


def _first(metric: tuple[Any, Any]) -> tuple[Any, Any]:
    """The metric of the only threshold."""
    value, update = metric
    return tf.squeeze(value), tf.squeeze(update)


def _classes_as_text(
    head_name: str | None, problem_type: int, predictions: dict[str, Any], keys: Any = None
) -> dict[Any, Any]:
    """What is served: the probabilities, and the names of all classes for each example."""
    with tf.name_scope(None, "_classification_output_alternatives", tuple(predictions.values())):
        probabilities = predictions[PredictionKey.PROBABILITIES]
        size, count = tf.shape(probabilities)[0], probabilities.shape[-1].value
        names = tf.constant(list(keys)) if keys is not None else tf.as_string(tf.range(count))
        classes = tf.tile(tf.expand_dims(names, 0), [size, 1], name="classes_tensor")
        served = {PredictionKey.PROBABILITIES: probabilities, PredictionKey.CLASSES: classes}
        return {head_name: (problem_type, served)}
