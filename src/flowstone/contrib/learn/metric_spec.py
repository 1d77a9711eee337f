"""`MetricSpec`: a metric of an estimator, and the keys of the predictions, labels and weights it needs.

A metric function is called by the names of its own parameters: predictions go to `predictions`,
`prediction`, `logits` or `logit`, or else to its first parameter; labels to `labels`, `label`, `targets` or
`target`; weights to `weights` or `weight`. A function that has no parameter for labels or weights gets none.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf

__all__ = ["MetricSpec"]

_CANONICAL_LABELS_ARG = "labels"
_LABELS_ARGS = {"labels", "label", "targets", "target"}
_CANONICAL_PREDICTIONS_ARG = "predictions"
_PREDICTIONS_ARGS = {"predictions", "prediction", "logits", "logit"}
_CANONICAL_WEIGHTS_ARG = "weights"
_WEIGHTS_ARGS = {"weights", "weight"}


def _args(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parameters, without those that a partial function has given already."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given: set[str] = set()
    while isinstance(function, functools.partial):
        given.update(function.keywords)
        given.update(list(inspect.signature(function.func).parameters)[: len(function.args)])
        function = function.func
    parameters = inspect.signature(function).parameters
    return tuple(name for name, each in parameters.items() if each.kind in kinds and name not in given)


def _fn_name(function: Any) -> str:
    """What a function is called; a partial function is called as the one that it is made of."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", function))


class _MetricFunction:
    """A metric function of which it is known how predictions, labels and weights are passed."""

    def __init__(
        self, function: Callable[..., Any], name: str, needs_labels: bool, needs_weights: bool
    ) -> None:
        self._function = function
        self._name = name
        self._names = _args(function)
        self._labels = self._matching(_LABELS_ARGS, _CANONICAL_LABELS_ARG, needs_labels)
        self._predictions = self._matching(_PREDICTIONS_ARGS, _CANONICAL_PREDICTIONS_ARG, False)
        self._weights = self._matching(_WEIGHTS_ARGS, _CANONICAL_WEIGHTS_ARG, needs_weights)

    def _matching(self, candidates: set[str], canonical: str, is_required: bool) -> str | None:
        found = candidates.intersection(self._names)
        if canonical in found:
            return canonical
        described = f"{self._name}({self._names})"
        if len(found) > 1:
            raise ValueError(
                f"Ambiguous arguments {sorted(found)}, must be one of {candidates}, in {described}."
            )
        if is_required and not found:
            raise ValueError(f"{candidates} missing from {described}.")
        match = next(iter(found), None)
        if match is not None:
            tf.logging.warning(f"Canonical arg {canonical} missing from {described}, using {match}.")
        return match

    def __call__(self, predictions: Any, labels: Any, weights: Any) -> Any:
        by_name = {self._predictions: predictions, self._labels: labels, self._weights: weights}
        named = {name: value for name, value in by_name.items() if name is not None}
        positional = () if self._predictions is not None else (predictions,)
        return self._function(*positional, **named)


class MetricSpec:
    """A metric and the keys of what it is computed from.

    Args:
        metric_fn: makes the metric of predictions, labels and weights.
        prediction_key: the key of the predictions, where they are a dict of more than one.
        label_key: the key of the labels, where they are a dict of more than one.
        weight_key: the feature that has the weights; None weighs all alike.

    Raises ValueError if `metric_fn` has no parameter for the labels or weights that a key names.
    """

    def __init__(
        self,
        metric_fn: Callable[..., Any],
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:
        self._metric_fn_name = _fn_name(metric_fn)
        self._metric_fn = _MetricFunction(
            metric_fn, self._metric_fn_name, label_key is not None, weight_key is not None
        )
        self._prediction_key = prediction_key
        self._label_key = label_key
        self._weight_key = weight_key

    @property
    def prediction_key(self) -> str | None:
        """The key of the predictions."""
        return self._prediction_key

    @property
    def label_key(self) -> str | None:
        """The key of the labels."""
        return self._label_key

    @property
    def weight_key(self) -> str | None:
        """The feature that has the weights."""
        return self._weight_key

    @property
    def metric_fn(self) -> Callable[..., Any]:
        """The metric as a function of `predictions`, `labels` and `weights`."""
        return self._metric_fn

    def __str__(self) -> str:
        keys = ("prediction_key", "label_key", "weight_key")
        described = ", ".join(f"{key}={getattr(self, key)}" for key in keys)
        return f"MetricSpec(metric_fn={self._metric_fn_name}, {described})"

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """What the metric function returns for the parts of these that the keys name.

        Args:
            inputs: the features, a dict if there is a weight key.
            labels: a tensor, or a dict.
            predictions: a tensor, or a dict.

        Raises ValueError if a key is given and there is no dict, or no key and a dict of more than one;
        KeyError for a key that the dict lacks.
        """
        chosen = _part(predictions, "prediction", self._prediction_key)
        truth = _part(labels, "label", self._label_key)
        try:
            weights = inputs[self._weight_key] if self._weight_key else None
            return self._metric_fn(chosen, truth, weights)
        except Exception as error:
            tf.logging.error("Could not create metric ops for %s, %s.", self, error)
            raise


def _part(values: Any, kind: str, key: str | None) -> Any:
    """The predictions or labels of a key; without one, all there are."""
    is_dict = isinstance(values, Mapping)
    if key is None:
        if not is_dict:
            return values
        if len(values) != 1:
            raise ValueError(
                f"MetricSpec without specified {kind}_key requires {kind}s tensor or single element dict,"
                f" got {values}"
            )
        return next(iter(values.values()))
    if not is_dict:
        raise ValueError(
            f"MetricSpec with {kind}_key specified requires {kind}s dict, got {values}.\n"
            f"You must not provide a {kind}_key if you only have a single Tensor as {kind}s."
        )
    if key not in values:
        raise KeyError(f"Key '{key}' missing from {list(values)}.")
    return values[key]
