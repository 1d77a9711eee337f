"""Linear models of the older feature columns: a weighted sum of the features, followed by a head.

Variables are ``linear/COLUMN/weights`` (``weight`` for numbers) and ``linear/bias_weight``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import ModeKeys
from flowstone.contrib.learn.estimators import head as head_lib
from flowstone.contrib.learn.estimators.canned_predictions import ClassPredictions, ScorePredictions
from flowstone.contrib.learn.estimators.estimator import Estimator
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps
from flowstone.contrib.learn.estimators.sdca_hook import SdcaUpdateHook
from flowstone.contrib.linear_optimizer.sdca_optimizer import SDCAOptimizer

__all__ = ["LinearClassifier", "LinearEstimator", "LinearRegressor"]

_LEARNING_RATE = 0.2


def default_learning_rate(columns: Iterable[Any]) -> float:
    """At most 0.2, less for many columns."""
    return min(_LEARNING_RATE, 1.0 / math.sqrt(len(list(columns))))


def optimizer_instance(optimizer: Any, learning_rate: float | None = None) -> Any:
    """An optimiser given as such, as a function that makes one, or as a name of `tf.contrib.layers`'s."""
    if isinstance(optimizer, str):
        kinds = tf.contrib.layers.OPTIMIZER_CLS_NAMES
        if optimizer not in kinds:
            raise ValueError(f"Unsupported optimizer {optimizer}: use one of {sorted(kinds)}")
        return kinds[optimizer](learning_rate=learning_rate)
    return optimizer() if callable(optimizer) else optimizer


def feature_dict(features: Any) -> dict[Any, Any]:
    """The features as a dict; a tensor alone has the name ""."""
    if isinstance(features, Mapping):
        return dict(features)
    return {"": features}


def one_part(config: Any, min_slice_size: int = 64 << 20) -> Any:
    """The partitioner that gives every parameter server a part of variables that are large enough."""
    servers = config.num_ps_replicas if config else 0
    return tf.min_max_variable_partitioner(max_partitions=max(1, servers), min_slice_size=min_slice_size)


def linear_model_fn(
    features: Any, labels: Any, mode: str, params: Mapping[str, Any], config: Any = None
) -> ModelFnOps:
    """The model of `params`: head, feature_columns, optimizer, gradient_clip_norm, joint_weights."""
    head, columns = params["head"], list(params["feature_columns"])
    optimizer = params.get("optimizer") or tf.train.FtrlOptimizer(default_learning_rate(columns))
    features = feature_dict(features)
    values = tuple(features.values())
    with tf.variable_scope("linear", values=values, partitioner=one_part(config)) as scope:
        layers = tf.contrib.layers
        weigh = (
            layers.joint_weighted_sum_from_feature_columns
            if params.get("joint_weights")
            else layers.weighted_sum_from_feature_columns
        )
        logits, _, _ = weigh(
            columns_to_tensors=features,
            feature_columns=columns,
            num_outputs=head.logits_dimension,
            weight_collections=["linear"],
            scope=scope,
        )

        def train_op_fn(loss: Any) -> Any:
            variables = tf.get_collection("linear")
            gradients = tf.gradients(loss, variables)
            if params.get("gradient_clip_norm"):
                gradients, _ = tf.clip_by_global_norm(gradients, params["gradient_clip_norm"])
            return optimizer_instance(optimizer, default_learning_rate(columns)).apply_gradients(
                zip(gradients, variables, strict=True), global_step=tf.train.get_global_step()
            )

        return head.create_model_fn_ops(  # type: ignore[no-any-return]
            features=features, labels=labels, mode=mode, train_op_fn=train_op_fn, logits=logits
        )


def sdca_model_fn(
    features: Any, labels: Any, mode: str, params: Mapping[str, Any], config: Any = None
) -> ModelFnOps:
    """The model of `params`, trained by dual coordinate ascent: head, feature_columns, optimizer (an
    SDCAOptimizer), weight_column_name, loss_type."""
    del config
    head, columns, optimizer = params["head"], list(params["feature_columns"]), params["optimizer"]
    if optimizer.example_id_column not in features:
        raise KeyError(optimizer.example_id_column)
    layers = tf.contrib.layers
    with tf.variable_scope("linear", values=tuple(features.values())) as scope:
        logits, variables, bias = layers.weighted_sum_from_feature_columns(
            columns_to_tensors=features,
            feature_columns=columns,
            num_outputs=1,
            scope=scope,
        )
    bias_column = layers.real_valued_column("tf_virtual_bias_column")
    hook = SdcaUpdateHook()

    def train_op_fn(loss: Any) -> Any:
        del loss
        made = layers.transform_features(features, columns)
        every = {**features, **made, bias_column: tf.ones([tf.shape(logits)[0], 1])}
        model, train_op = optimizer.get_train_step(
            {**variables, bias_column: [bias]},
            params["weight_column_name"],
            params["loss_type"],
            every,
            labels,
            tf.train.get_global_step(),
        )
        tf.summary.scalar("approximate_duality_gap", model.approximate_duality_gap())
        tf.summary.scalar("examples_seen", model.examples_seen())
        hook.set_parameters(model, train_op)
        return train_op

    ops = head.create_model_fn_ops(
        features=features, labels=labels, mode=mode, train_op_fn=train_op_fn, logits=logits
    )
    if mode != ModeKeys.TRAIN:
        return ops  # type: ignore[no-any-return]
    return ops._replace(training_chief_hooks=[*ops.training_chief_hooks, hook])  # type: ignore[no-any-return]


def _trained_by(
    params: dict[str, Any], weight_column_name: str | None, loss_type: str
) -> tuple[Callable[..., ModelFnOps], dict[str, Any]]:
    """The model function for the optimiser of `params`, and its parameters."""
    if not isinstance(params["optimizer"], SDCAOptimizer):
        return linear_model_fn, params
    if params["joint_weights"]:
        raise ValueError("SDCAOptimizer does not train joint weights")
    return sdca_model_fn, {**params, "weight_column_name": weight_column_name, "loss_type": loss_type}


class LinearEstimator(Estimator):
    """A linear model with a head of the program's.

    Args:
        feature_columns: the columns of `tf.contrib.layers`.
        head: a head; `weight_column_name`: not used here, the head has it.
        model_dir: the folder of checkpoints and logs.
        optimizer: an optimiser, by default FTRL; `gradient_clip_norm`: the norm to which gradients are
            clipped.
        _joint_weights: whether one matrix holds the weights of all columns, which must be sparse then.
        config: a RunConfig; `feature_engineering_fn`: see `Estimator`.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        head: Any,
        model_dir: Any = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        assert feature_columns
        del weight_column_name
        super().__init__(
            model_fn=linear_model_fn,
            model_dir=model_dir,
            config=config,
            params={
                "head": head,
                "feature_columns": list(feature_columns),
                "optimizer": optimizer,
                "gradient_clip_norm": gradient_clip_norm,
                "joint_weights": _joint_weights,
            },
            feature_engineering_fn=feature_engineering_fn,
        )


class LinearClassifier(ClassPredictions, Estimator):
    """A linear model of classes.

    Args:
        n_classes: how many classes; `label_keys`: their names, if labels are strings.
        weight_column_name: the features with the weights of examples.
        enable_centered_bias: whether a further bias is learnt from the labels alone.
        feature_columns, model_dir, optimizer, gradient_clip_norm, _joint_weight, config,
            feature_engineering_fn: see `LinearEstimator`; the optimiser may be an SDCAOptimizer, too.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        _joint_weight: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
        label_keys: Any = None,
    ) -> None:
        if (isinstance(optimizer, str) or optimizer is None) and enable_centered_bias and _joint_weight:
            tf.logging.warning("a centred bias beside joint weights is not needed: these have a bias")
        head = head_lib.multi_class_head(
            n_classes,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
            label_keys=label_keys,
        )
        if isinstance(optimizer, SDCAOptimizer) and (n_classes != 2 or enable_centered_bias):
            raise ValueError("SDCAOptimizer trains two classes, without a centred bias")
        model_fn, params = _trained_by(
            {
                "head": head,
                "feature_columns": list(feature_columns),
                "optimizer": optimizer,
                "gradient_clip_norm": gradient_clip_norm,
                "joint_weights": _joint_weight,
            },
            weight_column_name,
            "logistic_loss",
        )
        super().__init__(model_fn, model_dir, config, params, feature_engineering_fn)


class LinearRegressor(ScorePredictions, Estimator):
    """A linear model of numbers.

    `label_dimension`: how many numbers an example has; the rest as for `LinearClassifier`.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        head = head_lib.regression_head(
            weight_column_name=weight_column_name,
            label_dimension=label_dimension,
            enable_centered_bias=enable_centered_bias,
        )
        if isinstance(optimizer, SDCAOptimizer) and (label_dimension != 1 or enable_centered_bias):
            raise ValueError("SDCAOptimizer trains one number an example, without a centred bias")
        model_fn, params = _trained_by(
            {
                "head": head,
                "feature_columns": list(feature_columns),
                "optimizer": optimizer,
                "gradient_clip_norm": gradient_clip_norm,
                "joint_weights": _joint_weights,
            },
            weight_column_name,
            "squared_loss",
        )
        super().__init__(model_fn, model_dir, config, params, feature_engineering_fn)
