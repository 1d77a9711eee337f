"""A linear model and a network side by side, whose logits are added (Cheng et al., 2016: wide and deep)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import flowstone as tf
from flowstone.estimator.canned.dnn import dnn_logit_fn_builder, layer_summary
from flowstone.estimator.canned.head import classification_head
from flowstone.estimator.canned.linear import default_learning_rate, linear_logit_fn_builder
from flowstone.estimator.canned.optimizers import get_optimizer_instance
from flowstone.estimator.estimator import Estimator
from flowstone.estimator.head.base_head import Head
from flowstone.estimator.head.regression_head import RegressionHead

__all__ = ["DNNLinearCombinedClassifier", "DNNLinearCombinedEstimator", "DNNLinearCombinedRegressor"]

_DNN_LEARNING_RATE, _LINEAR_LEARNING_RATE = 0.001, 0.005
_SLICE_BYTES = 64 << 20


class _Parts(NamedTuple):
    """What both halves are made of."""

    linear_columns: tuple[Any, ...]
    linear_optimizer: Any
    sparse_combiner: str
    dnn_columns: tuple[Any, ...]
    dnn_optimizer: Any
    hidden_units: Any
    activation_fn: Any
    dropout: float | None
    batch_norm: bool
    partitioner: Any


def _combined_spec(parts: _Parts, head: Head, features: Any, labels: Any, mode: str, config: Any) -> Any:
    if not isinstance(features, dict):
        raise ValueError(f"features should be a dictionary of `Tensor`s. Given type: {type(features)}")
    replicas = max(1, config.num_ps_replicas)
    cut = parts.partitioner or tf.min_max_variable_partitioner(replicas, min_slice_size=_SLICE_BYTES)
    halves, optimizers = [], []
    if parts.dnn_columns:
        optimizer = get_optimizer_instance(parts.dnn_optimizer, _DNN_LEARNING_RATE)
        cut_dnn = tf.min_max_variable_partitioner(max_partitions=replicas)
        with tf.variable_scope("dnn", values=tuple(features.values()), partitioner=cut_dnn) as scope:
            logit_fn = dnn_logit_fn_builder(
                head.logits_dimension,
                parts.hidden_units,
                parts.dnn_columns,
                parts.activation_fn,
                parts.dropout,
                cut,
                parts.batch_norm,
            )
            halves.append(logit_fn(features=features, mode=mode))
        optimizers.append((optimizer, scope.name))
    if parts.linear_columns:
        rate = default_learning_rate(parts.linear_columns, _LINEAR_LEARNING_RATE)
        optimizer = get_optimizer_instance(parts.linear_optimizer, rate)
        with tf.variable_scope("linear", values=tuple(features.values()), partitioner=cut) as scope:
            build = linear_logit_fn_builder(
                head.logits_dimension, parts.linear_columns, parts.sparse_combiner
            )
            halves.append(build(features=features))
            layer_summary(halves[-1], scope.name)
        optimizers.append((optimizer, scope.name))
    logits = halves[0] + halves[1] if len(halves) == 2 else halves[0]

    def train_op_fn(loss: Any) -> Any:
        return _train_both(loss, optimizers)

    return head.create_estimator_spec(
        features=features, mode=mode, logits=logits, labels=labels, train_op_fn=train_op_fn
    )


def _train_both(loss: Any, optimizers: list[tuple[Any, str]]) -> Any:
    """The operation of a step: each optimiser trains the variables of a scope, then the step is counted."""
    operations = [
        optimizer.minimize(loss, var_list=tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope=name))
        for optimizer, name in optimizers
    ]
    with tf.control_dependencies([tf.group(*operations)]):
        return tf.assign_add(tf.train.get_global_step(), 1).op


class DNNLinearCombinedEstimator(Estimator):
    """A linear model and a network side by side, under any head.

    Args:
        head: the Head; `model_dir`: the folder of checkpoints and logs.
        linear_feature_columns, linear_optimizer: of the linear model.
        dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout: of the network.
        input_layer_partitioner: how variables of the columns are cut.
        config: a RunConfig.
        linear_sparse_combiner: how several values of a categorical column are joined.
        warm_start_from: a checkpoint or WarmStartSettings.
        batch_norm: whether hidden layers are normalised over the batch.

    Raises ValueError without any columns, and for a network without columns or layers.
    """

    def __init__(
        self,
        head: Head,
        model_dir: Any = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Iterable[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] = tf.nn.relu,
        dnn_dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        linear_sparse_combiner: str = "sum",
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        linear_columns, dnn_columns = tuple(linear_feature_columns or ()), tuple(dnn_feature_columns or ())
        if not linear_columns and not dnn_columns:
            raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
        if dnn_columns and not dnn_hidden_units:
            raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
        parts = _Parts(
            linear_columns,
            linear_optimizer,
            linear_sparse_combiner,
            dnn_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
            input_layer_partitioner,
        )

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            return _combined_spec(parts, head, features, labels, mode, config)

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedClassifier(DNNLinearCombinedEstimator):
    """A linear model and a network side by side that classify.

    Args:
        n_classes: how many classes; `label_vocabulary`: the labels' texts.
        weight_column: the feature with examples' weights.
        loss_reduction: a `tf.losses.Reduction`.

    Other arguments: of `DNNLinearCombinedEstimator`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Iterable[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] = tf.nn.relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = "weighted_sum",
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        head = classification_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(
            head,
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            linear_sparse_combiner,
            warm_start_from,
            batch_norm,
        )


class DNNLinearCombinedRegressor(DNNLinearCombinedEstimator):
    """A linear model and a network side by side that predict real values.

    Args:
        label_dimension: the size of the labels' last axis.
        weight_column: the feature with examples' weights.
        loss_reduction: a `tf.losses.Reduction`.

    Other arguments: of `DNNLinearCombinedEstimator`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Iterable[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] = tf.nn.relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = "weighted_sum",
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(
            head,
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            linear_sparse_combiner,
            warm_start_from,
            batch_norm,
        )
