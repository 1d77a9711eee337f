"""`EqualitySplitHandler`: nodes are split by whether examples have one id of a sparse column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.boosted_trees.base_split_handler import (
    BIAS_FEATURE_ID,
    BaseSplitHandler,
    no_rows,
    with_totals,
)
from flowstone.contrib.boosted_trees.split_handler_ops import build_categorical_equality_splits

__all__ = ["EqualitySplitHandler"]


class EqualitySplitHandler(BaseSplitHandler):
    """The handler of a SparseTensor [examples, …] of int64.

    Args:
        sparse_int_column: the column.
        init_stamp_token: the stamp that resources have at first.
        weak_learner_type: a number of the enumeration of LearnerConfig.

    The rest is that of `BaseSplitHandler`.
    """

    def __init__(
        self,
        sparse_int_column: Any,
        l1_regularization: float,
        l2_regularization: float,
        tree_complexity_regularization: float,
        min_node_weight: float,
        feature_column_group_id: int,
        gradient_shape: Any,
        hessian_shape: Any,
        multiclass_strategy: int,
        init_stamp_token: Any = 0,
        loss_uses_sum_reduction: bool = False,
        weak_learner_type: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(
            l1_regularization, l2_regularization, tree_complexity_regularization, min_node_weight,
            feature_column_group_id, gradient_shape, hessian_shape, multiclass_strategy,
            loss_uses_sum_reduction, name,
        )  # fmt: skip
        self._stats_accumulator = self._accumulator(init_stamp_token)
        self._sparse_int_column, self._weak_learner_type = sparse_int_column, weak_learner_type

    def update_stats(
        self, stamp_token: Any, example_partition_ids: Any, gradients: Any, hessians: Any,
        empty_gradients: Any, empty_hessians: Any, weights: Any, is_active: Any,
        scheduled_reads: Sequence[Any],
    ) -> tuple[Any, list[Any]]:  # fmt: skip
        """See `BaseSplitHandler.update_stats`."""
        column = self._sparse_int_column

        def sums() -> tuple[Any, Any, Any, Any]:
            ids = tf.stack([column.values, tf.zeros_like(column.values)], axis=1)
            return with_totals(example_partition_ids, gradients, hessians, ids, column.indices[:, 0])

        def nothing() -> tuple[Any, Any, Any, Any]:
            return no_rows(empty_gradients, empty_hessians)

        rows = sums() if is_active is None else tf.cond(is_active[0], sums, nothing)
        return tf.no_op(), [self._stats_accumulator.schedule_add(*rows)]

    def make_splits(
        self, stamp_token: Any, next_stamp_token: Any, class_id: Any
    ) -> tuple[Any, Any, Any, Any]:
        """See `BaseSplitHandler.make_splits`."""
        updates, *rows = self._stats_accumulator.flush(stamp_token, next_stamp_token)
        nodes, features, gradients, hessians = rows
        splits = build_categorical_equality_splits(
            num_minibatches=self._batches(updates),
            partition_ids=nodes,
            feature_ids=features,
            gradients=gradients,
            hessians=hessians,
            class_id=class_id,
            feature_column_group_id=self._feature_column_group_id,
            bias_feature_id=BIAS_FEATURE_ID,
            weak_learner_type=self._weak_learner_type,
            **self._penalties,
        )
        with tf.control_dependencies([updates]):
            ready = tf.constant(True)
        return ready, *splits
