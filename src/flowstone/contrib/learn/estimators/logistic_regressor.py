"""`LogisticRegressor`: a program's model of probabilities, with the metrics of two classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import ModeKeys
from flowstone.contrib.learn.estimators.estimator import Estimator
from flowstone.contrib.learn.estimators.metric_key import MetricKey
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps
from flowstone.estimator.function_arguments import argument_names

__all__ = ["LogisticRegressor"]


def LogisticRegressor(
    model_fn: Callable[..., Any],
    thresholds: Iterable[float] | None = None,
    model_dir: Any = None,
    config: Any = None,
    feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
) -> Estimator:
    """An Estimator of probabilities, whose evaluation has AUC, accuracy, precision and recall.

    Args:
        model_fn: a function of (features, labels, mode) that returns a tuple of probabilities, a tensor of
            the labels' shape, loss and training operation.
        thresholds: of probabilities, for the metrics; 0.5 alone if None.
        model_dir, config, feature_engineering_fn: see `Estimator`.
    """
    given = tuple(thresholds) if thresholds else (0.5,)

    def with_metrics(features: Any, labels: Any, mode: str, params: Any, config: Any) -> ModelFnOps:
        accepted = argument_names(model_fn)
        offered = {"mode": mode, "params": params, "config": config}
        ops = model_fn(features, labels, **{name: offered[name] for name in offered if name in accepted})
        if not isinstance(ops, ModelFnOps):
            ops = ModelFnOps(mode=mode, predictions=ops[0], loss=ops[1], train_op=ops[2])
        if mode != ModeKeys.EVAL:
            return ops
        found = _metrics(ops.predictions, tf.to_float(labels), given)
        return ops._replace(eval_metric_ops={**ops.eval_metric_ops, **found})

    return Estimator(with_metrics, model_dir, config, None, feature_engineering_fn)


def _metrics(predictions: Any, labels: Any, thresholds: tuple[float, ...]) -> dict[str, Any]:
    found = {
        MetricKey.PREDICTION_MEAN: tf.metrics.mean(predictions),
        MetricKey.LABEL_MEAN: tf.metrics.mean(labels),
        MetricKey.ACCURACY_BASELINE: tf.metrics.mean(labels),
        MetricKey.AUC: tf.metrics.auc(labels, predictions),
    }
    for threshold in thresholds:
        above = tf.to_float(tf.greater_equal(predictions, threshold))
        found[MetricKey.ACCURACY_MEAN % threshold] = tf.metrics.accuracy(labels, above)
        found[MetricKey.PRECISION_MEAN % threshold] = tf.metrics.precision(labels, above)
        found[MetricKey.RECALL_MEAN % threshold] = tf.metrics.recall(labels, above)
    return found
