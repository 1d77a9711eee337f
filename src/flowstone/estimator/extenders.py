"""Estimators made of others: with more metrics, clipped gradients, or features among the predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.estimator.estimator import Estimator
from flowstone.estimator.export.export_output import PredictOutput
from flowstone.estimator.function_arguments import argument_names
from flowstone.estimator.mode_keys import ModeKeys

__all__ = ["add_metrics", "clip_gradients_by_norm", "forward_features"]

_METRIC_ARGUMENTS = {"features", "labels", "predictions", "config"}


def _extended(estimator: Any, change: Callable[..., Any]) -> Estimator:
    """An estimator whose spec is changed by a function of (spec, features, labels, config)."""

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        kept = dict(features) if isinstance(features, dict) else features
        spec = estimator.model_fn(features, labels, mode, config)
        return change(spec, kept, labels, config)

    return Estimator(model_fn, estimator.model_dir, estimator.config)


def add_metrics(estimator: Any, metric_fn: Callable[..., dict[str, Any]]) -> Estimator:
    """An Estimator that also computes other metrics.

    Args:
        estimator: the Estimator.
        metric_fn: a function of any of `features`, `labels`, `predictions` and `config` that gives metrics by
            name; they replace those of the same names.

    Raises ValueError for a function of other arguments.
    """
    accepted = argument_names(metric_fn)
    other = [name for name in accepted if name not in _METRIC_ARGUMENTS]
    if other:
        raise ValueError(f"metric_fn ({metric_fn}) has following not expected args: {other}")

    def change(spec: Any, features: Any, labels: Any, config: Any) -> Any:
        if spec.mode != ModeKeys.EVAL:
            return spec
        offered = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        more = metric_fn(**{name: value for name, value in offered.items() if name in accepted})
        return spec._replace(eval_metric_ops={**(spec.eval_metric_ops or {}), **(more or {})})

    return _extended(estimator, change)


class _ClippingOptimizer(tf.train.Optimizer):  # type: ignore[misc]
    """Another optimiser whose gradients are clipped together."""

    def __init__(self, optimizer: Any, clip_norm: float) -> None:
        super().__init__(optimizer._use_locking, f"Clip{optimizer.get_name()}")
        self._optimizer, self._clip_norm = optimizer, clip_norm

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        pairs = list(grads_and_vars)
        clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], self._clip_norm)
        return self._optimizer.apply_gradients(
            zip(clipped, [variable for _, variable in pairs], strict=True), global_step, name
        )

    def get_slot(self, var: Any, name: str) -> Any:
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> Any:
        return self._optimizer.get_slot_names()

    def variables(self) -> Any:
        return self._optimizer.variables()


def clip_gradients_by_norm(optimizer: Any, clip_norm: float) -> Any:
    """An Optimizer that clips all gradients to a norm together, then does what another one does.

    Args:
        optimizer: the Optimizer; `clip_norm`: the norm of all gradients at most.
    """
    return _ClippingOptimizer(optimizer, clip_norm)


def forward_features(estimator: Any, keys: Any = None, sparse_default_values: Any = None) -> Estimator:
    """An Estimator whose predictions have features of the input.

    Args:
        estimator: the Estimator; its predictions are a dict.
        keys: a feature's name or several; None: all features.
        sparse_default_values: by sparse features, what stands where they have nothing; they become dense.

    Raises ValueError for other keys and predictions, and for names that are taken; TypeError for keys that
    are no strings.
    """
    if keys is not None:
        keys = [keys] if isinstance(keys, str) else keys
        if not isinstance(keys, (list, tuple)) or not all(isinstance(key, str) for key in keys):
            raise TypeError("keys should be either a string, a list or a tuple of strings")

    def change(spec: Any, features: Any, labels: Any, config: Any) -> Any:
        if not spec.predictions:
            return spec
        if not isinstance(spec.predictions, dict):
            raise ValueError(
                f"Predictions should be a dict to be able to forward features. Given: {spec.predictions}"
            )
        added = _forwarded(spec, features, keys, sparse_default_values)
        exports = spec.export_outputs
        if exports is not None:
            exports = {
                name: PredictOutput({**output.outputs, **added})
                if isinstance(output, PredictOutput)
                else output
                for name, output in exports.items()
            }
        return spec._replace(predictions={**spec.predictions, **added}, export_outputs=exports)

    return _extended(estimator, change)


def _forwarded(spec: Any, features: Any, keys: Any, defaults: Any) -> dict[str, Any]:
    """The features among the predictions, dense."""
    added = {}
    for key in keys or features:
        if key not in features:
            raise ValueError(f"keys should be exist in features. Key {key!r} is not in features.")
        if key in spec.predictions:
            raise ValueError(f"Cannot forward feature key ({key}). Since it does exist in predictions.")
        added[key] = _dense(features[key], key, defaults)
    return added


def _dense(feature: Any, key: str, defaults: Any) -> Any:
    if not isinstance(feature, tf.SparseTensor):
        return feature
    if not defaults or key not in defaults:
        raise ValueError(
            f"Forwarded feature ({key}) should be a Tensor. Please use keys argument of forward_features to "
            "filter "
            "unwanted features, or sparse_default_values."
        )
    return tf.sparse_tensor_to_dense(feature, default_value=defaults[key])
