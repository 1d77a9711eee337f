"""`DenseSplitHandler` and `SparseSplitHandler`: nodes are split by whether a number is at most a threshold.

The thresholds of a layer are the bounds of buckets, which were found while the layer before was grown.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.boosted_trees.base_split_handler import (
    BIAS_FEATURE_ID,
    BaseSplitHandler,
    no_rows,
    with_totals,
)
from flowstone.contrib.boosted_trees.batch_ops_utils import ScheduledOp
from flowstone.contrib.boosted_trees.quantile_ops import QuantileAccumulator, quantiles
from flowstone.contrib.boosted_trees.split_handler_ops import (
    build_dense_inequality_splits,
    build_sparse_inequality_splits,
)
from flowstone.contrib.boosted_trees.stats_accumulator_ops import StatsAccumulator

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

    @abc.abstractmethod
    def _schedule_rows(
        self, ready: Any, buckets: Any, partition_ids: Any, sums: Sequence[Any], empty: Sequence[Any]
    ) -> ScheduledOp:
        """The operation that adds a batch's rows if the buckets are ready."""

    @abc.abstractmethod
    def _build(self, **inputs: Any) -> Any:
        """(nodes, gains, splits) of the sums."""

    @abc.abstractmethod
    def _column(self) -> Any:
        """The numbers."""

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
        if is_active is not None:
            ready = tf.logical_and(ready, is_active[0])
            weights = tf.cond(is_active[1], lambda: weights, lambda: tf.zeros_like(weights))
        sums, empty = (gradients, hessians), (empty_gradients, empty_hessians)
        rows = self._schedule_rows(ready, buckets, example_partition_ids, sums, empty)
        values = self._quantile_accumulator.schedule_add_summary(stamp_token, self._column(), weights)
        return tf.no_op(), [values, rows]

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


class _ScheduledRows(ScheduledOp):
    """The rows of a dense column: those of all such columns of the same examples are made together.

    Args:
        accumulator: takes the rows.
        column: a tensor [examples, 1].
        ready: whether the column has buckets to count by: bool, []; without there are no rows.
        buckets: their bounds.
        of_examples: nodes, gradients and Hessians of the examples.
    """

    def __init__(
        self, accumulator: StatsAccumulator, column: Any, ready: Any, buckets: Any, of_examples: Any
    ) -> None:
        self.accumulator, self.column, self.ready, self.buckets = accumulator, column, ready, buckets
        self.of_examples = of_examples

    def batching_key(self) -> Any:
        """Which examples, and the kind of accumulator."""
        return _ScheduledRows, self.accumulator.kind, tuple(map(id, self.of_examples))

    def batch_runner_fn(self) -> Callable[[Sequence[Any], Any], Sequence[Any]]:
        """What makes the operation for all the columns."""
        return _add_rows


def _add_rows(batch: Sequence[_ScheduledRows], stamp: Any) -> Sequence[Any]:
    """Rows are cut to none where there are no buckets: a node a part, where a conditional would have many."""
    columns, buckets = [each.column for each in batch], [each.buckets for each in batch]
    places = tf.to_int64(tf.stack(quantiles(columns, [], buckets, [], []).dense_quantiles))
    ready = tf.to_int32(tf.stack([each.ready for each in batch]))
    counts = ready * tf.shape(batch[0].of_examples[0])[0]
    begin, stride = tf.constant([0]), tf.constant([1])
    added = []
    for each, own_places, count in zip(
        batch, tf.unstack(places, len(batch)), tf.split(counts, len(batch)), strict=True
    ):
        nodes, gradients, hessians = each.of_examples
        rows = [
            tf.strided_slice(part, begin, count, stride) for part in (nodes, own_places, gradients, hessians)
        ]
        added.append(each.accumulator.schedule_add(*rows))
    return added[0].batch_runner_fn()(added, stamp)


class DenseSplitHandler(InequalitySplitHandler):
    """The handler of a tensor [examples, 1] of float32, `dense_float_column`."""

    def __init__(self, dense_float_column: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._dense_float_column = dense_float_column

    def _column(self) -> Any:
        return self._dense_float_column

    def _schedule_rows(
        self, ready: Any, buckets: Any, partition_ids: Any, sums: Sequence[Any], empty: Sequence[Any]
    ) -> ScheduledOp:
        return _ScheduledRows(
            self._stats_accumulator, self._dense_float_column, ready, buckets, (partition_ids, *sums)
        )

    def _build(self, **inputs: Any) -> Any:
        return build_dense_inequality_splits(weak_learner_type=self._weak_learner_type, **inputs)


class SparseSplitHandler(InequalitySplitHandler):
    """The handler of a SparseTensor [examples, dimensions] of float32, `sparse_float_column`."""

    def __init__(self, sparse_float_column: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sparse_float_column = sparse_float_column

    def _column(self) -> Any:
        return self._sparse_float_column

    def _schedule_rows(
        self, ready: Any, buckets: Any, partition_ids: Any, sums: Sequence[Any], empty: Sequence[Any]
    ) -> ScheduledOp:
        column = self._sparse_float_column

        def rows() -> tuple[Any, Any, Any, Any]:
            found = quantiles([], [column.values], [], [buckets], [column.indices]).sparse_quantiles[0]
            return with_totals(partition_ids, sums[0], sums[1], tf.to_int64(found), column.indices[:, 0])

        return self._stats_accumulator.schedule_add(*tf.cond(ready, rows, lambda: no_rows(*empty)))

    def _build(self, **inputs: Any) -> Any:
        return build_sparse_inequality_splits(bias_feature_id=BIAS_FEATURE_ID, **inputs)
