"""Networks of fully connected layers on the older feature columns, followed by a head.

Variables are ``dnn/input_from_feature_columns/COLUMN/weights`` for embeddings,
``dnn/hiddenlayer_I/weights`` and ``biases``, ``dnn/logits/weights`` and ``biases``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import ModeKeys
from flowstone.contrib.learn.estimators import head as head_lib
from flowstone.contrib.learn.estimators.canned_predictions import ClassPredictions, ScorePredictions
from flowstone.contrib.learn.estimators.estimator import Estimator
from flowstone.contrib.learn.estimators.linear import feature_dict, one_part, optimizer_instance
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps

__all__ = ["DNNClassifier", "DNNEstimator", "DNNRegressor", "dnn_logits"]

_CENTERED_BIAS_WEIGHT = "centered_bias_weight"
LEARNING_RATE = 0.05


def _summarized(value: Any, tag: str, separator: str) -> None:
    """Summaries of a layer's values: their distribution, and which part of them is zero."""
    tf.summary.scalar(f"{tag}{separator}fraction_of_zero_values", tf.nn.zero_fraction(value))
    tf.summary.histogram(f"{tag}{separator}activation", value)


def dnn_logits(
    features: Mapping[Any, Any],
    columns: Sequence[Any],
    hidden_units: Sequence[int],
    count: int,
    mode: str,
    activation_fn: Any,
    dropout: float | None,
    partitioner: Any,
    separator: str = "_",
) -> tuple[Any, str]:
    """The logits [batch, count] of a network in the scope `dnn`, and the name of its input's scope."""
    layers = tf.contrib.layers
    values = tuple(features.values())
    with tf.variable_scope("input_from_feature_columns", values=values, partitioner=partitioner) as scope:
        net = layers.input_from_feature_columns(
            columns_to_tensors=features, feature_columns=columns, weight_collections=["dnn"], scope=scope
        )
        input_scope = scope.name
    for index, units in enumerate(hidden_units):
        with tf.variable_scope(f"hiddenlayer_{index}", values=(net,)) as scope:
            net = layers.fully_connected(
                net, units, activation_fn=activation_fn, variables_collections=["dnn"], scope=scope
            )
            if dropout is not None and mode == ModeKeys.TRAIN:
                net = layers.dropout(net, keep_prob=1.0 - dropout)
        _summarized(net, scope.name, separator)
    with tf.variable_scope("logits", values=(net,)) as scope:
        logits = layers.fully_connected(
            net, count, activation_fn=None, variables_collections=["dnn"], scope=scope
        )
    _summarized(logits, scope.name, separator)
    return logits, input_scope


def embedding_multipliers(given: Mapping[Any, float] | None, input_scope: str) -> dict[Any, float] | None:
    """The factors of gradients by variable, from those by embedding column."""
    if not given:
        return None
    found = {}
    for column, factor in given.items():
        if not hasattr(column, "sparse_id_column"):
            raise ValueError(f"learning rates are only multiplied for embedding columns, not {column}")
        start = f"{input_scope}/{column.name}/weights"
        found.update({v: factor for v in tf.get_collection("dnn") if v.op.name.startswith(start)})
    return found


def _dnn_model_fn(
    features: Any, labels: Any, mode: str, params: Mapping[str, Any], config: Any = None
) -> ModelFnOps:
    """The model of `params`, which are the arguments of `DNNEstimator`."""
    head = params["head"]
    features = feature_dict(features)
    values = tuple(features.values())
    with tf.variable_scope("dnn", values=values, partitioner=one_part(config)):
        logits, input_scope = dnn_logits(
            features,
            list(params["feature_columns"]),
            params["hidden_units"],
            head.logits_dimension,
            mode,
            params.get("activation_fn"),
            params.get("dropout"),
            one_part(config, params.get("input_layer_min_slice_size") or 64 << 20),
        )

        def train_op_fn(loss: Any) -> Any:
            return tf.contrib.layers.optimize_loss(
                loss=loss,
                global_step=tf.train.get_global_step(),
                learning_rate=LEARNING_RATE,
                optimizer=optimizer_instance(params.get("optimizer") or "Adagrad", LEARNING_RATE),
                gradient_multipliers=embedding_multipliers(
                    params.get("embedding_lr_multipliers"), input_scope
                ),
                clip_gradients=params.get("gradient_clip_norm"),
                name="dnn",
                summaries=[],
            )

        return head.create_model_fn_ops(  # type: ignore[no-any-return]
            features=features, mode=mode, labels=labels, train_op_fn=train_op_fn, logits=logits
        )


class DNNClassifier(ClassPredictions, Estimator):
    """A network of classes.

    Args:
        hidden_units: the sizes of the layers; `feature_columns`: the columns of `tf.contrib.layers`.
        model_dir: the folder of checkpoints and logs.
        n_classes: how many classes; `label_keys`: their names, if labels are strings.
        weight_column_name: the features with the weights of examples.
        optimizer: an optimiser, by default Adagrad; `gradient_clip_norm`: the norm to which gradients are
            clipped.
        activation_fn: of the layers; `dropout`: the part of their outputs that training leaves out.
        enable_centered_bias: whether a further bias is learnt from the labels alone.
        config: a RunConfig; `feature_engineering_fn`: see `Estimator`.
        embedding_lr_multipliers: factors of the learning rate by embedding column.
        input_layer_min_slice_size: the bytes from which on embeddings are parted among parameter servers.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        input_layer_min_slice_size: int | None = None,
        label_keys: Any = None,
    ) -> None:
        self._feature_columns = tuple(feature_columns)
        head = head_lib.multi_class_head(
            n_classes,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
            label_keys=label_keys,
        )
        super().__init__(
            model_fn=_dnn_model_fn,
            model_dir=model_dir,
            config=config,
            params=_params(
                head, hidden_units, self._feature_columns, optimizer, activation_fn, dropout,
                gradient_clip_norm, embedding_lr_multipliers, input_layer_min_slice_size,
            ),
            feature_engineering_fn=feature_engineering_fn,
        )  # fmt: skip


class DNNRegressor(ScorePredictions, Estimator):
    """A network of numbers; `label_dimension`: how many an example has; the rest as for `DNNClassifier`."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
        label_dimension: int = 1,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        input_layer_min_slice_size: int | None = None,
    ) -> None:
        self._feature_columns = tuple(feature_columns)
        head = head_lib.regression_head(
            label_dimension=label_dimension,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
        )
        super().__init__(
            model_fn=_dnn_model_fn,
            model_dir=model_dir,
            config=config,
            params=_params(
                head, hidden_units, self._feature_columns, optimizer, activation_fn, dropout,
                gradient_clip_norm, embedding_lr_multipliers, input_layer_min_slice_size,
            ),
            feature_engineering_fn=feature_engineering_fn,
        )  # fmt: skip


class DNNEstimator(Estimator):
    """A network with a head of the program's; `head`: a head; the rest as for `DNNClassifier`."""

    def __init__(
        self,
        head: Any,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        optimizer: Any = None,
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        input_layer_min_slice_size: int | None = None,
    ) -> None:
        super().__init__(
            model_fn=_dnn_model_fn,
            model_dir=model_dir,
            config=config,
            params=_params(
                head, hidden_units, tuple(feature_columns), optimizer, activation_fn, dropout,
                gradient_clip_norm, embedding_lr_multipliers, input_layer_min_slice_size,
            ),
            feature_engineering_fn=feature_engineering_fn,
        )  # fmt: skip


def _params(
    head: Any, hidden_units: Any, columns: Any, optimizer: Any, activation_fn: Any, dropout: Any,
    gradient_clip_norm: Any, embedding_lr_multipliers: Any, input_layer_min_slice_size: Any,
) -> dict[str, Any]:  # fmt: skip
    return {
        "head": head,
        "hidden_units": hidden_units,
        "feature_columns": columns,
        "optimizer": optimizer,
        "activation_fn": activation_fn,
        "dropout": dropout,
        "gradient_clip_norm": gradient_clip_norm,
        "embedding_lr_multipliers": embedding_lr_multipliers,
        "input_layer_min_slice_size": input_layer_min_slice_size,
    }
