"""`LinearSDCA`: linear Estimators are trained by stochastic dual coordinate ascent, without a learning rate.

    optimizer = tf.estimator.experimental.LinearSDCA("example_id", symmetric_l2_regularization=2.0)
    tf.estimator.LinearClassifier(columns, optimizer=optimizer)

A step improves the dual variable of each example of the batch, which is known by its identifier, a feature of
strings; what is kept of examples and of weights before they are shrunk is that of `SdcaModel`. Source:
Shalev-Shwartz and Zhang, "Stochastic dual coordinate ascent methods for regularized loss minimization", 2013.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.linear_optimizer.sdca_ops import SdcaModel
from flowstone.contrib.linear_optimizer.sparse_feature_column import SparseFeatureColumn
from flowstone.layers.feature_columns.columns import CategoricalColumn, DenseColumn
from flowstone.layers.feature_columns.transformation import FeatureTransformationCache

__all__ = ["LinearSDCA"]


class _Model(SdcaModel):
    """The model as `tf.estimator` has it: its regularization is what was asked for."""

    _slot_suffix = "_unshrunk"
    _least_l2 = 0.0

    def __init__(self, examples: Any, variables: Any, options: Mapping[str, Any]) -> None:
        l2 = options["symmetric_l2_regularization"]
        if l2 <= 0.0:
            raise ValueError("symmetric_l2_regularization should be positive.")
        if l2 <= 1.0:
            tf.logging.warn(
                "symmetric_l2_regularization for SDCA should typically be larger than for online "
                "optimization methods. Recommended value is of the order of the average L2 norm of the "
                "training examples."
            )
        super().__init__(examples, variables, options)
        tf.summary.scalar("approximate_duality_gap", self.approximate_duality_gap())
        tf.summary.scalar("examples_seen", self.examples_seen())


class LinearSDCA:
    """The `optimizer` of a LinearClassifier of two classes or a LinearRegressor of one number.

    Args:
        example_id_column: the feature with the identifiers of examples, strings [batch].
        num_loss_partitions: how many training steps, on whatever machines, change the weights at once.
        num_table_shards: how many tables keep the state of examples; None: one.
        symmetric_l1_regularization, symmetric_l2_regularization: the strengths of regularization; the second
            one is to be positive.
        adaptive: whether examples far from their optimum are more likely to be taken.
    """

    def __init__(
        self,
        example_id_column: str,
        num_loss_partitions: int = 1,
        num_table_shards: int | None = None,
        symmetric_l1_regularization: float = 0.0,
        symmetric_l2_regularization: float = 1.0,
        adaptive: bool = False,
    ) -> None:
        self._example_id_column = example_id_column
        self._options = {
            "num_loss_partitions": num_loss_partitions,
            "num_table_shards": num_table_shards,
            "symmetric_l1_regularization": symmetric_l1_regularization,
            "symmetric_l2_regularization": symmetric_l2_regularization,
            "adaptive": adaptive,
        }

    def get_train_step(
        self,
        state_manager: Any,
        weight_column_name: str | None,
        loss_type: str,
        feature_columns: Iterable[Any],
        features: Mapping[str, Any],
        targets: Any,
        bias_var: Any,
        global_step: Any,
    ) -> tuple[SdcaModel, Any]:
        """The model and the operation of a step; `SdcaModel.update_weights` is to follow it.

        Args:
            state_manager: has the columns' variables "weights".
            weight_column_name: the feature with the weights of examples, or None.
            loss_type: "logistic_loss" or "squared_loss".
            feature_columns: dense columns of one axis, and categorical ones.
            features: the features by name; `targets`: the labels [batch] or [batch, 1].
            bias_var: the bias [1]; `global_step`: what counts steps.

        Raises ValueError for other columns, KeyError for missing features.
        """
        cache = FeatureTransformationCache(features)
        dense: list[tuple[Any, Any]] = []  # values and weights
        sparse: list[tuple[Any, Any]] = []
        for column in sorted(feature_columns, key=lambda each: each.name):
            values = _values(column, cache, state_manager)
            group = sparse if isinstance(values, SparseFeatureColumn) else dense
            group.append((values, state_manager.get_variable(column, "weights")))
        count = tf.shape(targets)[0]
        dense.append((tf.ones([count, 1]), bias_var))
        weights = tf.ones([count]) if weight_column_name is None else features[weight_column_name]
        model = _Model(
            {
                "sparse_features": [values for values, _ in sparse],
                "dense_features": [values for values, _ in dense],
                "example_labels": tf.reshape(tf.to_float(targets), [-1]),
                "example_weights": tf.reshape(weights, [-1]),
                "example_ids": features[self._example_id_column],
            },
            {
                "sparse_features_weights": [weights for _, weights in sparse],
                "dense_features_weights": [weights for _, weights in dense],
            },
            {**self._options, "loss_type": loss_type},
        )
        return model, model.minimize(global_step=global_step)


def _values(column: Any, cache: FeatureTransformationCache, state_manager: Any) -> Any:
    """What SdcaModel takes of a column: a matrix, or entries."""
    if isinstance(column, CategoricalColumn):
        return _entries(column.get_sparse_tensors(cache, state_manager))
    if not isinstance(column, DenseColumn):
        raise ValueError(f"LinearSDCA does not support column type {type(column).__name__}.")
    rank = column.variable_shape.ndims
    if rank != 1:
        raise ValueError(f"Column {type(column).__name__} has rank {rank}, larger than 1.")
    return column.get_dense_tensor(cache, state_manager)


def _entries(pair: Any) -> SparseFeatureColumn:
    """The entries of a categorical column: each id of an example once, with the sum of its weights."""
    ids, numbers = pair.id_tensor, pair.weight_tensor
    features = tf.to_int64(tf.reshape(ids.values, [-1]))
    values = tf.ones_like(features, tf.float32) if numbers is None else tf.to_float(numbers.values)
    is_known = features >= 0  # a vocabulary gives -1 for what it does not have
    examples, features, values = (
        tf.boolean_mask(each, is_known) for each in (ids.indices[:, 0], features, values)
    )
    span = tf.reduce_max(features) + 1
    entries, places = tf.unique(examples * span + features)
    sums = tf.unsorted_segment_sum(values, places, tf.size(entries))
    return SparseFeatureColumn(tf.floordiv(entries, span), tf.floormod(entries, span), sums)
