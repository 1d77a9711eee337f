"""Linear models over feature columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import flowstone as tf
from flowstone.estimator.canned.head import classification_head
from flowstone.estimator.canned.optimizers import get_optimizer_instance
from flowstone.estimator.estimator import Estimator
from flowstone.estimator.head.base_head import Head
from flowstone.estimator.head.regression_head import RegressionHead

__all__ = ["LinearClassifier", "LinearEstimator", "LinearRegressor", "linear_logit_fn_builder"]

_LEARNING_RATE = 0.2
_SLICE_BYTES = 64 << 20


def linear_logit_fn_builder(
    units: int, feature_columns: Iterable[Any], sparse_combiner: str = "sum"
) -> Callable[..., Any]:
    """A function of features that gives the logits [batch, units] of a linear model, with its summaries.

    Args:
        units: how many logits; `feature_columns`: the columns.
        sparse_combiner: how several values of a categorical column are joined.
    """

    def linear_logit_fn(features: Any) -> Any:
        variables: dict[Any, Any] = {}
        logits = tf.feature_column.linear_model(
            features=features, feature_columns=feature_columns, units=units, sparse_combiner=sparse_combiner,
            cols_to_vars=variables,
        )  # fmt: skip
        bias = variables.pop("bias")
        if units > 1:
            tf.summary.histogram("bias", bias)
        else:
            tf.summary.scalar("bias", tf.reshape(bias[0], []))
        tf.summary.scalar("fraction_of_zero_weights", _fraction_of_zero(variables))
        return logits

    return linear_logit_fn


def _fraction_of_zero(variables: dict[Any, Any]) -> Any:
    parts = []
    for each in variables.values():
        parts += [tf.reshape(part, [-1]) for part in (each if isinstance(each, list) else [each])]
    return tf.nn.zero_fraction(tf.concat(parts, 0))


_linear_logit_fn_builder = linear_logit_fn_builder


def default_learning_rate(columns: Any, most: float = _LEARNING_RATE) -> float:
    """The smaller of a rate and one over the square root of the number of columns."""
    return min(most, 1.0 / math.sqrt(len(columns)))


class LinearEstimator(Estimator):
    """A linear model under any head.

    Args:
        head: the Head; `feature_columns`: the columns.
        model_dir: the folder of checkpoints and logs.
        optimizer: a name, an Optimizer, or a function that makes one.
        config: a RunConfig.
        partitioner: how variables are cut.
        sparse_combiner: how several values of a categorical column are joined.
        warm_start_from: a checkpoint or WarmStartSettings.
    """

    def __init__(
        self,
        head: Head,
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ) -> None:
        columns = tuple(feature_columns or ())

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            if not isinstance(features, dict):
                raise ValueError(
                    f"features should be a dictionary of `Tensor`s. Given type: {type(features)}"
                )
            cut = partitioner or tf.min_max_variable_partitioner(
                max_partitions=max(1, config.num_ps_replicas), min_slice_size=_SLICE_BYTES
            )
            with tf.variable_scope("linear", values=tuple(features.values()), partitioner=cut):
                logits = linear_logit_fn_builder(head.logits_dimension, columns, sparse_combiner)(features)
                return head.create_estimator_spec(
                    features=features,
                    mode=mode,
                    logits=logits,
                    labels=labels,
                    optimizer=get_optimizer_instance(optimizer, default_learning_rate(columns)),
                )

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearClassifier(LinearEstimator):
    """A linear classifier: logistic regression, or softmax of several classes.

    Args:
        n_classes: how many classes; `label_vocabulary`: the labels' texts.
        weight_column: the feature with examples' weights.
        loss_reduction: a `tf.losses.Reduction`.

    Other arguments: of `LinearEstimator`.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = "weighted_sum",
        sparse_combiner: str = "sum",
    ) -> None:
        head = classification_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(
            head, feature_columns, model_dir, optimizer, config, partitioner, sparse_combiner, warm_start_from
        )


class LinearRegressor(LinearEstimator):
    """Linear regression.

    Args:
        label_dimension: the size of the labels' last axis.
        weight_column: the feature with examples' weights.
        loss_reduction: a `tf.losses.Reduction`.

    Other arguments: of `LinearEstimator`.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = "weighted_sum",
        sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(
            head, feature_columns, model_dir, optimizer, config, partitioner, sparse_combiner, warm_start_from
        )
