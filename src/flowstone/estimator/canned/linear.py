"""Linear models over feature columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.estimators.sdca_hook import SdcaUpdateHook
from flowstone.estimator.canned.head import classification_head
from flowstone.estimator.canned.linear_sdca import LinearSDCA
from flowstone.estimator.canned.optimizers import get_optimizer_instance
from flowstone.estimator.estimator import Estimator
from flowstone.estimator.head.base_head import Head
from flowstone.estimator.head.binary_class_head import BinaryClassHead
from flowstone.estimator.head.regression_head import RegressionHead
from flowstone.estimator.mode_keys import ModeKeys
from flowstone.layers.feature_columns.feature_layers import LinearModel
from flowstone.layers.feature_columns.linear_models import model_sums

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
        collections = [tf.GraphKeys.GLOBAL_VARIABLES]
        logits = model_sums(
            features, feature_columns, units, sparse_combiner, collections, cols_to_vars=variables
        )
        bias = variables.pop("bias")
        parts = [part for each in variables.values() for part in (each if isinstance(each, list) else [each])]
        _summarize(units, bias, parts)
        return logits

    return linear_logit_fn


def _summarize(units: int, bias: Any, weights: Iterable[Any]) -> None:
    if units > 1:
        tf.summary.histogram("bias", bias)
    else:
        tf.summary.scalar("bias", tf.reshape(bias[0], []))
    parts = [tf.reshape(part, [-1]) for part in weights]
    tf.summary.scalar("fraction_of_zero_weights", tf.nn.zero_fraction(tf.concat(parts, 0)))


_linear_logit_fn_builder = linear_logit_fn_builder


def default_learning_rate(columns: Any, most: float = _LEARNING_RATE) -> float:
    """The smaller of a rate and one over the square root of the number of columns."""
    return min(most, 1.0 / math.sqrt(len(columns)))


def _sdca_spec(
    features: Any, labels: Any, mode: str, head: Head, columns: Iterable[Any], optimizer: LinearSDCA
) -> Any:
    """The EstimatorSpec of a model that `optimizer` trains."""
    is_regression = isinstance(head, RegressionHead)
    if not (is_regression and head.logits_dimension == 1) and not isinstance(head, BinaryClassHead):
        raise ValueError(f"Unsupported head type: {head}")
    layer = LinearModel(columns, name="linear_model")
    logits, bias = layer(features), layer.bias
    parts = [bias] if isinstance(bias, tf.Variable) else list(bias)
    _summarize(1, parts[0], [each for each in layer.variables if all(each is not part for part in parts)])
    if mode != ModeKeys.TRAIN:
        return head.create_estimator_spec(features=features, mode=mode, logits=logits, labels=labels)
    weight = head._weight_column
    model, train_op = optimizer.get_train_step(
        layer._state_manager,
        weight if weight is None or isinstance(weight, str) else weight.key,
        "squared_loss" if is_regression else "logistic_loss",
        columns,
        features,
        labels,
        bias,
        tf.train.get_global_step(),
    )
    hook = SdcaUpdateHook()
    hook.set_parameters(model, train_op)
    spec = head.create_estimator_spec(
        features=features, mode=mode, logits=logits, labels=labels, train_op_fn=lambda loss: train_op
    )
    return spec._replace(training_chief_hooks=(*spec.training_chief_hooks, hook))


def _check_sdca(optimizer: Any, sparse_combiner: str, is_suitable: bool, refusal: str) -> None:
    """Raises ValueError for a LinearSDCA that cannot train the model."""
    if isinstance(optimizer, LinearSDCA):
        if sparse_combiner != "sum":
            raise ValueError('sparse_combiner must be "sum" when optimizer is a LinearSDCA object.')
        if not is_suitable:
            raise ValueError(refusal)


class LinearEstimator(Estimator):
    """A linear model under any head.

    Args:
        head: the Head; `feature_columns`: the columns.
        model_dir: the folder of checkpoints and logs.
        optimizer: a name, an Optimizer, a function that makes one, or a LinearSDCA.
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
                if isinstance(optimizer, LinearSDCA):
                    assert sparse_combiner == "sum"
                    return _sdca_spec(features, labels, mode, head, columns, optimizer)
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
        refusal = "LinearSDCA cannot be used in a multi-class setting."
        _check_sdca(optimizer, sparse_combiner, n_classes == 2, refusal)
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
        refusal = "LinearSDCA can only be used with one-dimensional label."
        _check_sdca(optimizer, sparse_combiner, label_dimension == 1, refusal)
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(
            head, feature_columns, model_dir, optimizer, config, partitioner, sparse_combiner, warm_start_from
        )
