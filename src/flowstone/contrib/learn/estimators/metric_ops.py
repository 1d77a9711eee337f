"""The metrics that a caller asks an evaluation for, beside the model's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["make_metrics_ops"]


def make_metrics_ops(metrics: Any, features: Any, labels: Any, predictions: Any) -> dict[Any, Any]:
    """The pairs of value and update by name.

    Args:
        metrics: a dict from names to MetricSpecs, or to functions of predictions and labels; of such a
            function
            the key may be a pair: the metric's name and that of the prediction.
        features, labels, predictions: of the model.

    Raises ValueError for what is no dict, and for a function that does not say which of several predictions
    it takes; KeyError for one that the model lacks.
    """
    metrics = metrics or {}
    if not isinstance(metrics, Mapping):
        raise ValueError(f"Metrics must be a dict, given: {metrics}")
    labels = _only_of(labels)
    found: dict[Any, Any] = {}
    for name, metric in sorted(metrics.items(), key=lambda pair: str(pair[0])):
        if hasattr(metric, "create_metric_ops"):
            found[name] = metric.create_metric_ops(features, labels, predictions)
            continue
        if isinstance(name, tuple):
            if len(name) != 2:
                raise ValueError(
                    f"Invalid metric for {name}. It returned a tuple with len {len(name)}, expected 2."
                )
            if not isinstance(predictions, Mapping):
                raise ValueError(
                    f"Metrics passed provide (name, prediction), but predictions are not dict. Metrics: "
                    f"{metrics}, Predictions: {predictions}."
                )
            found[name[0]] = _called(metric, predictions[name[1]], labels)
            continue
        if isinstance(predictions, Mapping):
            raise ValueError(
                f"Metrics passed provide only name, no prediction, but predictions are dict. Metrics: "
                f"{metrics}, "
                f"Labels: {labels}."
            )
        found[name] = _called(metric, predictions, labels)
    return found


def _called(metric: Any, predictions: Any, labels: Any) -> Any:
    if isinstance(labels, Mapping):
        raise ValueError(f"Metrics passed provide only name, no label, but labels are dict: {labels}.")
    return metric(predictions, labels)


def _only_of(labels: Any) -> Any:
    """The labels themselves, if they are a dict of one."""
    if isinstance(labels, Mapping) and len(labels) == 1:
        return next(iter(labels.values()))
    return labels
