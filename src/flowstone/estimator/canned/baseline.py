"""Baselines: models that know no features, and predict what is most frequent."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.estimator.canned.head import classification_head
from flowstone.estimator.canned.optimizers import get_optimizer_instance
from flowstone.estimator.estimator import Estimator
from flowstone.estimator.head.base_head import Head
from flowstone.estimator.head.regression_head import RegressionHead

__all__ = ["BaselineClassifier", "BaselineEstimator", "BaselineRegressor"]

_LEARNING_RATE = 0.3


def _logits(features: dict[str, Any], size: int) -> Any:
    """A variable [size], repeated for each example."""
    if not isinstance(features, dict):
        raise ValueError(f"features should be a dictionary of `Tensor`s. Given type: {type(features)}")
    any_feature = next(iter(features.values()))
    any_feature = (
        any_feature.dense_shape if isinstance(any_feature, tf.SparseTensor) else tf.shape(any_feature)
    )
    with tf.variable_scope("baseline"):
        bias = tf.get_variable("bias", [size], initializer=tf.zeros_initializer())
        return tf.multiply(tf.ones([any_feature[0], 1]), bias)


class BaselineEstimator(Estimator):
    """A model without features, under any head.

    Args:
        head: the Head.
        model_dir: the folder of checkpoints and logs.
        optimizer: a name, an Optimizer, or a function that makes one.
        config: a RunConfig.
    """

    def __init__(
        self, head: Head, model_dir: Any = None, optimizer: Any = "Ftrl", config: Any = None
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            logits = _logits(features, head.logits_dimension)

            def train_op_fn(loss: Any) -> Any:
                trainer = get_optimizer_instance(optimizer, _LEARNING_RATE)
                return trainer.minimize(loss, global_step=tf.train.get_global_step())

            return head.create_estimator_spec(
                features=features,
                mode=mode,
                logits=logits,
                labels=labels,
                train_op_fn=train_op_fn,
            )

        super().__init__(model_fn, model_dir, config)


class BaselineClassifier(BaselineEstimator):
    """Predicts the frequencies of classes.

    Args:
        n_classes: how many classes; `label_vocabulary`: the labels' texts.
        weight_column: the feature with examples' weights.
        loss_reduction: a `tf.losses.Reduction`.

    Other arguments: of `BaselineEstimator`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = "weighted_sum",
    ) -> None:
        head = classification_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(head, model_dir, optimizer, config)


class BaselineRegressor(BaselineEstimator):
    """Predicts the mean of labels.

    Args:
        label_dimension: the size of the labels' last axis.
        weight_column: the feature with examples' weights.
        loss_reduction: a `tf.losses.Reduction`.

    Other arguments: of `BaselineEstimator`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = "weighted_sum",
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(head, model_dir, optimizer, config)
