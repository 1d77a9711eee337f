"""How an ensemble of boosted trees grows: from a batch that is all data, or from what batches have
accumulated.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.estimator.canned.tree_resources import (
    PruningMode,
    QuantileAccumulator,
    TreeEnsemble,
    calculate_best_gains_per_feature,
    center_bias,
    update_ensemble,
)

__all__ = ["AccumulatingGrower", "Grower", "TreeHParams", "choose", "most_splits"]

TreeHParams = namedtuple(
    "TreeHParams",
    "n_trees max_depth learning_rate l1 l2 tree_complexity min_node_weight center_bias pruning_mode"
    " quantile_sketch_epsilon",
)


def choose(condition: Any, yes: Callable[[], Any], no: Callable[[], Any], name: str = "cond") -> Any:
    """The operation of one of two functions that give operations."""
    return tf.cond(tf.identity(condition), lambda: tf.group(yes()), lambda: tf.group(no()), name=name)


def most_splits(hparams: Any) -> int:
    """How many splits a tree can have."""
    return int((1 << hparams.max_depth) - 1)


class Grower:
    """Grows an ensemble from batches that are the whole data.

    Args:
        ensemble: the TreeEnsemble; `quantiles`: the QuantileAccumulator, if a column needs one.
        hparams: TreeHParams.
        feature_ids: the features, in groups of equal numbers of buckets.

    Raises ValueError for pruning without a tree complexity, and for a complexity without pruning.
    """

    def __init__(
        self,
        ensemble: TreeEnsemble,
        quantiles: QuantileAccumulator | None,
        hparams: Any,
        feature_ids: list[list[int]],
    ) -> None:
        self._ensemble, self._quantiles = ensemble, quantiles
        self._hparams, self._feature_ids = hparams, feature_ids
        self._pruning = PruningMode.from_str(hparams.pruning_mode)
        is_pruned = self._pruning != PruningMode.NO_PRUNING
        if hparams.tree_complexity > 0 and not is_pruned:
            raise ValueError("Tree complexity have no effect unless pruning mode is chosen.")
        if hparams.tree_complexity <= 0 and is_pruned:
            raise ValueError("For pruning, tree_complexity must be positive.")

    def initializer(self) -> Any:
        """What the chief runs when a session is made."""
        return tf.no_op()

    def accumulate_quantiles(self, features: list[Any], weights: Any, are_ready: Any) -> Any:
        """The operation that takes a batch into the streams; `are_ready` becomes true once boundaries are
        found.
        """
        with tf.control_dependencies([self._streams.add_summaries(features, weights)]):
            flush = self._streams.flush()
        with tf.control_dependencies([flush]):
            return tf.group(are_ready.assign(True))

    def center_bias(self, is_needed: Any, gradients: Any, hessians: Any) -> Any:
        """The operation that improves the bias; `is_needed` becomes false once it has settled."""
        means = [tf.expand_dims(tf.reduce_mean(each, 0), 0) for each in (gradients, hessians)]
        return tf.group(self._center(is_needed, *means))

    def grow_tree(self, summaries: Sequence[Sequence[Any]], last_layer: Any) -> Any:
        """The operation that adds a layer; `summaries`: of each group, of each feature a batch's sums."""
        return self._grow(summaries, last_layer)

    @property
    def _streams(self) -> QuantileAccumulator:
        assert self._quantiles is not None  # only float columns have quantiles accumulated
        return self._quantiles

    def _center(self, is_needed: Any, gradients: Any, hessians: Any) -> Any:
        hparams = self._hparams
        go_on = center_bias(self._ensemble.resource_handle, gradients, hessians, hparams.l1, hparams.l2)
        return is_needed.assign(go_on)

    def _grow(self, summaries: Sequence[Sequence[Any]], last_layer: Any) -> Any:
        hparams = self._hparams
        columns: list[list[Any]] = [[], [], [], [], []]
        for group in summaries:
            found = calculate_best_gains_per_feature(
                last_layer,
                list(group),
                hparams.l1,
                hparams.l2,
                hparams.tree_complexity,
                hparams.min_node_weight,
                max_splits=most_splits(hparams),
            )
            for column, part in zip(columns, found, strict=True):
                column.extend(part)
        return update_ensemble(
            self._ensemble.resource_handle,
            [feature for group in self._feature_ids for feature in group],
            *columns,
            hparams.max_depth,
            hparams.learning_rate,
            pruning_mode=self._pruning,
        )


class AccumulatingGrower(Grower):
    """Grows an ensemble when enough batches, of all workers together, have come.

    Args:
        stamp: the ensemble's stamp, which tells what batches saw.
        n_batches_per_layer: how many batches a layer needs.
        bucket_sizes: how many buckets the features of each group have.
        is_chief: whether this task grows the trees.
        Others: as of `Grower`.
    """

    def __init__(
        self,
        ensemble: TreeEnsemble,
        quantiles: QuantileAccumulator | None,
        hparams: Any,
        feature_ids: list[list[int]],
        stamp: Any,
        n_batches_per_layer: Any,
        bucket_sizes: list[int],
        is_chief: bool,
    ) -> None:
        super().__init__(ensemble, quantiles, hparams, feature_ids)
        self._stamp, self._batches, self._is_chief = stamp, n_batches_per_layer, is_chief
        self._sums = [
            _accumulator(
                [len(group), most_splits(hparams), size, 2], f"numeric_stats_summary_accumulator_{at}"
            )
            for at, (group, size) in enumerate(zip(feature_ids, bucket_sizes, strict=True))
        ]
        self._bias = _accumulator([2, 1], "bias_accumulator") if hparams.center_bias else None
        bias = [] if self._bias is None else [self._bias]
        self._initializer = tf.group(*[each.set_global_step(stamp) for each in [*self._sums, *bias]])

    def initializer(self) -> Any:
        """Has the accumulators take what batches of the ensemble's stamp bring."""
        return self._initializer

    def accumulate_quantiles(self, features: list[Any], weights: Any, are_ready: Any) -> Any:
        """As `Grower.accumulate_quantiles`; boundaries are found once enough batches have come."""
        summary = self._streams.add_summaries(features, weights)
        count = _accumulator([], "quantile_summary_accum")
        apply = count.apply_grad(tf.constant(0.0), self._stamp)
        update = tf.group(summary, count.set_global_step(self._stamp), apply)
        if not self._is_chief:
            return update

        def flush() -> Any:
            return [self._streams.flush(), are_ready.assign(True).op, count.take_grad(1).op]

        with tf.control_dependencies([update]):
            return choose(
                count.num_accumulated() >= self._batches, flush, tf.no_op, "wait_until_quantiles_are_there"
            )

    def center_bias(self, is_needed: Any, gradients: Any, hessians: Any) -> Any:
        """As `Grower.center_bias`, once enough batches have come."""
        bias = self._bias
        if bias is None:
            raise RuntimeError("center_bias called but bias centering is disabled.")
        means = tf.reduce_mean(tf.stack([gradients, hessians], axis=0), axis=1)

        def center() -> Any:
            parts = tf.unstack(bias.take_grad(1), axis=0)
            centered = self._center(is_needed, *[tf.expand_dims(part, 0) for part in parts])

            def follow() -> Any:
                return [each.set_global_step(self._stamp + 1) for each in self._sums]

            with tf.control_dependencies([centered]):
                return choose(is_needed.read_value(), tf.no_op, follow)

        with tf.control_dependencies([bias.apply_grad(means, self._stamp)]):
            if not self._is_chief:
                return tf.no_op()
            return choose(bias.num_accumulated() >= self._batches, center, tf.no_op, "wait_until_n_batches")

    def grow_tree(self, summaries: Sequence[Sequence[Any]], last_layer: Any) -> Any:
        """As `Grower.grow_tree`, once enough batches have come."""
        applied = [
            sums.apply_grad(tf.stack(list(group), axis=0), self._stamp)
            for sums, group in zip(self._sums, summaries, strict=True)
        ]

        def grow() -> Any:
            return self._grow([tf.unstack(sums.take_grad(1), axis=0) for sums in self._sums], last_layer)

        with tf.control_dependencies(applied):
            if not self._is_chief:
                return tf.no_op()
            least = tf.reduce_min(tf.stack([sums.num_accumulated() for sums in self._sums]))
            return choose(least >= self._batches, grow, tf.no_op, "wait_until_n_batches_accumulated")


def _accumulator(shape: list[int], name: str) -> Any:
    return tf.ConditionalAccumulator(tf.float32, shape=shape, shared_name=name)
