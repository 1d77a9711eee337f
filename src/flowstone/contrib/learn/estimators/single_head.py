"""Heads: what follows a network's logits; `create_model_fn_ops` makes loss, metrics, predictions and exports.

A head of one problem opens a scope of its name, adds the centred bias to the logits if asked to, and then,
as far as the mode needs them, makes predictions, the loss with its summary, the training operation, and
metrics.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import ModeKeys
from flowstone.contrib.learn.estimators.head_losses import Loss
from flowstone.contrib.learn.estimators.metric_key import MetricKey as mkey
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps

__all__ = ["Head", "SingleHead", "check_mode", "summary_key"]


class Head(metaclass=abc.ABCMeta):
    """What follows the logits of a model."""

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> int:
        """How many logits an example has."""

    @abc.abstractmethod
    def create_model_fn_ops(
        self,
        features: Any,
        mode: str,
        labels: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: Any = None,
    ) -> ModelFnOps:
        """The ModelFnOps of a mode.

        Args:
            features: a dict of tensors, which has the weights of examples.
            mode: a ModeKeys name.
            labels: a tensor, or a dict of them.
            train_op_fn: a function from the loss to the training operation, needed to train.
            logits: [batch, logits_dimension], or `logits_input`: what a last layer makes them from; `scope`:
                of that layer.

        ValueError for an unknown mode, and unless one of logits and logits_input is given.
        """


class SingleHead(Head):
    """A head of one problem; its classes say what predictions, loss and metrics are."""

    def __init__(
        self,
        problem_type: int,
        logits_dimension: int,
        label_name: Any = None,
        weight_column_name: Any = None,
        head_name: str | None = None,
        default_name: str = "head",
        loss_fn: Loss | None = None,
        enable_centered_bias: bool = False,
    ) -> None:
        if logits_dimension < 1:
            raise ValueError(f"Invalid logits_dimension {logits_dimension}.")
        self._problem_type, self._logits_dimension = problem_type, logits_dimension
        self._label_name, self._weight_column_name = label_name, weight_column_name
        self._head_name, self._default_name, self._loss_fn = head_name, default_name, loss_fn
        self._enable_centered_bias = enable_centered_bias

    @property
    def logits_dimension(self) -> int:
        """How many logits an example has."""
        return self._logits_dimension

    @property
    def label_name(self) -> Any:
        """The name of the labels in their dict; None: the labels themselves."""
        return self._label_name

    @property
    def weight_column_name(self) -> Any:
        """The name of the features with the weights of examples."""
        return self._weight_column_name

    @property
    def head_name(self) -> str | None:
        """The name by which metrics and scopes are told apart."""
        return self._head_name

    # ---- what the kinds of heads fill in

    def _predictions(self, logits: Any) -> dict[str, Any]:
        raise NotImplementedError

    def _metrics(self, average_loss: Any, labels: Any, predictions: Any, weights: Any) -> dict[str, Any]:
        raise NotImplementedError

    def _output_alternatives(self, predictions: dict[str, Any]) -> dict[Any, Any]:
        return {self._head_name: (self._problem_type, predictions)}

    def _transform_labels(self, mode: str, labels: Any) -> Any:
        """The labels as a tensor that the loss takes; None to infer."""
        if mode == ModeKeys.INFER or labels is None:
            return None
        found = labels_tensor(labels, self._label_name)
        if isinstance(found, tf.SparseTensor):
            raise ValueError("SparseTensor is not supported.")
        return found

    # ---- the steps that heads share

    def create_model_fn_ops(
        self,
        features: Any,
        mode: str,
        labels: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: Any = None,
    ) -> ModelFnOps:
        """See `Head`."""
        check_mode(mode)
        given = list(features.values()) if isinstance(features, Mapping) else [features]
        values = [value for value in (*given, logits) if value is not None]
        with tf.variable_scope(None, default_name=self._head_name or self._default_name, values=values):
            labels = self._transform_labels(mode, labels)
            logits = logits_of(logits_input, logits, self._logits_dimension, scope)
            weights = weight_tensor(features, self._weight_column_name)
            return self._ops(mode, labels, logits, weights, train_op_fn)

    def _ops(self, mode: str, labels: Any, logits: Any, weights: Any, train_op_fn: Any) -> ModelFnOps:
        bias = self._centered_bias() if self._enable_centered_bias else None
        if bias is not None:
            logits = tf.nn.bias_add(logits, bias)
        predictions = self._predictions(logits)
        loss = train_op = metrics = None
        if mode != ModeKeys.INFER and labels is not None:
            assert self._loss_fn is not None
            loss, average_loss = self._loss_fn(labels, logits, weights)
            with tf.name_scope(None):
                tf.summary.scalar(summary_key(self._head_name, mkey.LOSS), loss)
            if mode == ModeKeys.TRAIN:
                train_op = self._train_op(loss, labels, weights, bias, train_op_fn)
            with tf.name_scope("metrics"):
                found = self._metrics(average_loss, labels, predictions, weights)
                metrics = {summary_key(self._head_name, key): value for key, value in found.items()}
        return ModelFnOps(
            mode=mode,
            predictions=predictions,
            loss=loss,
            train_op=train_op,
            eval_metric_ops=metrics,
            output_alternatives=self._output_alternatives(predictions),
        )

    def _train_op(self, loss: Any, labels: Any, weights: Any, bias: Any, train_op_fn: Any) -> Any:
        if train_op_fn is None:
            raise ValueError("train_op_fn can not be None in TRAIN mode")
        step = None if bias is None else self._centered_bias_step(bias, labels, weights)
        with tf.name_scope(None, "train_op", (loss, labels)):
            train_op = train_op_fn(loss)
            return train_op if step is None else tf.group(train_op, step)

    def _centered_bias(self) -> Any:
        """The variable `centered_bias_weight`, which follows the labels alone; its parts are summarised."""
        bias = tf.Variable(tf.zeros([self._logits_dimension]), name="centered_bias_weight")
        for index in range(self._logits_dimension):
            tf.summary.scalar(summary_key(self._head_name, f"centered_bias/bias_{index}"), bias[index])
        return bias

    def _centered_bias_step(self, bias: Any, labels: Any, weights: Any) -> Any:
        """The operation by which Adagrad lessens the loss of the bias alone."""
        with tf.name_scope(None, "centered_bias_step", (labels,)) as name:
            size = tf.shape(labels)[0]
            logits = tf.reshape(tf.tile(bias, [size]), [size, self._logits_dimension])
            with tf.name_scope(None, "centered_bias", (labels, logits)):
                assert self._loss_fn is not None
                # TensorFlow takes the mean of both losses here, which differ where there are weights
                loss = tf.reduce_mean(self._loss_fn(labels, logits, weights), name="training_loss")
        return tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=[bias], name=name)


# ---- arguments


def check_mode(mode: str) -> None:
    """ValueError for what is no mode."""
    if mode not in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.INFER):
        raise ValueError(f"mode={mode} unrecognized.")


def summary_key(head_name: str | None, key: str) -> str:
    """The key, and the name of its head if that has one."""
    return f"{key}/{head_name}" if head_name else key


def labels_tensor(labels: Any, name: Any) -> Any:
    """The labels, or those of this name if they are a dict; KeyError if it lacks them."""
    found = labels[name] if isinstance(labels, Mapping) else labels
    return found if isinstance(found, tf.SparseTensor) else tf.convert_to_tensor(found)


def weight_tensor(features: Any, name: Any) -> Any:
    """The weights [batch] or [batch, ...] among the features; ValueError if there are none of this name."""
    if not name:
        return None
    if not isinstance(features, Mapping) or name not in features:
        raise ValueError(f"Weights {name} missing from features.")
    with tf.name_scope(None, "weight_tensor", (features[name],)):
        return tf.to_float(features[name])


def logits_of(logits_input: Any, logits: Any, dimension: int, scope: Any = None) -> Any:
    """The logits [batch, dimension], made from `logits_input` by a last layer if they are not given."""
    if (logits is None) == (logits_input is None):
        both = "Both logits and logits_input supplied." if logits is not None else None
        raise ValueError(both or "Neither logits nor logits_input supplied.")
    if logits is None:
        return tf.contrib.layers.fully_connected(
            logits_input, dimension, activation_fn=None, scope=scope or "logits"
        )
    logits = tf.convert_to_tensor(logits)
    if logits.shape.ndims == 2 and logits.shape[1].value not in (None, dimension):
        raise ValueError(f"Dimensions {logits.shape[1]} and {dimension} are not compatible")
    return logits
