"""`Head`: what follows a model's logits.

A head makes an EstimatorSpec of logits and labels. Its parts can be had one by one: `loss`, `predictions`,
`metrics` with `update_metrics`. Subclasses say what the labels, the loss of each example, the predictions,
the metrics and the signatures are.
"""

from __future__ import annotations

import abc
from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf
from flowstone.estimator.export.export_output import PredictOutput
from flowstone.estimator.function_arguments import argument_names
from flowstone.estimator.mode_keys import ModeKeys
from flowstone.estimator.model_fn import EstimatorSpec

__all__ = ["Head", "HeadMetric", "LossSpec", "column_weights", "dense_labels"]

LossSpec = namedtuple("LossSpec", ["training_loss", "unreduced_loss", "weights", "processed_labels"])
_LOSS_FN_ARGUMENTS = ("labels", "logits", "features", "loss_reduction")
_REDUCTIONS = {
    "sum_over_batch_size": "weighted_sum_over_batch_size",
    "sum": "weighted_sum",
    "none": "none",
    "auto": "weighted_sum_over_batch_size",
}


class HeadMetric:
    """A metric that a head makes: `result` and `updates` once `update_metrics` has been called."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._pair: Any = None

    def fill(self, pair: Any) -> None:
        """Takes the pair of value and update."""
        self._pair = pair

    def result(self) -> Any:
        """The value's tensor; ValueError before `update_metrics`."""
        if self._pair is None:
            raise ValueError(f"the metric {self.name} has no labels yet: call update_metrics first")
        return self._pair[0]

    @property
    def updates(self) -> list[Any]:
        """The operations that update it."""
        return [] if self._pair is None else [self._pair[1]]


class Head(abc.ABC):
    """Base class of heads.

    Args:
        name: comes after a slash behind the names of metrics and summaries; None: nothing.
        weight_column: the feature with examples' weights, a key or a numeric column.
        loss_reduction: how losses of examples become one: a sum, or a mean over the batch.
        loss_fn: a function of `labels`, `logits` and any of `features`, `loss_reduction` that gives each
            example's loss.

    Raises ValueError for another reduction or function.
    """

    def __init__(self, name: str | None, weight_column: Any, loss_reduction: str, loss_fn: Any) -> None:
        self._reduction = _REDUCTIONS.get(loss_reduction, loss_reduction)
        if self._reduction not in tf.losses.Reduction.all() or self._reduction == "none":
            raise ValueError(
                f"Invalid loss_reduction: {loss_reduction}. See `losses.Reduction` for valid options."
            )
        if loss_fn is not None:
            _check_loss_fn(loss_fn)
        self._loss_reduction, self._loss_fn = loss_reduction, loss_fn
        self._name, self._weight_column = name, weight_column

    @property
    def name(self) -> Any:
        """The name, or None."""
        return self._name

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> Any:
        """The size of the logits' last axis."""

    @property
    def loss_reduction(self) -> str:
        """How losses of examples become one."""
        return self._loss_reduction

    # ---- what subclasses say

    @abc.abstractmethod
    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        """The predictions by name; only those of `keys`, if given."""

    @abc.abstractmethod
    def _labels_and_loss(self, labels: Any, logits: Any, features: Any) -> tuple[Any, Any]:
        """The labels as the metrics take them, and each example's loss [batch, 1]."""

    @abc.abstractmethod
    def _metric_ops(self, loss: Any, logits: Any, regularization: Any) -> dict[str, Any]:
        """Pairs of value and update by name; `loss`: a LossSpec."""

    @abc.abstractmethod
    def _exports(self, predictions: dict[str, Any]) -> dict[str, Any]:
        """The ExportOutputs, but for that of all predictions."""

    @abc.abstractmethod
    def metrics(self, regularization_losses: Any = None) -> dict[str, Any]:
        """The metrics by name, to be filled by `update_metrics`."""

    # ---- parts

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> LossSpec:
        """The loss, each example's loss, the weights and the labels [batch, 1]."""
        del mode
        logits = self._checked_logits(logits)
        labels, unreduced = self._labels_and_loss(labels, logits, features)
        weights = column_weights(features, self._weight_column, logits)
        loss = tf.losses.compute_weighted_loss(unreduced, weights=weights, reduction=self._reduction)
        return LossSpec(loss, unreduced, weights, labels)

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: Any = None,
        regularization_losses: Any = None,
    ) -> Any:
        """The loss, a scalar, with the regularisation's."""
        with tf.name_scope("losses"):
            loss = self.create_loss(features, mode, logits, labels).training_loss
            return tf.add_n([loss, *regularization_losses]) if regularization_losses else loss

    def update_metrics(
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Any = None,
    ) -> dict[str, Any]:
        """Fills the metrics that `metrics` gave with these logits and labels; returns them."""
        loss = self.create_loss(features, ModeKeys.EVAL, logits, labels)
        regularization = tf.add_n(regularization_losses) if regularization_losses else None
        for name, pair in self._metric_ops(loss, self._checked_logits(logits), regularization).items():
            eval_metrics[name].fill(pair)
        return eval_metrics

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        update_ops: Any = None,
        regularization_losses: Any = None,
    ) -> EstimatorSpec:
        """The EstimatorSpec of logits.

        Args:
            features: the features, by name; `mode`: a ModeKeys name.
            logits: [batch, logits_dimension].
            labels: the labels; needed but to predict.
            optimizer: an Optimizer, or `train_op_fn`: a function from the loss to the training operation.
            trainable_variables: what is trained; `update_ops`: what a training step runs as well.
            regularization_losses: scalars that are added to the loss.

        Raises ValueError for logits and labels of other shapes, and for none or both ways to train.
        """
        with tf.name_scope(self._name, "head"):
            logits = self._checked_logits(logits)
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                outputs = {**self._exports(predictions), "predict": PredictOutput(predictions)}
                return EstimatorSpec(mode, predictions, export_outputs=outputs)
            loss = self.create_loss(features, mode, logits, labels)
            regularization = tf.add_n(regularization_losses) if regularization_losses else None
            total = loss.training_loss if regularization is None else loss.training_loss + regularization
            if mode == ModeKeys.TRAIN:
                train_op = make_train_op(total, optimizer, train_op_fn, trainable_variables, update_ops)
        if mode == ModeKeys.EVAL:
            metrics = self._metric_ops(loss, logits, regularization)
            return EstimatorSpec(mode, predictions, total, eval_metric_ops=metrics)
        self._summarize(loss, total, regularization)
        return EstimatorSpec(mode, predictions, total, train_op)

    def _summarize(self, loss: LossSpec, total: Any, regularization: Any) -> None:
        with tf.name_scope(""):
            tf.summary.scalar(self._key("loss"), total)
            if regularization is not None:
                tf.summary.scalar(self._key("regularization_loss"), regularization)
            if self._reduction == tf.losses.Reduction.SUM:
                mean = tf.losses.compute_weighted_loss(
                    loss.unreduced_loss,
                    weights=loss.weights,
                    loss_collection=None,  # the sum is there
                    reduction=tf.losses.Reduction.MEAN,
                )
                tf.summary.scalar(self._key("average_loss"), mean)

    # ---- for subclasses

    def _key(self, metric: str) -> str:
        return f"{metric}/{self._name}" if self._name else metric

    def _keyed(self, metrics: dict[str, Any]) -> dict[str, Any]:
        return {self._key(name): pair for name, pair in metrics.items()}

    def _empty_metrics(self, names: list[str], regularization_losses: Any) -> dict[str, Any]:
        if regularization_losses:
            names = [*names, "regularization_loss"]
        return {self._key(name): HeadMetric(self._key(name)) for name in names}

    def _checked_logits(self, logits: Any) -> Any:
        """The logits, floats whose last axis has the head's size; ValueError otherwise."""
        logits = tf.to_float(logits) if logits.dtype != tf.float32 else logits
        size = logits.shape[-1].value if logits.shape.ndims else None
        if logits.shape.ndims is not None and logits.shape.ndims < 2:
            raise ValueError(f"logits must have rank at least 2, got {logits.shape}")
        if size is not None and size != self.logits_dimension:
            raise ValueError(
                f"logits shape must be [D0, D1, ... DN, logits_dimension={self.logits_dimension}], got "
                f"{logits.shape}."
            )
        return logits

    def _own_loss(self, labels: Any, logits: Any, features: Any) -> Any:
        """What the program's loss function gives, [batch, 1]."""
        offered = {"features": features, "loss_reduction": self._loss_reduction}
        accepted = argument_names(self._loss_fn)
        more = {name: value for name, value in offered.items() if name in accepted}
        loss = self._loss_fn(labels=labels, logits=logits, **more)
        return tf.expand_dims(loss, -1) if loss.shape.ndims == logits.shape.ndims - 1 else loss


def make_train_op(
    loss: Any, optimizer: Any, train_op_fn: Any, trainable_variables: Any = None, update_ops: Any = None
) -> Any:
    """The operation of a training step, with those that the layers want run.

    ValueError for neither or both of an optimiser and a function.
    """
    if optimizer is not None and train_op_fn is not None:
        raise ValueError("train_op_fn and optimizer cannot both be set.")
    if optimizer is not None:
        variables = {} if trainable_variables is None else {"var_list": trainable_variables}
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step(), **variables)
    elif train_op_fn is not None:
        train_op = train_op_fn(loss)
    else:
        raise ValueError("train_op_fn and optimizer cannot both be None.")
    updates = update_ops or tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    return tf.group(train_op, *updates) if updates else train_op


def column_weights(features: Any, weight_column: Any, logits: Any) -> Any:
    """The weights [batch, 1] of a column; 1.0 without one. ValueError for a missing feature."""
    if weight_column is None:
        return 1.0
    with tf.name_scope("weights"):
        key = weight_column if isinstance(weight_column, str) else weight_column.key
        if not isinstance(features, Mapping) or key not in features:
            raise ValueError(f"Feature {key} is not in features dictionary.")
        weights = tf.convert_to_tensor(features[key])
        normalize = getattr(weight_column, "normalizer_fn", None)
        weights = normalize(weights) if normalize is not None else weights
        if not (weights.dtype.is_floating or weights.dtype.is_integer):
            raise ValueError(f"Weight column should be castable to float. Given dtype: {weights.dtype}")
        weights = tf.to_float(weights)
        if weights.shape.ndims is not None and weights.shape.ndims == logits.shape.ndims - 1:
            weights = tf.expand_dims(weights, -1)
        sizes = weights.shape.as_list() if weights.shape.ndims else None
        if sizes and sizes[-1] not in (None, 1, logits.shape[-1].value):
            raise ValueError(
                f"weights shape must be [D0, D1, ... DN], or its last axis 1, got {weights.shape}"
            )
        return weights


def dense_labels(labels: Any, logits: Any, size: int) -> Any:
    """Labels [batch, size] of labels, whose last axis may be missing if it is 1; ValueError for others."""
    if labels is None:
        raise ValueError(
            "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: Check that "
            "your data "
            "contain your label feature. Check that your input_fn properly parses and returns labels."
        )
    with tf.name_scope("labels"):
        if isinstance(labels, (tf.SparseTensor, tf.SparseTensorValue)):
            if size > 1:
                raise ValueError(
                    "SparseTensor labels are not supported. labels must be a Tensor of shape [D0, D1, ..., "
                    "DN, "
                    f"{size}], e.g. [batch_size, {size}]."
                )
            labels = labels.values
        labels = tf.convert_to_tensor(labels)
        rank = logits.shape.ndims
        if labels.shape.ndims is None:
            labels = tf.reshape(labels, tf.concat([tf.shape(logits)[:-1], [size]], 0))
        elif size == 1 and rank is not None and labels.shape.ndims == rank - 1:
            labels = tf.expand_dims(labels, -1)
        if (rank is not None and labels.shape.ndims != rank) or not _last_axis_fits(labels, size):
            raise ValueError(
                f"Mismatched label shape. Expected labels dimension={size}.  Received {labels.shape}. "
                "Suggested Fix: If your classifier expects one-hot encoding label, check your n_classes "
                "argument to "
                "the estimator and/or the shape of your label. Otherwise, check the shape of your label."
            )
        return labels


def _last_axis_fits(labels: Any, size: int) -> bool:
    return not labels.shape.ndims or labels.shape[-1].value in (None, size)


def _check_loss_fn(loss_fn: Any) -> None:
    accepted = argument_names(loss_fn)
    for name in ("labels", "logits"):
        if name not in accepted:
            raise ValueError(f"loss_fn must contain argument: {name}. Given arguments: {accepted}")
    other = [name for name in accepted if name not in _LOSS_FN_ARGUMENTS]
    if other:
        raise ValueError(f"loss_fn has unexpected args: {other}")
