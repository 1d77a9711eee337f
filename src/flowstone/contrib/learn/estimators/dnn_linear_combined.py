"""A linear model and a network whose logits are added ("wide and deep", Cheng et al., 2016), followed by a
head.

Each part is trained by an optimiser of its own. Variables are those of the two models, `linear/…` and
`dnn/…`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.estimators import head as head_lib
from flowstone.contrib.learn.estimators.canned_predictions import ClassPredictions, ScorePredictions
from flowstone.contrib.learn.estimators.dnn import (
    LEARNING_RATE,
    _summarized,
    dnn_logits,
    embedding_multipliers,
)
from flowstone.contrib.learn.estimators.estimator import Estimator
from flowstone.contrib.learn.estimators.linear import (
    default_learning_rate,
    feature_dict,
    one_part,
    optimizer_instance,
)
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps

__all__ = ["DNNLinearCombinedClassifier", "DNNLinearCombinedEstimator", "DNNLinearCombinedRegressor"]

_FIX_WARNING = (
    "Without fix_global_step_increment_bug the global step counts each step twice, once for each part. "
    "Set it "
    "to True."
)


def _model_fn(
    features: Any, labels: Any, mode: str, params: Mapping[str, Any], config: Any = None
) -> ModelFnOps:
    """The model of `params`, which are the arguments of `DNNLinearCombinedEstimator`."""
    head = params["head"]
    linear, dnn = params["linear_feature_columns"], params["dnn_feature_columns"]
    features = feature_dict(features)
    given = params.get("input_layer_partitioner")
    input_part = given or one_part(config, params.get("input_layer_min_slice_size") or 64 << 20)
    values, input_scope, parts = tuple(features.values()), "", []
    if dnn:
        with tf.variable_scope("dnn", values=values, partitioner=one_part(config)):
            logits, input_scope = dnn_logits(
                features, dnn, params["dnn_hidden_units"], head.logits_dimension, mode,
                params["dnn_activation_fn"], params["dnn_dropout"], input_part, separator="/",
            )  # fmt: skip
            parts.append(logits)
    if linear:
        parts.append(_linear_logits(features, linear, head.logits_dimension, params, input_part))
    logits = parts[0] if len(parts) == 1 else parts[0] + parts[1]

    def train_op_fn(loss: Any) -> Any:
        return _train_op(loss, params, input_scope)

    return head.create_model_fn_ops(  # type: ignore[no-any-return]
        features=features, mode=mode, labels=labels, train_op_fn=train_op_fn, logits=logits
    )


def _linear_logits(
    features: Mapping[Any, Any], columns: Any, count: int, params: Mapping[str, Any], partitioner: Any
) -> Any:
    with tf.variable_scope("linear", values=tuple(features.values()), partitioner=partitioner) as scope:
        layers = tf.contrib.layers
        weigh = (
            layers.joint_weighted_sum_from_feature_columns
            if params["joint_linear_weights"]
            else layers.weighted_sum_from_feature_columns
        )
        logits, _, _ = weigh(
            columns_to_tensors=features,
            feature_columns=columns,
            num_outputs=count,
            weight_collections=["linear"],
            scope=scope,
        )
        _summarized(logits, scope.name, "/")
    return logits


def _train_op(loss: Any, params: Mapping[str, Any], input_scope: str) -> Any:
    """A step of both optimisers; each counts it, unless the counting is fixed."""
    step, is_fixed = tf.train.get_global_step(), params["fix_global_step_increment_bug"]
    shared: dict[str, Any] = {
        "loss": loss,
        "global_step": step,
        "clip_gradients": params["gradient_clip_norm"],
        "summaries": [],
        "increment_global_step": not is_fixed,
    }
    steps = []
    if params["dnn_feature_columns"]:
        steps.append(
            tf.contrib.layers.optimize_loss(
                learning_rate=LEARNING_RATE,
                optimizer=optimizer_instance(params["dnn_optimizer"] or "Adagrad", LEARNING_RATE),
                gradient_multipliers=embedding_multipliers(params["embedding_lr_multipliers"], input_scope),
                variables=tf.get_collection("dnn"),
                name="dnn",
                **shared,
            )
        )
    if params["linear_feature_columns"]:
        rate = default_learning_rate(params["linear_feature_columns"])
        steps.append(
            tf.contrib.layers.optimize_loss(
                learning_rate=rate,
                optimizer=optimizer_instance(params["linear_optimizer"] or "Ftrl", rate),
                variables=tf.get_collection("linear"),
                name="linear",
                **shared,
            )
        )
    train_op = tf.group(*steps)
    if not is_fixed:
        return train_op
    with tf.control_dependencies([train_op]):
        return tf.assign_add(step, 1).op


def _params(
    head: Any, linear_feature_columns: Any, linear_optimizer: Any, joint_linear_weights: bool,
    dnn_feature_columns: Any, dnn_optimizer: Any, dnn_hidden_units: Any, dnn_activation_fn: Any,
    dnn_dropout: Any, gradient_clip_norm: Any, embedding_lr_multipliers: Any, min_slice_size: Any,
    fix_global_step_increment_bug: bool, partitioner: Any = None,
) -> dict[str, Any]:  # fmt: skip
    linear, dnn = tuple(linear_feature_columns or ()), tuple(dnn_feature_columns or ())
    if not linear and not dnn:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    if dnn and not dnn_hidden_units:
        raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
    if linear and dnn and not fix_global_step_increment_bug:
        tf.logging.warning(_FIX_WARNING)
    return {
        "head": head,
        "linear_feature_columns": linear,
        "linear_optimizer": linear_optimizer,
        "joint_linear_weights": joint_linear_weights,
        "dnn_feature_columns": dnn,
        "dnn_optimizer": dnn_optimizer,
        "dnn_hidden_units": dnn_hidden_units,
        "dnn_activation_fn": dnn_activation_fn,
        "dnn_dropout": dnn_dropout,
        "gradient_clip_norm": gradient_clip_norm,
        "embedding_lr_multipliers": embedding_lr_multipliers,
        "input_layer_min_slice_size": min_slice_size,
        "fix_global_step_increment_bug": fix_global_step_increment_bug,
        "input_layer_partitioner": partitioner,
    }


class DNNLinearCombinedEstimator(Estimator):
    """A linear model and a network with a head of the program's.

    Args:
        head: a head.
        linear_feature_columns, linear_optimizer, _joint_linear_weights: of the linear part; see
            `LinearEstimator`.
        dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout: of the
            network; see `DNNClassifier`.
        model_dir, gradient_clip_norm, config, feature_engineering_fn, embedding_lr_multipliers: see
            `DNNClassifier`.
        fix_global_step_increment_bug: whether a step of both parts counts as one.
        input_layer_partitioner: how embeddings are parted among parameter servers.

    Raises ValueError without columns, and for a network without layers.
    """

    def __init__(
        self,
        head: Any,
        model_dir: Any = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = None,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        fix_global_step_increment_bug: bool = False,
        input_layer_partitioner: Any = None,
    ) -> None:
        params = _params(
            head, linear_feature_columns, linear_optimizer, _joint_linear_weights, dnn_feature_columns,
            dnn_optimizer, dnn_hidden_units, dnn_activation_fn or tf.nn.relu, dnn_dropout, gradient_clip_norm,
            embedding_lr_multipliers, None, fix_global_step_increment_bug, input_layer_partitioner,
        )  # fmt: skip
        super().__init__(_model_fn, model_dir, config, params, feature_engineering_fn)


class DNNLinearCombinedClassifier(ClassPredictions, Estimator):
    """A linear model and a network of classes; see `DNNLinearCombinedEstimator` and `DNNClassifier`."""

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        input_layer_min_slice_size: int | None = None,
        label_keys: Any = None,
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        head = head_lib.multi_class_head(
            n_classes,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
            label_keys=label_keys,
        )
        params = _params(
            head, linear_feature_columns, linear_optimizer, _joint_linear_weights, dnn_feature_columns,
            dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout, gradient_clip_norm,
            embedding_lr_multipliers, input_layer_min_slice_size, fix_global_step_increment_bug,
        )  # fmt: skip
        super().__init__(_model_fn, model_dir, config, params, feature_engineering_fn)


class DNNLinearCombinedRegressor(ScorePredictions, Estimator):
    """A linear model and a network of numbers; see `DNNLinearCombinedEstimator` and `DNNRegressor`."""

    def __init__(
        self,
        model_dir: Any = None,
        weight_column_name: str | None = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        config: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        input_layer_min_slice_size: int | None = None,
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        head = head_lib.regression_head(
            weight_column_name=weight_column_name,
            label_dimension=label_dimension,
            enable_centered_bias=enable_centered_bias,
        )
        params = _params(
            head, linear_feature_columns, linear_optimizer, _joint_linear_weights, dnn_feature_columns,
            dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout, gradient_clip_norm,
            embedding_lr_multipliers, input_layer_min_slice_size, fix_global_step_increment_bug,
        )  # fmt: skip
        super().__init__(_model_fn, model_dir, config, params, feature_engineering_fn)
