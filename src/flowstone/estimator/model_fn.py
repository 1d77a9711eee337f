"""`EstimatorSpec`: what a model function returns."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping
from typing import Any

import flowstone as tf
from flowstone.estimator.export.export_output import ExportOutput, PredictOutput
from flowstone.estimator.function_arguments import argument_names
from flowstone.estimator.mode_keys import ModeKeys
from flowstone.framework.tensors import nest

__all__ = ["EstimatorSpec", "ModeKeys", "call_logit_fn"]

_SERVING = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
_Fields = namedtuple(
    "_Fields",
    [
        "mode",
        "predictions",
        "loss",
        "train_op",
        "eval_metric_ops",
        "export_outputs",
        "training_chief_hooks",
        "training_hooks",
        "scaffold",
        "evaluation_hooks",
        "prediction_hooks",
    ],
)


class EstimatorSpec(_Fields):
    """The tensors and operations of a model in one mode.

    Args:
        mode: a ModeKeys name.
        predictions: a tensor or dict of tensors; needed to predict.
        loss: a scalar (or a tensor of one element); needed to train and to evaluate.
        train_op: the operation of a training step; needed to train.
        eval_metric_ops: metrics by name, as pairs of value and update, or objects with `result` and
            `updates`.
        export_outputs: ExportOutputs by signature; the predictions as a PredictOutput if None.
        training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks: SessionRunHooks.
        scaffold: a Scaffold.

    Raises ValueError for what is missing, not scalar, or of another graph, TypeError for other types.
    """

    __slots__ = ()

    def __new__(
        cls, mode: str, predictions: Any = None, loss: Any = None, train_op: Any = None,
        eval_metric_ops: Any = None, export_outputs: Any = None, training_chief_hooks: Any = None,
        training_hooks: Any = None, scaffold: Any = None, evaluation_hooks: Any = None,
        prediction_hooks: Any = None,
    ) -> EstimatorSpec:  # fmt: skip
        train_op = _checked_train_op(train_op, mode)
        loss = _checked_loss(loss, mode)
        predictions = _checked_predictions(predictions, mode)
        export_outputs = _checked_exports(export_outputs, predictions, mode)
        hooks = [
            _checked_hooks(each)
            for each in (training_hooks, training_chief_hooks, evaluation_hooks, prediction_hooks)
        ]
        eval_metric_ops = _checked_metrics(eval_metric_ops)
        scaffold = tf.train.Scaffold() if scaffold is None else scaffold
        if not isinstance(scaffold, tf.train.Scaffold):
            raise TypeError(f"scaffold must be tf.train.Scaffold. Given: {scaffold}")
        return super().__new__(
            cls, mode, predictions, loss, train_op, eval_metric_ops, export_outputs, hooks[1], hooks[0],
            scaffold, hooks[2], hooks[3],
        )  # fmt: skip

    def _replace(self, **kwargs: Any) -> EstimatorSpec:
        """A copy with other fields, which are checked; ValueError for another mode."""
        if "mode" in kwargs and kwargs["mode"] != self.mode:
            raise ValueError(f"mode of EstimatorSpec cannot be changed. {self}")
        fields = self._asdict()
        fields.update(kwargs)
        return EstimatorSpec(**fields)


def call_logit_fn(logit_fn: Any, features: Any, mode: str, params: Any, config: Any) -> Any:
    """Calls a function of `features` and any of `mode`, `params`, `config`, which returns logits.

    Returns a tensor or a dict of tensors; ValueError for anything else.
    """
    accepted = argument_names(logit_fn)
    offered = {"features": features, "mode": mode, "params": params, "config": config}
    logits = logit_fn(**{name: value for name, value in offered.items() if name in accepted})
    values = list(logits.values()) if isinstance(logits, dict) else [logits]
    if not all(isinstance(value, tf.Tensor) for value in values):
        raise ValueError("logit_fn should return a Tensor or a dictionary of Tensors.")
    return logits


def _checked_train_op(train_op: Any, mode: str) -> Any:
    if train_op is None:
        if mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
    else:
        if hasattr(train_op, "initializer"):
            train_op = train_op.op
        if not isinstance(train_op, (tf.Operation, tf.Tensor)):
            raise TypeError(f"train_op must be Operation or Tensor, given: {train_op}")
        _demand_default_graph(train_op, train_op.name, "train_op")
    return train_op


def _checked_loss(loss: Any, mode: str) -> Any:
    if loss is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError("Missing loss.")
        return None
    _demand_tensor(loss, "loss")
    shape = loss.get_shape()
    if shape.num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar, given: {loss}")
    if not shape.is_compatible_with(tf.TensorShape([])):
        loss = tf.reshape(loss, [])
    _demand_default_graph(loss, loss.name, "loss")
    return loss


def _checked_predictions(predictions: Any, mode: str) -> Any:
    if predictions is None:
        if mode == ModeKeys.PREDICT:
            raise ValueError("Missing predictions.")
        return {}
    if isinstance(predictions, Mapping):
        for key, value in predictions.items():
            _demand_tensor(value, f"predictions[{key}]")
            _demand_default_graph(value, f"{key}: {value.name}", "prediction values")
    else:
        _demand_tensor(predictions, "predictions")
        _demand_default_graph(predictions, predictions.name, "prediction values")
    return predictions


def _checked_exports(exports: Any, predictions: Any, mode: str) -> Any:
    """The outputs by signature, one of which is the default, when predicting; as given else."""
    if exports is None:
        return {_SERVING: PredictOutput(predictions)} if mode == ModeKeys.PREDICT else None
    if mode != ModeKeys.PREDICT:
        return exports
    if not isinstance(exports, dict):
        raise TypeError(f"export_outputs must be dict, given: {exports}")
    if not all(isinstance(value, ExportOutput) for value in exports.values()):
        raise TypeError(f"Values in export_outputs must be ExportOutput objects. Given: {exports}")
    if _SERVING in exports:
        return exports
    if len(exports) > 1:
        raise ValueError(
            "Multiple export_outputs were provided, but none of them is specified as the default.  Do this "
            "by "
            "naming one of them with signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY."
        )
    return {**exports, _SERVING: next(iter(exports.values()))} if exports else exports


def _checked_metrics(metrics: Any) -> Any:
    if metrics is None:
        return {}
    if not isinstance(metrics, dict):
        raise TypeError(f"eval_metric_ops must be a dict, given: {metrics}")
    for key, pair in metrics.items():
        if hasattr(pair, "result") and hasattr(pair, "updates"):
            continue
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                "Values of eval_metric_ops must be (metric_value, update_op) tuples, "
                f"given: {pair} for key: {key}"
            )
        for part in (*nest.flatten(pair[0]), pair[1]):
            if not hasattr(part, "name") or not hasattr(part, "graph"):
                raise TypeError(f"eval_metric_ops of key {key} must be of tensors, given: {part}")
            _demand_default_graph(part, f"{key}: {part.name}", "eval_metric_ops")
    return metrics


def _checked_hooks(hooks: Iterable[Any] | None) -> tuple[Any, ...]:
    found = tuple(hooks or ())
    for hook in found:
        if not isinstance(hook, tf.train.SessionRunHook):
            raise TypeError(f"All hooks must be SessionRunHook instances, given: {hook}")
    return found


def _demand_tensor(value: Any, name: str) -> None:
    if not (isinstance(value, (tf.Tensor, tf.SparseTensor)) or hasattr(value, "initializer")):
        raise TypeError(f"{name} must be Tensor, given: {value}")


def _demand_default_graph(value: Any, name: str, kind: str) -> None:
    if value.graph is not tf.get_default_graph():
        raise ValueError(
            f'{kind} with "{name}" must be from the default graph. Possible causes of this error '
            "include: \n\n"
            f"1) {kind} was created outside the context of the default graph.\n\n"
            "2) The object passed through to EstimatorSpec was not created in the most recent call to "
            '"model_fn".'
        )
