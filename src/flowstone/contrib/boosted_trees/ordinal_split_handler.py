"""`DenseSplitHandler` and `SparseSplitHandler`: nodes are split by whether a number is at most a threshold.

The thresholds of a layer are the bounds of buckets, which were found while the layer before was grown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.boosted_trees.base_split_handler import BIAS_FEATURE_ID, BaseSplitHandler, with_totals
from flowstone.contrib.boosted_trees.quantile_ops import QuantileAccumulator, quantiles
from flowstone.contrib.boosted_trees.split_handler_ops import (
    build_dense_inequality_splits,
    build_sparse_inequality_splits,
)

__all__ = ["DenseSplitHandler", "InequalitySplitHandler", "SparseSplitHandler"]


class InequalitySplitHandler(BaseSplitHandler):
    """The handler of a column of numbers.

    Args:
        epsilon: by which part of all weights the rank of a bucket's bound may be wrong.
        num_quantiles: how many buckets there are to be.
        init_stamp_token: the stamp that resources have at first.
        weak_learner_type: a number of the enumeration of LearnerConfig.

    The rest is that of `BaseSplitHandler`.
    """

    def __init__(
        self,
        l1_regularization: float,
        l2_regularization: float,
        tree_complexity_regularization: float,
        min_node_weight: float,
        feature_column_group_id: int,
        epsilon: float,
        num_quantiles: int,
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
        self._quantile_accumulator = QuantileAccumulator(
            init_stamp_token, epsilon, num_quantiles, name=f"QuantileAccumulator/{self._name}"
        )
        self._weak_learner_type = weak_learner_type

    def _of_column(self, *args: Any) -> tuple[Any, Any, Any, Any]:
        raise NotImplementedError

    def _build(self, **inputs: Any) -> Any:
        raise NotImplementedError

    def _column(self) -> Any:
        raise NotImplementedError

    def scheduled_reads(self) -> list[Any]:
        """The buckets."""
        return [self._quantile_accumulator.schedule_get_buckets()]

    def update_stats(
        self, stamp_token: Any, example_partition_ids: Any, gradients: Any, hessians: Any,
        empty_gradients: Any, empty_hessians: Any, weights: Any, is_active: Any,
        scheduled_reads: Sequence[Any],
    ) -> tuple[Any, list[Any]]:  # fmt: skip
        """See `BaseSplitHandler.update_stats`; values count for the next layer's buckets by weights."""
        ready, buckets = scheduled_reads[0]
        column = self._column()

        def sums() -> tuple[Any, Any, Any, Any]:
            return self._of_column(buckets, example_partition_ids, gradients, hessians)

        def nothing() -> tuple[Any, Any, Any, Any]:
            return (
                tf.constant([], tf.int32), tf.zeros([0, 2], tf.int64), empty_gradients, empty_hessians
            )  # fmt: skip

        if is_active is not None:
            ready = tf.logical_and(ready, is_active[0])
            weights = tf.cond(is_active[1], lambda: weights, lambda: tf.zeros_like(weights))
        rows = tf.cond(ready, sums, nothing)
        add_values = self._quantile_accumulator.schedule_add_summary(stamp_token, column, weights)
        return tf.no_op(), [add_values, self._stats_accumulator.schedule_add(*rows)]

    def make_splits(
        self, stamp_token: Any, next_stamp_token: Any, class_id: Any
    ) -> tuple[Any, Any, Any, Any]:
        """See `BaseSplitHandler.make_splits`; the values that came become the buckets of the next layer."""
        ready, buckets = self._quantile_accumulator.get_buckets(stamp_token)
        with tf.control_dependencies([buckets]):
            flush = self._quantile_accumulator.flush(stamp_token, next_stamp_token)
        updates, nodes, features, gradients, hessians = self._stats_accumulator.flush(
            stamp_token, next_stamp_token
        )
        with tf.control_dependencies([flush, updates]):
            ready = tf.identity(ready)
        splits = self._build(
            num_minibatches=self._batches(updates),
            partition_ids=nodes,
            bucket_ids=features,
            gradients=gradients,
            hessians=hessians,
            bucket_boundaries=buckets,
            class_id=class_id,
            feature_column_group_id=self._feature_column_group_id,
            **self._penalties,
        )
        return ready, *splits


class DenseSplitHandler(InequalitySplitHandler):
    """The handler of a tensor [examples, 1] of float32, `dense_float_column`."""

    def __init__(self, dense_float_column: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._dense_float_column = dense_float_column

    def _column(self) -> Any:
        return self._dense_float_column

    def _of_column(
        self, buckets: Any, partition_ids: Any, gradients: Any, hessians: Any
    ) -> tuple[Any, Any, Any, Any]:
        places = quantiles([self._dense_float_column], [], [buckets], [], []).dense_quantiles[0]
        return partition_ids, tf.to_int64(places), gradients, hessians

    def _build(self, **inputs: Any) -> Any:
        return build_dense_inequality_splits(weak_learner_type=self._weak_learner_type, **inputs)


class SparseSplitHandler(InequalitySplitHandler):
    """The handler of a SparseTensor [examples, dimensions] of float32, `sparse_float_column`."""

    def __init__(self, sparse_float_column: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sparse_float_column = sparse_float_column

    def _column(self) -> Any:
        return self._sparse_float_column

    def _of_column(
        self, buckets: Any, partition_ids: Any, gradients: Any, hessians: Any
    ) -> tuple[Any, Any, Any, Any]:
        column = self._sparse_float_column
        found = quantiles([], [column.values], [], [buckets], [column.indices]).sparse_quantiles[0]
        return with_totals(partition_ids, gradients, hessians, tf.to_int64(found), column.indices[:, 0])

    def _build(self, **inputs: Any) -> Any:
        return build_sparse_inequality_splits(bias_feature_id=BIAS_FEATURE_ID, **inputs)
