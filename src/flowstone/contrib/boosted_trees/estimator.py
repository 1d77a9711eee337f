"""`tf.contrib.boosted_trees.estimator_batch.estimator`: boosted trees of classes, and of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.boosted_trees import losses
from flowstone.contrib.boosted_trees.model import ModelBuilderOutputType, model_builder
from flowstone.contrib.learn.estimators import head as head_lib
from flowstone.contrib.learn.estimators.estimator import Estimator
from flowstone.estimator import estimator as core_estimator

__all__ = [
    "CoreGradientBoostedDecisionTreeEstimator",
    "GradientBoostedDecisionTreeClassifier",
    "GradientBoostedDecisionTreeEstimator",
    "GradientBoostedDecisionTreeRegressor",
]

_DESCRIPTION = """
    Args:
        learner_config: a message LearnerConfig.
        examples_per_layer: how many examples a layer takes, or a function of the number of the layer.
        num_trees: after how many trees training stops.
        feature_columns: of `tf.contrib.layers`, if features are to be made by them.
        weight_column_name: the feature that has the weights of examples.
        model_dir, config, feature_engineering_fn: see `tf.contrib.learn.Estimator`.
        logits_modifier_function: of (logits, features, mode), gives the logits in their place.
        center_bias: whether the first tree is the bias, found before the others.
        use_core_libs: whether feature columns are those of `tf.feature_column`.
        output_leaf_index: whether predictions have the leaves of examples too.
        override_global_step_value: what the global step becomes when there are enough trees.
        num_quantiles: how many buckets a feature of numbers has.
"""


def _params(
    head: Any, learner_config: Any, examples_per_layer: Any, num_trees: Any, feature_columns: Any,
    weight_column_name: Any, logits_modifier_function: Any, center_bias: bool, **more: Any,
) -> dict[str, Any]:  # fmt: skip
    return {
        "head": head,
        "feature_columns": feature_columns,
        "learner_config": learner_config,
        "num_trees": num_trees,
        "weight_column_name": weight_column_name,
        "examples_per_layer": examples_per_layer,
        "center_bias": center_bias,
        "logits_modifier_function": logits_modifier_function,
        **more,
    }


def _model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
    return model_builder(features, labels, mode, params, config)


def _maxent_loss(n_classes: int) -> Callable[..., Any]:
    """The mean loss of several classes, which can be derived twice."""

    def loss_fn(labels: Any, logits: Any, weights: Any = None) -> Any:
        if weights is not None:
            weights = tf.reshape(weights, [-1, 1])
        loss, _ = losses.per_example_maxent_loss(labels, weights, logits, n_classes)
        return tf.reduce_mean(loss)

    return loss_fn


class GradientBoostedDecisionTreeEstimator(Estimator):
    __doc__ = f"""Boosted trees of a head's problem.
{_DESCRIPTION}
    `head`: a head of `tf.contrib.learn`, or one of `tf.contrib.estimator`.
    """

    def __init__(
        self, learner_config: Any, examples_per_layer: Any, head: Any, num_trees: int | None = None,
        feature_columns: Sequence[Any] | None = None, weight_column_name: str | None = None,
        model_dir: Any = None, config: Any = None, feature_engineering_fn: Any = None,
        logits_modifier_function: Any = None, center_bias: bool = True, use_core_libs: bool = False,
        output_leaf_index: bool = False, override_global_step_value: int | None = None,
        num_quantiles: int = 100,
    ) -> None:  # fmt: skip
        params = _params(
            head, learner_config, examples_per_layer, num_trees, feature_columns, weight_column_name,
            logits_modifier_function, center_bias, use_core_libs=use_core_libs,
            output_leaf_index=output_leaf_index, override_global_step_value=override_global_step_value,
            num_quantiles=num_quantiles,
        )  # fmt: skip
        super().__init__(
            model_fn=_model_fn,
            params=params,
            model_dir=model_dir,
            config=config,
            feature_engineering_fn=feature_engineering_fn,
        )


class GradientBoostedDecisionTreeClassifier(GradientBoostedDecisionTreeEstimator):
    __doc__ = f"""Boosted trees of classes.
{_DESCRIPTION}
    `n_classes`: how many classes; `label_keys`: their names, if labels are strings.
    """

    def __init__(
        self, learner_config: Any, examples_per_layer: Any, n_classes: int = 2, num_trees: int | None = None,
        feature_columns: Sequence[Any] | None = None, weight_column_name: str | None = None,
        model_dir: Any = None, config: Any = None, label_keys: Any = None, feature_engineering_fn: Any = None,
        logits_modifier_function: Any = None, center_bias: bool = True, use_core_libs: bool = False,
        output_leaf_index: bool = False, override_global_step_value: int | None = None,
        num_quantiles: int = 100,
    ) -> None:  # fmt: skip
        head = head_lib.multi_class_head(
            n_classes=n_classes,
            weight_column_name=weight_column_name,
            enable_centered_bias=False,
            loss_fn=_maxent_loss(n_classes) if n_classes > 2 else None,
            label_keys=label_keys,
        )
        if learner_config.num_classes == 0:
            learner_config.num_classes = n_classes
        elif learner_config.num_classes != n_classes:
            raise ValueError(f"n_classes ({n_classes}) doesn't match learner_config.")
        super().__init__(
            learner_config, examples_per_layer, head, num_trees, feature_columns, weight_column_name,
            model_dir, config, feature_engineering_fn, logits_modifier_function, center_bias, use_core_libs,
            output_leaf_index, override_global_step_value, num_quantiles,
        )  # fmt: skip


class GradientBoostedDecisionTreeRegressor(GradientBoostedDecisionTreeEstimator):
    __doc__ = f"""Boosted trees of numbers.
{_DESCRIPTION}
    `label_dimension`: how many numbers an example has; `label_name`: their name among the labels.
    """

    def __init__(
        self, learner_config: Any, examples_per_layer: Any, label_dimension: int = 1,
        num_trees: int | None = None, feature_columns: Sequence[Any] | None = None,
        label_name: str | None = None, weight_column_name: str | None = None, model_dir: Any = None,
        config: Any = None, feature_engineering_fn: Any = None, logits_modifier_function: Any = None,
        center_bias: bool = True, use_core_libs: bool = False, output_leaf_index: bool = False,
        override_global_step_value: int | None = None, num_quantiles: int = 100,
    ) -> None:  # fmt: skip
        head = head_lib.regression_head(
            label_name=label_name,
            label_dimension=label_dimension,
            weight_column_name=weight_column_name,
            enable_centered_bias=False,
        )
        learner_config.num_classes = 2 if label_dimension == 1 else label_dimension
        super().__init__(
            learner_config, examples_per_layer, head, num_trees, feature_columns, weight_column_name,
            model_dir, config, feature_engineering_fn, logits_modifier_function, center_bias, use_core_libs,
            output_leaf_index, override_global_step_value, num_quantiles,
        )  # fmt: skip


def _core_model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
    return model_builder(features, labels, mode, params, config, ModelBuilderOutputType.ESTIMATOR_SPEC)


class CoreGradientBoostedDecisionTreeEstimator(core_estimator.Estimator):
    __doc__ = f"""Boosted trees as an Estimator of `tf.estimator`.
{_DESCRIPTION}
    `head`: a head of `tf.contrib.estimator`.
    """

    def __init__(
        self, learner_config: Any, examples_per_layer: Any, head: Any, num_trees: int | None = None,
        feature_columns: Sequence[Any] | None = None, weight_column_name: str | None = None,
        model_dir: Any = None, config: Any = None, label_keys: Any = None, feature_engineering_fn: Any = None,
        logits_modifier_function: Any = None, center_bias: bool = True, output_leaf_index: bool = False,
        num_quantiles: int = 100,
    ) -> None:  # fmt: skip
        def model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
            if feature_engineering_fn is not None:
                features, labels = feature_engineering_fn(features, labels)
            return _core_model_fn(features, labels, mode, params, config)

        params = _params(
            head, learner_config, examples_per_layer, num_trees, feature_columns, weight_column_name,
            logits_modifier_function, center_bias, use_core_libs=True, output_leaf_index=output_leaf_index,
            override_global_step_value=None, num_quantiles=num_quantiles,
        )  # fmt: skip
        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config, params=params)
