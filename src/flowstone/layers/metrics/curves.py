"""Metrics read off a curve of counts at many thresholds: the area below it, and one rate where another is
given.

The thresholds are evenly spaced from just below 0 to just above 1; for the specificity at a sensitivity, to
just below 1, so that the last one still has positives.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.process.logging import warning
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.layers.metrics.state import Names, published, safe_ratio
from flowstone.layers.metrics.thresholds import COUNTS, SMALL, counts_at
from flowstone.ops.arrays.choice import where
from flowstone.ops.arrays.constants import ones_like
from flowstone.ops.numbers.accumulations import cumsum
from flowstone.ops.numbers.arithmetic import abs, maximum, minimum, multiply
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import equal, logical_and
from flowstone.ops.numbers.division import div
from flowstone.ops.numbers.extreme_positions import argmax, argmin
from flowstone.ops.numbers.functions import log
from flowstone.ops.numbers.reductions import reduce_min, reduce_sum
from flowstone.ops.variables.variable_scope import variable_scope

__all__ = ["auc", "sensitivity_at_specificity", "specificity_at_sensitivity"]

_PRIOR = 1e-6  # added to the counts of a rate, so that it is defined before any are there
_SUMMATIONS = ("trapezoidal", "careful_interpolation", "minoring", "majoring")


def _even_thresholds(number: int, last: float = 1.0 + SMALL) -> list[float]:
    inner = [(i + 1) * 1.0 / (number - 1) for i in range(number - 2)]
    return [0.0 - SMALL, *inner, last]


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Any = None,
) -> tuple[Tensor, Tensor]:
    """The area below a curve: of true over false positive rates (``"ROC"``), or of precision over recall
    (``"PR"``): scalars.

    `labels` are cast to bool; `predictions` are between 0 and 1. `summation_method`: ``"trapezoidal"``,
    ``"minoring"``, ``"majoring"``, or, best for ``"PR"``, ``"careful_interpolation"``, which interpolates the
    counts instead of the precision (Davis and Goadrich 2006). `thresholds`: the inner ones, instead of
    `num_thresholds` evenly spaced ones. ValueError for another curve or method.
    """
    with variable_scope(name, "auc", (labels, predictions, weights)):
        if curve not in ("ROC", "PR"):
            raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
        if thresholds is None:
            bounds = _even_thresholds(num_thresholds)
        else:
            bounds = [0.0 - SMALL, *sorted(thresholds), 1.0 + SMALL]
        if curve == "PR" and summation_method == "trapezoidal":
            warning(
                "Trapezoidal rule is known to produce incorrect PR-AUCs; please switch to "
                '"careful_interpolation" instead.'
            )
        values, updates = counts_at(bounds, labels, predictions, weights)
        value, update_op = (
            _area(counts, len(bounds), curve, summation_method, part)
            for counts, part in ((values, "value"), (updates, "update_op"))
        )
        return published(value, update_op, metrics_collections, updates_collections)


def _area(counts: dict[str, Any], number: int, curve: str, summation_method: str, name: str) -> Tensor:
    """The area below the curve through the points of these counts."""
    tp, fn, tn, fp = (counts[count] for count in COUNTS)
    if curve == "PR" and summation_method == "careful_interpolation":
        return _interpolated_area(tp, fp, fn, number)
    recalls = div(tp + _PRIOR, tp + fn + _PRIOR)
    if curve == "ROC":
        x, y = div(fp, fp + tn + _PRIOR), recalls
    else:
        x, y = recalls, div(tp + _PRIOR, tp + fp + _PRIOR)
    if summation_method not in _SUMMATIONS:
        raise ValueError(f"Invalid summation_method: {summation_method}")
    widths = x[: number - 1] - x[1:]
    if summation_method == "minoring":
        heights = minimum(y[: number - 1], y[1:])
    elif summation_method == "majoring":
        heights = maximum(y[: number - 1], y[1:])
    else:
        heights = (y[: number - 1] + y[1:]) / 2.0
    return reduce_sum(multiply(widths, heights), name=name)


def _interpolated_area(tp: Any, fp: Any, fn: Any, number: int) -> Tensor:
    """The area below precision over recall, where true positives grow linearly with all positives."""
    gain = tp[: number - 1] - tp[1:]
    positives = tp + fp
    slope = safe_ratio(gain, positives[: number - 1] - positives[1:], "prec_slope")
    intercept = tp[1:] - multiply(slope, positives[1:])
    both = logical_and(positives[: number - 1] > 0, positives[1:] > 0)
    ratio = safe_ratio(positives[: number - 1], positives[1:], "recall_relative_ratio")
    ratio = where(both, ratio, ones_like(positives[1:]))
    area = slope * (gain + intercept * log(ratio))
    increments = safe_ratio(area, tp[1:] + fn[1:], "pr_auc_increment")
    return reduce_sum(increments, name="interpolate_pr_auc")


def sensitivity_at_specificity(
    labels: Any,
    predictions: Any,
    specificity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """tp / (tp + fn) at the threshold where tn / (tn + fp) is nearest to `specificity`: scalars.

    ValueError unless that is between 0 and 1.
    """
    if specificity < 0 or specificity > 1:
        raise ValueError("`specificity` must be in the range [0, 1].")

    def rate(counts: dict[str, Any], name: str) -> Tensor:
        tp, fn, tn, fp = (counts[count] for count in COUNTS)
        specificities = div(tn, tn + fp + SMALL)
        at = cast(argmin(abs(specificities - specificity), 0), dtypes.int32)
        return div(tp[at], tp[at] + fn[at] + SMALL, name)

    with variable_scope(name, "sensitivity_at_specificity", (predictions, labels, weights)):
        values, updates = counts_at(_even_thresholds(num_thresholds), labels, predictions, weights)
        value, update_op = rate(values, "value"), rate(updates, "update_op")
        return published(value, update_op, metrics_collections, updates_collections)


def specificity_at_sensitivity(
    labels: Any,
    predictions: Any,
    sensitivity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Names = None,
    updates_collections: Names = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """tn / (tn + fp) at the last threshold where tp / (tp + fn) is nearest to `sensitivity`: scalars.

    ValueError unless that is between 0 and 1.
    """
    if sensitivity < 0 or sensitivity > 1:
        raise ValueError("`sensitivity` must be in the range [0, 1].")

    def rate(counts: dict[str, Any], name: str) -> Tensor:
        tp, fn, tn, fp = (counts[count] for count in COUNTS)
        sensitivities = div(tp, tp + fn + SMALL)
        least = reduce_min(abs(sensitivities - sensitivity))
        is_nearest = cast(equal(abs(sensitivities - sensitivity), least), dtypes.int64)
        at = cast(argmax(cumsum(is_nearest), 0), dtypes.int32)  # the last
        return div(tn[at], tn[at] + fp[at] + SMALL, name)

    with variable_scope(name, "specificity_at_sensitivity", (predictions, labels, weights)):
        bounds = _even_thresholds(num_thresholds, last=1.0 - SMALL)
        values, updates = counts_at(bounds, labels, predictions, weights)
        value, update_op = rate(values, "value"), rate(updates, "update_op")
        return published(value, update_op, metrics_collections, updates_collections)
