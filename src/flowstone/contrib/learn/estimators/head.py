"""The heads of models: functions that make them, those of numbers, and those of several problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import ModeKeys, PredictionKey, ProblemType
from flowstone.contrib.learn.estimators import constants, model_fn
from flowstone.contrib.learn.estimators.classification_heads import (
    BinaryLogisticHead,
    BinarySvmHead,
    MultiClassHead,
    MultiLabelHead,
)
from flowstone.contrib.learn.estimators.head_losses import mean_squared_loss, poisson_loss
from flowstone.contrib.learn.estimators.metric_key import MetricKey as mkey
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps
from flowstone.contrib.learn.estimators.single_head import (
    Head,
    SingleHead,
    check_mode,
    logits_of,
    summary_key,
)

__all__ = [
    "Head",
    "binary_svm_head",
    "constants",
    "loss_only_head",
    "mkey",
    "model_fn",
    "multi_class_head",
    "multi_head",
    "multi_label_head",
    "no_op_train_fn",
    "poisson_regression_head",
    "regression_head",
]


class _RegressionHead(SingleHead):
    """Numbers, a logit each, through a function of the logits."""

    def __init__(
        self, label_name: Any, weight_column_name: Any, label_dimension: int, enable_centered_bias: bool,
        head_name: str | None, loss_fn: Any = mean_squared_loss, link_fn: Any = tf.identity,
    ) -> None:  # fmt: skip
        super().__init__(
            ProblemType.LINEAR_REGRESSION, label_dimension, label_name, weight_column_name, head_name,
            "regression_head", loss_fn, enable_centered_bias,
        )  # fmt: skip
        self._link_fn = link_fn

    def _predictions(self, logits: Any) -> dict[str, Any]:
        with tf.name_scope(None, "predictions", (logits,)):
            key = PredictionKey.SCORES
            scores = tf.squeeze(logits, [1], name=key) if self._logits_dimension == 1 else logits
            return {key: self._link_fn(scores)}

    def _metrics(self, average_loss: Any, labels: Any, predictions: Any, weights: Any) -> dict[str, Any]:
        del labels, predictions, weights
        return {mkey.LOSS: tf.metrics.mean(average_loss)}


class _LossOnlyHead(Head):
    """A loss that has no labels and no logits."""

    def __init__(self, loss_fn: Callable[[], Any], head_name: str | None = None) -> None:
        self._loss_fn = loss_fn
        self.head_name = head_name or "loss_only_head"

    @property
    def logits_dimension(self) -> int:
        """0: it has no logits."""
        return 0

    def create_model_fn_ops(
        self, features: Any, mode: str, labels: Any = None, train_op_fn: Any = None, logits: Any = None,
        logits_input: Any = None, scope: Any = None,
    ) -> ModelFnOps:  # fmt: skip
        """See `Head`; labels and logits are not used."""
        del features, labels, logits, logits_input, scope
        check_mode(mode)
        if mode == ModeKeys.INFER:
            return ModelFnOps(mode=mode, predictions={})
        loss = train_op = None
        with tf.variable_scope(None, default_name=self.head_name):
            loss = self._loss_fn()
            if isinstance(loss, list):
                loss = tf.add_n(loss)
            with tf.name_scope(None):
                tf.summary.scalar(summary_key(self.head_name, mkey.LOSS), loss)
            if mode == ModeKeys.TRAIN:
                if train_op_fn is None:
                    raise ValueError("train_op_fn can not be None in TRAIN mode")
                with tf.name_scope(None, "train_op", (loss,)):
                    train_op = train_op_fn(loss)
        return ModelFnOps(mode=mode, loss=loss, train_op=train_op, predictions={}, eval_metric_ops={})


class _MultiHead(Head):
    """Several heads, each of which takes a part of the logits; their losses are added with weights."""

    def __init__(self, heads: Sequence[Any], loss_weights: Sequence[float]) -> None:
        self._heads, self._loss_weights = tuple(heads), tuple(loss_weights)
        for head in self._heads:
            if not head.head_name:
                raise ValueError("Members of MultiHead must have names.")
        self._logits_dimension: int = sum(head.logits_dimension for head in self._heads)

    @property
    def logits_dimension(self) -> int:
        """The logits of all heads."""
        return self._logits_dimension

    def create_model_fn_ops(
        self, features: Any, mode: str, labels: Any = None, train_op_fn: Any = None, logits: Any = None,
        logits_input: Any = None, scope: Any = None,
    ) -> ModelFnOps:  # fmt: skip
        """See `Head`; `logits` may also be a dict by the heads' names."""
        check_mode(mode)
        if mode == ModeKeys.TRAIN and train_op_fn is None:
            raise ValueError("train_op_fn can not be None in TRAIN mode")
        parts = self._parts(logits, logits_input, scope)
        train = no_op_train_fn if mode == ModeKeys.TRAIN else None
        every = [
            head.create_model_fn_ops(
                features=features, mode=mode, labels=labels, train_op_fn=train, logits=part
            )
            for head, part in zip(self._heads, parts, strict=True)
        ]
        if mode == ModeKeys.TRAIN:
            loss = self._loss(every)
            return ModelFnOps(
                mode=mode,
                loss=loss,
                train_op=tf.group(train_op_fn(loss), *(ops.train_op for ops in every)),
                eval_metric_ops={key: value for ops in every for key, value in ops.eval_metric_ops.items()},
            )
        return self._merged(mode, every)

    def _merged(self, mode: str, every: list[ModelFnOps]) -> ModelFnOps:
        predictions = {
            (head.head_name, key): value
            for head, ops in zip(self._heads, every, strict=True)
            for key, value in ops.predictions.items()
        }
        if mode == ModeKeys.INFER:
            alternatives = {
                key: value for ops in every for key, value in (ops.output_alternatives or {}).items()
            }
            return ModelFnOps(mode=mode, predictions=predictions, output_alternatives=alternatives)
        metrics = {key: value for ops in every for key, value in ops.eval_metric_ops.items()}
        return ModelFnOps(mode=mode, predictions=predictions, loss=self._loss(every), eval_metric_ops=metrics)

    def _parts(self, logits: Any, logits_input: Any, scope: Any) -> list[Any]:
        """The logits of each head."""
        if isinstance(logits, Mapping):
            missing = [head.head_name for head in self._heads if head.head_name not in logits]
            if missing:
                raise ValueError(f"logits lack those of the heads {missing}")
            return [logits[head.head_name] for head in self._heads]
        logits = logits_of(logits_input, logits, self._logits_dimension, scope)
        parts, begin = [], 0
        for head in self._heads:
            parts.append(tf.slice(logits, [0, begin], [tf.shape(logits)[0], head.logits_dimension]))
            parts[-1].set_shape([logits.shape[0], head.logits_dimension])
            begin += head.logits_dimension
        return parts

    def _loss(self, every: list[ModelFnOps]) -> Any:
        weighted = [
            ops.loss if weight is None else tf.multiply(ops.loss, weight)
            for ops, weight in zip(every, self._loss_weights, strict=True)
        ]
        return tf.add_n(weighted)


_BinaryLogisticHead, _BinarySvmHead = BinaryLogisticHead, BinarySvmHead
_MultiClassHead, _MultiLabelHead, _SingleHead = MultiClassHead, MultiLabelHead, SingleHead


def multi_class_head(
    n_classes: int,
    label_name: Any = None,
    weight_column_name: Any = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
    metric_class_ids: Any = None,
    loss_fn: Any = None,
    label_keys: Any = None,
) -> Head:
    """A head of classes that exclude each other; of two by one logit.

    Args:
        n_classes: how many classes.
        label_name: which of a dict of labels is meant; `weight_column_name`: the features with weights.
        enable_centered_bias: whether a bias is learnt from the labels alone.
        head_name: the name of scopes and metrics.
        thresholds: of probabilities, for metrics of two classes; `metric_class_ids`: classes with metrics of
            their own, of more than two.
        loss_fn: a function of labels, logits and weights.
        label_keys: the names of classes, if labels are strings.

    Raises ValueError for fewer classes than two, and what the number of classes does not allow.
    """
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for classification: {n_classes}.")
    if n_classes > 2:
        return MultiClassHead(
            n_classes, label_name, weight_column_name, enable_centered_bias, head_name, loss_fn, thresholds,
            metric_class_ids, label_keys,
        )  # fmt: skip
    if metric_class_ids:
        raise ValueError("metric_class_ids invalid for n_classes==2.")
    if label_keys:
        raise ValueError("label_keys is not supported for n_classes=2.")
    return BinaryLogisticHead(
        label_name, weight_column_name, enable_centered_bias, head_name, loss_fn, thresholds
    )


def binary_svm_head(
    label_name: Any = None,
    weight_column_name: Any = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
) -> Head:
    """A head of two classes with the hinge loss; see `multi_class_head`."""
    return BinarySvmHead(label_name, weight_column_name, enable_centered_bias, head_name, thresholds)


def multi_label_head(
    n_classes: int,
    label_name: Any = None,
    weight_column_name: Any = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
    metric_class_ids: Any = None,
    loss_fn: Any = None,
) -> Head:
    """A head of classes that do not exclude each other; see `multi_class_head`.

    Labels are 0 or 1 [batch, n_classes], or a SparseTensor of the classes that examples have.
    """
    if n_classes < 2:
        raise ValueError("n_classes must be > 1 for classification.")
    return MultiLabelHead(
        n_classes, label_name, weight_column_name, enable_centered_bias, head_name, thresholds,
        metric_class_ids, loss_fn,
    )  # fmt: skip


def regression_head(
    label_name: Any = None,
    weight_column_name: Any = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    link_fn: Any = None,
) -> Head:
    """A head of numbers with the squared loss.

    `label_dimension`: how many numbers an example has; `link_fn`: from logits to predictions; the rest as for
    `multi_class_head`. ValueError for a dimension below 1.
    """
    return _RegressionHead(
        label_name, weight_column_name, label_dimension, enable_centered_bias, head_name,
        link_fn=tf.identity if link_fn is None else link_fn,
    )  # fmt: skip


def poisson_regression_head(
    label_name: Any = None,
    weight_column_name: Any = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
) -> Head:
    """A head of counts, whose logits are the logarithms of Poisson rates; see `regression_head`."""
    return _RegressionHead(
        label_name, weight_column_name, label_dimension, enable_centered_bias, head_name, poisson_loss, tf.exp
    )


def loss_only_head(loss_fn: Callable[[], Any], head_name: str | None = None) -> Head:
    """A head of a loss without labels; `loss_fn` returns it, or a list to be added."""
    return _LossOnlyHead(loss_fn, head_name)


def multi_head(heads: Sequence[Any], loss_weights: Sequence[float] | None = None) -> Head:
    """Several heads, which must have names, on the parts of the logits.

    `loss_weights`: one number a head. ValueError for heads without names, and another number of weights.
    """
    if loss_weights and len(loss_weights) != len(heads):
        raise ValueError("heads and loss_weights must have same size")
    return _MultiHead(heads, loss_weights or [None] * len(heads))  # type: ignore[list-item]


def no_op_train_fn(loss: Any) -> Any:
    """An operation that does nothing, in place of training: `create_model_fn_ops` of a part of a model."""
    del loss
    return tf.no_op()
