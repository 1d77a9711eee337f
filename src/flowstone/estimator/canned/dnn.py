"""Networks of dense layers over feature columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import flowstone as tf
from flowstone.estimator.canned.head import classification_head
from flowstone.estimator.canned.optimizers import get_optimizer_instance
from flowstone.estimator.estimator import Estimator
from flowstone.estimator.head.base_head import Head
from flowstone.estimator.head.regression_head import RegressionHead
from flowstone.estimator.mode_keys import ModeKeys
from flowstone.layers.feature_columns.input_layers import model_inputs

__all__ = ["DNNClassifier", "DNNEstimator", "DNNRegressor", "dnn_logit_fn_builder"]

_LEARNING_RATE = 0.05
_SLICE_BYTES = 64 << 20
_MOMENTUM = 0.999  # of batch normalisation


def layer_summary(values: Any, tag: str) -> None:
    """How many of a layer's values are zero, and how they are distributed."""
    tf.summary.scalar(f"{tag}/fraction_of_zero_values", tf.nn.zero_fraction(values))
    tf.summary.histogram(f"{tag}/activation", values)


def dnn_logit_fn_builder(
    units: int,
    hidden_units: Iterable[int],
    feature_columns: Iterable[Any],
    activation_fn: Callable[[Any], Any],
    dropout: float | None,
    input_layer_partitioner: Any,
    batch_norm: bool = False,
) -> Callable[..., Any]:
    """A function of features and mode that gives the logits [batch, units] of a network, with its summaries.

    Args:
        units: how many logits; `hidden_units`: the layers' sizes.
        feature_columns: the columns; `input_layer_partitioner`: how their variables are cut.
        activation_fn: of the hidden layers; `dropout`: the share that training drops.
        batch_norm: whether hidden layers are normalised over the batch.

    Raises ValueError for units that are no number.
    """
    if not isinstance(units, int):
        raise ValueError(f"units must be an int.  Given type: {type(units)}")
    columns = list(feature_columns)

    def dnn_logit_fn(features: Any, mode: str) -> Any:
        training = mode == ModeKeys.TRAIN
        with tf.variable_scope(
            "input_from_feature_columns",
            values=tuple(features.values()),
            partitioner=input_layer_partitioner,
        ):
            net = model_inputs(features, columns)
        for number, size in enumerate(hidden_units):
            with tf.variable_scope(f"hiddenlayer_{number}", values=(net,), use_resource=True) as scope:
                net = tf.layers.dense(
                    net, size, activation_fn, kernel_initializer=tf.glorot_uniform_initializer(), name=scope
                )
                if dropout is not None and training:
                    net = tf.layers.dropout(net, rate=dropout, training=True)
                if batch_norm:
                    net = tf.layers.batch_normalization(
                        net, momentum=_MOMENTUM, training=training, name=f"batchnorm_{number}"
                    )
            layer_summary(net, scope.name)
        with tf.variable_scope("logits", values=(net,), use_resource=True) as scope:
            logits = tf.layers.dense(
                net, units, None, kernel_initializer=tf.glorot_uniform_initializer(), name=scope
            )
        layer_summary(logits, scope.name)
        return logits

    return dnn_logit_fn


_dnn_logit_fn_builder = dnn_logit_fn_builder
_add_hidden_layer_summary = layer_summary


class DNNEstimator(Estimator):
    """A network of dense layers under any head.

    Args:
        head: the Head; `hidden_units`: the layers' sizes; `feature_columns`: the columns.
        model_dir: the folder of checkpoints and logs.
        optimizer: a name, an Optimizer, or a function that makes one.
        activation_fn: of the hidden layers; `dropout`: the share that training drops.
        input_layer_partitioner: how variables of the columns are cut.
        config: a RunConfig.
        warm_start_from: a checkpoint or WarmStartSettings.
        batch_norm: whether hidden layers are normalised over the batch.
    """

    def __init__(
        self,
        head: Head,
        hidden_units: Iterable[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] = tf.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        columns = tuple(feature_columns or ())

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            if not isinstance(features, dict):
                raise ValueError(
                    f"features should be a dictionary of `Tensor`s. Given type: {type(features)}"
                )
            trainer = get_optimizer_instance(optimizer, _LEARNING_RATE)
            partitions = max(1, config.num_ps_replicas)
            cut = tf.min_max_variable_partitioner(max_partitions=partitions)
            cut_input = input_layer_partitioner or tf.min_max_variable_partitioner(
                max_partitions=partitions, min_slice_size=_SLICE_BYTES
            )
            with tf.variable_scope("dnn", values=tuple(features.values()), partitioner=cut):
                logit_fn = dnn_logit_fn_builder(
                    head.logits_dimension,
                    hidden_units,
                    columns,
                    activation_fn,
                    dropout,
                    cut_input,
                    batch_norm,
                )
                return head.create_estimator_spec(
                    features=features,
                    mode=mode,
                    logits=logit_fn(features=features, mode=mode),
                    labels=labels,
                    optimizer=trainer,
                )

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNClassifier(DNNEstimator):
    """A network that classifies.

    Args:
        n_classes: how many classes; `label_vocabulary`: the labels' texts.
        weight_column: the feature with examples' weights.
        loss_reduction: a `tf.losses.Reduction`.

    Other arguments: of `DNNEstimator`.
    """

    def __init__(
        self,
        hidden_units: Iterable[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] = tf.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = "weighted_sum",
        batch_norm: bool = False,
    ) -> None:
        head = classification_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(
            head, hidden_units, feature_columns, model_dir, optimizer, activation_fn, dropout,
            input_layer_partitioner, config, warm_start_from, batch_norm,
        )  # fmt: skip


class DNNRegressor(DNNEstimator):
    """A network that predicts real values.

    Args:
        label_dimension: the size of the labels' last axis.
        weight_column: the feature with examples' weights.
        loss_reduction: a `tf.losses.Reduction`.

    Other arguments: of `DNNEstimator`.
    """

    def __init__(
        self,
        hidden_units: Iterable[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] = tf.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = "weighted_sum",
        batch_norm: bool = False,
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(
            head, hidden_units, feature_columns, model_dir, optimizer, activation_fn, dropout,
            input_layer_partitioner, config, warm_start_from, batch_norm,
        )  # fmt: skip
