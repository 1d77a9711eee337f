"""Export outputs: what a served model gives, each a kind of signature."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import flowstone as tf

__all__ = [
    "ClassificationOutput",
    "EvalOutput",
    "ExportOutput",
    "PredictOutput",
    "RegressionOutput",
    "SupervisedOutput",
    "TrainOutput",
]


class ExportOutput(abc.ABC):
    """What a signature gives."""

    @abc.abstractmethod
    def as_signature_def(self, receiver_tensors: Any) -> Any:
        """The SignatureDef from these tensors, a tensor or a dict of them, to the outputs."""


class ClassificationOutput(ExportOutput):
    """The output of a classification: a score for each class, the classes' names, or both.

    Args:
        scores: a float tensor [batch, classes]; `classes`: a string tensor.

    Raises ValueError for tensors of other types, or if there are none.
    """

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is not None and not (isinstance(scores, tf.Tensor) and scores.dtype.is_floating):
            raise ValueError(f"Classification scores must be a float32 Tensor; got {scores}")
        if classes is not None and not (isinstance(classes, tf.Tensor) and classes.dtype == tf.string):
            raise ValueError(f"Classification classes must be a string Tensor; got {classes}")
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        self._scores, self._classes = scores, classes

    @property
    def scores(self) -> Any:
        """The scores, or None."""
        return self._scores

    @property
    def classes(self) -> Any:
        """The classes, or None."""
        return self._classes

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        """The SignatureDef from one string tensor of serialised Examples; ValueError for other inputs."""
        examples = _examples(receiver_tensors, "Classification")
        return tf.saved_model.signature_def_utils.classification_signature_def(
            examples, self.classes, self.scores
        )


class RegressionOutput(ExportOutput):
    """The output of a regression.

    `value`: a float tensor [batch, 1]; ValueError for another type.
    """

    def __init__(self, value: Any) -> None:
        if not (isinstance(value, tf.Tensor) and value.dtype.is_floating):
            raise ValueError(f"Regression output value must be a float32 Tensor; got {value}")
        self._value = value

    @property
    def value(self) -> Any:
        """The predicted values."""
        return self._value

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        """The SignatureDef from one string tensor of serialised Examples; ValueError for other inputs."""
        examples = _examples(receiver_tensors, "Regression")
        return tf.saved_model.signature_def_utils.regression_signature_def(examples, self.value)


class PredictOutput(ExportOutput):
    """The outputs of a prediction.

    `outputs`: a tensor, which is named "output", or a dict of tensors by name. ValueError for other things.
    """

    def __init__(self, outputs: Any) -> None:
        self._outputs = _named_tensors(outputs, "output", "Prediction")

    @property
    def outputs(self) -> dict[str, Any]:
        """The tensors by name."""
        return self._outputs

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        """The SignatureDef from the receivers' tensors by name."""
        return tf.saved_model.signature_def_utils.predict_signature_def(receiver_tensors, self.outputs)


class SupervisedOutput(ExportOutput):
    """The outputs of training or evaluation: losses, predictions and metrics, by name.

    Args:
        loss: a tensor or dict of tensors; `predictions`: likewise; `metrics`: pairs of value and update by
            name.

    Raises ValueError for other things.
    """

    _method_name = ""

    def __init__(self, loss: Any = None, predictions: Any = None, metrics: Any = None) -> None:
        self._loss = None if loss is None else _with_prefix(_named_tensors(loss, "loss", "Loss"), "loss")
        self._predictions = None
        if predictions is not None:
            named = _named_tensors(predictions, "predictions", "Prediction")
            self._predictions = _with_prefix(named, "predictions")
        self._metrics = None if metrics is None else _flat_metrics(metrics)

    @property
    def loss(self) -> dict[str, Any] | None:
        """The losses by name."""
        return self._loss

    @property
    def predictions(self) -> dict[str, Any] | None:
        """The predictions by name."""
        return self._predictions

    @property
    def metrics(self) -> dict[str, Any] | None:
        """The metrics' values and updates by name."""
        return self._metrics

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        """The SignatureDef from the receivers' tensors by name."""
        info = tf.saved_model.utils.build_tensor_info
        outputs = {**(self.loss or {}), **(self.predictions or {}), **(self.metrics or {})}
        return tf.saved_model.signature_def_utils.build_signature_def(
            {name: info(tensor) for name, tensor in receiver_tensors.items()},
            {name: info(tensor) for name, tensor in outputs.items()},
            self._method_name,
        )


class TrainOutput(SupervisedOutput):
    """The outputs of training."""

    _method_name = "tensorflow/supervised/training"


class EvalOutput(SupervisedOutput):
    """The outputs of evaluation."""

    _method_name = "tensorflow/supervised/eval"


def _examples(receivers: Any, kind: str) -> Any:
    values = list(receivers.values()) if isinstance(receivers, Mapping) else [receivers]
    if len(values) != 1 or not isinstance(values[0], tf.Tensor) or values[0].dtype != tf.string:
        raise ValueError(
            f"{kind} signatures take one input, a string Tensor of serialized Examples; got {receivers}"
        )
    return values[0]


def _named_tensors(outputs: Any, name: str, kind: str) -> dict[str, Any]:
    if not isinstance(outputs, dict):
        outputs = {name: outputs}
    named = {
        "/".join(map(str, key)) if isinstance(key, tuple) else key: value for key, value in outputs.items()
    }
    for key, value in named.items():
        if not isinstance(key, str):
            raise ValueError(f"{kind} output key must be a string; got {key}.")
        if not isinstance(value, (tf.Tensor, tf.SparseTensor)):
            raise ValueError(f"{kind} output value must be a Tensor; got {value}.")
    return named


def _with_prefix(named: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The tensors below a name, which those that begin with it keep."""
    return {
        key if key == prefix or key.startswith(f"{prefix}/") else f"{prefix}/{key}": value
        for key, value in named.items()
    }


def _flat_metrics(metrics: Any) -> dict[str, Any]:
    found = {}
    for key, (value, update) in metrics.items():
        name = "/".join(map(str, key)) if isinstance(key, tuple) else key
        name = name if name.startswith("metrics/") else f"metrics/{name}"
        if not isinstance(value, tf.Tensor):
            raise ValueError(f"{name} output value must be a Tensor; got {value}.")
        found[f"{name}/value"] = value
        found[f"{name}/update_op"] = update if isinstance(update, tf.Tensor) else _value_after(update)
    return found


def _value_after(update: Any) -> Any:
    with tf.control_dependencies([update]):
        return tf.constant([], name="metric_op_wrapper")
