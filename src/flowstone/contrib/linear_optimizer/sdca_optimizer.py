"""`SDCAOptimizer`: stochastic dual coordinate ascent for the linear Estimators of `tf.contrib.learn`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.layers.real_valued_columns import (
    _BucketizedColumn,
    _CrossedColumn,
    _RealValuedColumn,
)
from flowstone.contrib.layers.sparse_columns import _SparseColumn, _WeightedSparseColumn
from flowstone.contrib.linear_optimizer.sdca_ops import SdcaModel
from flowstone.contrib.linear_optimizer.sparse_feature_column import SparseFeatureColumn

__all__ = ["SDCAOptimizer"]


class SDCAOptimizer:
    """How a linear Estimator is trained by dual coordinate ascent; there is no learning rate.

    Args:
        example_id_column: the feature with the identifiers of examples, strings [n].
        num_loss_partitions: how many passes over other examples change the weights at once.
        num_table_shards: how many tables keep the state of examples; None: one.
        symmetric_l1_regularization, symmetric_l2_regularization: the strengths of regularization.
        adaptive: whether examples far from their optimum are more likely to be taken.
        partitioner: kept for the program; variables are parted as the model makes them.
    """

    def __init__(
        self,
        example_id_column: str,
        num_loss_partitions: int = 1,
        num_table_shards: int | None = None,
        symmetric_l1_regularization: float = 0.0,
        symmetric_l2_regularization: float = 1.0,
        adaptive: bool = True,
        partitioner: Any = None,
    ) -> None:
        self._example_id_column, self._num_loss_partitions = example_id_column, num_loss_partitions
        self._num_table_shards, self._adaptive = num_table_shards, adaptive
        self._l1, self._l2 = symmetric_l1_regularization, symmetric_l2_regularization
        self._partitioner = partitioner

    def get_name(self) -> str:
        """``SDCAOptimizer``."""
        return "SDCAOptimizer"

    @property
    def example_id_column(self) -> str:
        """The feature with the identifiers."""
        return self._example_id_column

    @property
    def num_loss_partitions(self) -> int:
        """How many passes change the weights at once."""
        return self._num_loss_partitions

    @property
    def num_table_shards(self) -> int | None:
        """How many tables keep the state of examples."""
        return self._num_table_shards

    @property
    def symmetric_l1_regularization(self) -> float:
        """The strength of the regularization that makes weights zero."""
        return self._l1

    @property
    def symmetric_l2_regularization(self) -> float:
        """The strength of the other one."""
        return self._l2

    @property
    def adaptive(self) -> bool:
        """Whether examples far from their optimum are more likely to be taken."""
        return self._adaptive

    @property
    def partitioner(self) -> Any:
        """The partitioner, or None."""
        return self._partitioner

    def get_train_step(
        self,
        columns_to_variables: Mapping[Any, Any],
        weight_column_name: str | None,
        loss_type: str,
        features: Mapping[Any, Any],
        targets: Any,
        global_step: Any,
    ) -> tuple[SdcaModel, Any]:
        """The model and the operation of a pass; `SdcaModel.update_weights` is to follow it.

        Args:
            columns_to_variables: the lists of variables of the columns; that of the bias is the column of the
                real-valued feature "".
            weight_column_name: the feature with the weights of examples, or None.
            loss_type: see `SdcaModel`.
            features: the features by name, with those that columns have made under the columns.
            targets: the labels [n] or [n, 1]; global_step: what counts passes.

        Raises ValueError for columns that are neither numbers nor sparse, KeyError for missing features.
        """
        dense, dense_weights, sparse, sparse_weights = [], [], [], []
        for column in sorted(set(columns_to_variables), key=lambda each: each.key):
            values = features.get(column)
            if isinstance(column, _RealValuedColumn):
                dense.append(tf.reshape(tf.to_float(values), [tf.shape(values)[0], -1]))
                dense_weights.append(columns_to_variables[column])
            else:
                sparse.append(_entries(column, values))
                sparse_weights.append(columns_to_variables[column])
        count = tf.shape(targets)[0]
        weights = (
            tf.reshape(tf.to_float(features[weight_column_name]), [-1])
            if weight_column_name
            else tf.ones([count])
        )
        if any(column.feature_values is not None for column in sparse):
            sparse = [_with_values(column) for column in sparse]
        model = SdcaModel(
            {
                "sparse_features": sparse,
                "dense_features": dense,
                "example_labels": tf.reshape(tf.to_float(targets), [-1]),
                "example_weights": weights,
                "example_ids": tf.reshape(features[self._example_id_column], [-1]),
            },
            {"sparse_features_weights": sparse_weights, "dense_features_weights": dense_weights},
            {
                "symmetric_l1_regularization": self._l1,
                "symmetric_l2_regularization": self._l2,
                "adaptive": self._adaptive,
                "num_loss_partitions": self._num_loss_partitions,
                "num_table_shards": self._num_table_shards,
                "loss_type": loss_type,
            },
        )
        return model, model.minimize(global_step=global_step)


def _entries(column: Any, values: Any) -> SparseFeatureColumn:
    """The entries of a sparse column, in the order of examples."""
    if not isinstance(column, (_SparseColumn, _WeightedSparseColumn, _CrossedColumn, _BucketizedColumn)):
        raise ValueError(f"SDCAOptimizer does not support column type {type(column).__name__}.")
    ids = column.id_tensor(values)
    weights = column.weight_tensor(values) if isinstance(column, _WeightedSparseColumn) else None
    numbers = None if weights is None else tf.reshape(weights.values, [-1])
    return SparseFeatureColumn(ids.indices[:, 0], tf.reshape(tf.to_int64(ids.values), [-1]), numbers)


def _with_values(column: SparseFeatureColumn) -> SparseFeatureColumn:
    """The column with values: ones, if it has none."""
    if column.feature_values is not None:
        return column
    ones = tf.ones_like(column.feature_indices, tf.float32)
    return SparseFeatureColumn(column.example_indices, column.feature_indices, ones)
