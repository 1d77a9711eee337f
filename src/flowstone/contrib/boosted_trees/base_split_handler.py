"""`BaseSplitHandler`: how the nodes of a tree are split by one feature column."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.boosted_trees import batch_ops_utils
from flowstone.contrib.boosted_trees.stats_accumulator_ops import StatsAccumulator

__all__ = ["BIAS_FEATURE_ID", "BaseSplitHandler", "no_rows", "with_totals"]

BIAS_FEATURE_ID = -1  # of the row that has the sums of all examples of a node


class BaseSplitHandler(metaclass=abc.ABCMeta):
    """Sums gradients and Hessians by the values of a column, and finds the best splits.

    Args:
        l1_regularization, l2_regularization, tree_complexity_regularization: what leaves and splits cost.
        min_node_weight: the sum of Hessians that a node needs.
        feature_column_group_id: the number of the column among those of its kind.
        gradient_shape, hessian_shape: of one example.
        multiclass_strategy: a number of the enumeration of LearnerConfig.
        loss_uses_sum_reduction: whether the loss is a sum, and not a mean, over a batch.
        name: of the handler.
    """

    def __init__(
        self,
        l1_regularization: float,
        l2_regularization: float,
        tree_complexity_regularization: float,
        min_node_weight: float,
        feature_column_group_id: int,
        gradient_shape: Any,
        hessian_shape: Any,
        multiclass_strategy: int,
        loss_uses_sum_reduction: bool = False,
        name: str | None = None,
    ) -> None:
        self._penalties = {
            "l1_regularization": l1_regularization,
            "l2_regularization": l2_regularization,
            "tree_complexity_regularization": tree_complexity_regularization,
            "min_node_weight": min_node_weight,
            "multiclass_strategy": multiclass_strategy,
        }
        self._feature_column_group_id = feature_column_group_id
        self._name = name or ""
        self._loss_uses_sum_reduction = loss_uses_sum_reduction
        self._shapes = [tf.TensorShape(shape).as_list() for shape in (gradient_shape, hessian_shape)]

    def _accumulator(self, stamp: Any) -> StatsAccumulator:
        gradients, hessians = self._shapes
        return StatsAccumulator(stamp, gradients, hessians, name=f"StatsAccumulator/{self._name}")

    def scheduled_reads(self) -> list[Any]:
        """What is read of the handler's resources before a step: operations to be made with others'."""
        return []

    @abc.abstractmethod
    def update_stats(
        self,
        stamp_token: Any,
        example_partition_ids: Any,
        gradients: Any,
        hessians: Any,
        empty_gradients: Any,
        empty_hessians: Any,
        weights: Any,
        is_active: Any,
        scheduled_reads: Sequence[Any],
    ) -> tuple[Any, list[Any]]:
        """(an operation, operations to be made with others') that take a batch in.

        Args:
            stamp_token: of the resources.
            example_partition_ids: the nodes of the examples, int32 [examples].
            gradients, hessians: float32 [examples, …].
            empty_gradients, empty_hessians: those of no examples.
            weights: of the examples' values, float32 [examples, 1].
            is_active: whether the column may split this layer, and the next: bool, [2].
            scheduled_reads: the results of `scheduled_reads`.
        """

    def update_stats_sync(
        self, stamp_token: Any, example_partition_ids: Any, gradients: Any, hessians: Any,
        empty_gradients: Any, empty_hessians: Any, weights: Any, is_active: Any,
    ) -> Any:  # fmt: skip
        """The operation that takes a batch in; the arguments are those of `update_stats`."""
        run = batch_ops_utils.run_handler_scheduled_ops
        reads = run({0: self.scheduled_reads()}, stamp_token, None)[0]
        update, scheduled = self.update_stats(
            stamp_token, example_partition_ids, gradients, hessians, empty_gradients, empty_hessians, weights,
            is_active, reads,
        )  # fmt: skip
        results = run({0: scheduled}, stamp_token, None)[0]
        return tf.group(update, *results, name="update_stats_sync")

    @abc.abstractmethod
    def make_splits(
        self, stamp_token: Any, next_stamp_token: Any, class_id: Any
    ) -> tuple[Any, Any, Any, Any]:
        """(whether there are splits: bool, []; nodes int32, gains float32 and splits string, [splits]).

        What was summed goes, for the next stamp. `class_id` is the class that the tree is for, -1 for all.
        """

    def _batches(self, num_updates: Any) -> Any:
        return tf.constant(1, tf.int64) if self._loss_uses_sum_reduction else num_updates


def no_rows(empty_gradients: Any, empty_hessians: Any) -> tuple[Any, Any, Any, Any]:
    """(nodes, features, gradients, Hessians) of no values."""
    return tf.constant([], tf.int32), tf.zeros([0, 2], tf.int64), empty_gradients, empty_hessians


def with_totals(
    partition_ids: Any, gradients: Any, hessians: Any, feature_ids: Any, rows: Any
) -> tuple[Any, Any, Any, Any]:
    """(nodes, features, gradients, Hessians) of values in some rows, after one row of every node's examples.

    Args:
        partition_ids, gradients, hessians: of the examples.
        feature_ids: (value, dimension) of the values, int64 [values, 2].
        rows: the examples of the values, int64 [values].
    """
    nodes, places = tf.unique(partition_ids)
    count = tf.size(nodes)
    of_nodes = [tf.unsorted_segment_sum(each, places, count) for each in (gradients, hessians)]
    own = tf.stack([tf.fill([count], BIAS_FEATURE_ID), tf.zeros([count], tf.int32)], axis=1)
    parts = [
        (nodes, tf.gather(partition_ids, rows)),
        (tf.to_int64(own), feature_ids),
        *(
            (total, tf.gather(each, rows))
            for total, each in zip(of_nodes, (gradients, hessians), strict=True)
        ),
    ]
    return tuple(tf.concat(both, 0) for both in parts)  # type: ignore[return-value]
