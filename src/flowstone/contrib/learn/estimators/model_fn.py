"""`ModelFnOps`: what a model function of `tf.contrib.learn` returns."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import ModeKeys, PredictionKey, ProblemType
from flowstone.contrib.learn.estimators import metric_key, prediction_key
from flowstone.estimator.model_fn import EstimatorSpec

__all__ = ["ModeKeys", "ModelFnOps", "metric_key", "prediction_key"]

_SERVING = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
_Fields = namedtuple(
    "_Fields",
    [
        "predictions",
        "loss",
        "train_op",
        "eval_metric_ops",
        "output_alternatives",
        "training_chief_hooks",
        "training_hooks",
        "scaffold",
        "mode",
    ],
)


class ModelFnOps(_Fields):
    """The tensors and operations of a model in one mode.

    Args:
        mode: a ModeKeys name.
        predictions: a tensor, SparseTensor or dict of them; needed to infer.
        loss: a scalar, or a tensor of one element; needed to train and to evaluate.
        train_op: the operation of a training step; needed to train.
        eval_metric_ops: pairs of value and update by name.
        output_alternatives: a dict from names to pairs (ProblemType, dict of tensors), for exports.
        training_chief_hooks, training_hooks: SessionRunHooks.
        scaffold: a Scaffold.

    Raises ValueError for an unknown mode, and for what is missing or not scalar, TypeError for other hooks.
    """

    __slots__ = ()

    def __new__(
        cls, mode: str, predictions: Any = None, loss: Any = None, train_op: Any = None,
        eval_metric_ops: Any = None, output_alternatives: Any = None, training_chief_hooks: Any = None,
        training_hooks: Any = None, scaffold: Any = None,
    ) -> ModelFnOps:  # fmt: skip
        ModeKeys.validate(mode)
        if train_op is None and mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        loss = _checked_loss(loss, mode)
        if predictions is None:
            if mode == ModeKeys.INFER:
                raise ValueError("Missing predictions.")
        elif isinstance(predictions, Mapping):
            predictions = {key: _as_tensor(value) for key, value in predictions.items()}
        else:
            predictions = _as_tensor(predictions)
        if eval_metric_ops is None:
            eval_metric_ops = {}
        elif not isinstance(eval_metric_ops, dict):
            raise ValueError("eval_metric_ops must be a dict.")
        hooks = [list(each or ()) for each in (training_chief_hooks, training_hooks)]
        for hook in (*hooks[0], *hooks[1]):
            if not isinstance(hook, tf.train.SessionRunHook):
                raise TypeError(
                    "All hooks returned from model_fn must be SessionRunHook instances, got instance of "
                    f"{type(hook)}: {hook}"
                )
        return super().__new__(
            cls, predictions, loss, train_op, eval_metric_ops, output_alternatives, hooks[0], hooks[1],
            scaffold, mode,
        )  # fmt: skip

    def estimator_spec(self, default_serving_output_alternative_key: Any = None) -> EstimatorSpec:
        """The same as an EstimatorSpec of `tf.estimator`.

        `default_serving_output_alternative_key`: which alternative is served by default; KeyError if it is
        none. The only one is the default by itself.
        """
        exports = None
        if self.output_alternatives:
            exports = {name: _export(*pair) for name, pair in self.output_alternatives.items()}
            default = default_serving_output_alternative_key
            if len(exports) == 1 and default is None:
                default = next(iter(exports))
            exports[_SERVING] = exports[default]
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=self.eval_metric_ops,
            export_outputs=exports,
            training_chief_hooks=self.training_chief_hooks,
            training_hooks=self.training_hooks,
            scaffold=self.scaffold,
        )


def _checked_loss(loss: Any, mode: str) -> Any:
    if loss is None:
        if mode != ModeKeys.INFER:
            raise ValueError("Missing loss.")
        return None
    loss = tf.convert_to_tensor(loss)
    if loss.shape.num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar: {loss}.")
    return loss if loss.shape.is_compatible_with(tf.TensorShape([])) else tf.reshape(loss, [])


def _as_tensor(value: Any) -> Any:
    return value if isinstance(value, tf.SparseTensor) else tf.convert_to_tensor(value)


def _export(problem_type: int, tensors: Mapping[str, Any]) -> Any:
    """The ExportOutput of an alternative: what its kind of problem serves."""
    outputs = tf.estimator.export
    if problem_type == ProblemType.LINEAR_REGRESSION:
        value = tensors.get(PredictionKey.SCORES)
        return outputs.RegressionOutput(_only(tensors) if value is None else value)
    if problem_type in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
        scores = tensors.get(PredictionKey.SCORES)
        if scores is None:
            scores = tensors.get(PredictionKey.PROBABILITIES)
        classes = tensors.get(PredictionKey.CLASSES)
        if classes is not None and classes.dtype != tf.string:
            classes = None
        if scores is None and classes is None:
            return outputs.PredictOutput(dict(tensors))
        return outputs.ClassificationOutput(scores, classes)
    return outputs.PredictOutput(dict(tensors))


def _only(tensors: Mapping[str, Any]) -> Any:
    """The only tensor; ValueError if there are several."""
    if len(tensors) != 1:
        raise ValueError(f"a regression has one tensor of outputs, or one named scores: {sorted(tensors)}")
    return next(iter(tensors.values()))
