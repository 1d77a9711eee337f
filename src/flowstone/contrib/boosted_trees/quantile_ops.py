"""`tf.contrib.boosted_trees.python.ops.quantile_ops`: the buckets of features, found while they stream in."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.boosted_trees.batch_ops_utils import ScheduledOp, ScheduledStampedResourceOp
from flowstone.contrib.boosted_trees.resources import TrackedResource, plain_name
from flowstone.contrib.tensor_forest.forest_resources import ForestSavable
from flowstone.framework.declarations.op_functions import positional

__all__ = [
    "QuantileAccumulator",
    "QuantileAccumulatorSaveable",
    "bucketize_with_input_boundaries",
    "make_quantile_summaries",
    "quantile_accumulator_add_summaries",
    "quantile_accumulator_get_buckets",
    "quantile_buckets",
    "quantiles",
]

bucketize_with_input_boundaries = positional("BucketizeWithInputBoundaries")
make_quantile_summaries = positional("MakeQuantileSummaries")
quantile_accumulator_add_summaries = positional("QuantileAccumulatorAddSummaries")
quantile_accumulator_get_buckets = positional("QuantileAccumulatorGetBuckets")
quantile_buckets, quantiles = positional("QuantileBuckets"), positional("Quantiles")
_handle, _create = positional("QuantileStreamResourceHandleOp"), positional("CreateQuantileAccumulator")
_serialize, _deserialize = (
    positional("QuantileAccumulatorSerialize"),
    positional("QuantileAccumulatorDeserialize"),
)
_is_initialized = positional("QuantileAccumulatorIsInitialized")
_flush, _flush_summary = (
    positional("QuantileAccumulatorFlush"),
    positional("QuantileAccumulatorFlushSummary"),
)
_MOST = 1 << 40
_ENDS = ("_stamp", "_state", "_are_buckets_ready", "buckets")


class QuantileAccumulatorSaveable(ForestSavable):
    """An accumulator as checkpoints keep it: stamp, stream, whether there are buckets, and the buckets."""

    def __init__(self, resource_handle: Any, create_op: Any, name: str) -> None:
        saved = zip(_serialize(resource_handle), [name + end for end in _ENDS], strict=True)
        deserialize = functools.partial(_deserialize, resource_handle)
        super().__init__(resource_handle, saved, create_op, name, deserialize)


class _ScheduledSummary(ScheduledOp):
    """A column that an accumulator takes in: the columns of equal weights are summarised by one operation.

    Args:
        resource_handle: the accumulator.
        epsilon: the error of the summary's ranks: half of all, as merging adds as much again.
        column: a tensor [examples, 1], or a SparseTensor; `weights`: of the examples.
    """

    def __init__(self, resource_handle: Any, epsilon: float, column: Any, weights: Any) -> None:
        self.resource_handle, self.epsilon, self.column, self.weights = (
            resource_handle, epsilon, column, weights
        )  # fmt: skip

    def batching_key(self) -> Any:
        """The error, and which weights."""
        return _ScheduledSummary, self.epsilon, id(self.weights)

    def batch_runner_fn(self) -> Callable[[Sequence[Any], Any], Sequence[Any]]:
        """What makes the two operations for all columns."""
        return _add_together


def _add_together(batch: Sequence[_ScheduledSummary], stamp: Any) -> Sequence[Any]:
    sparse = [each for each in batch if isinstance(each.column, tf.SparseTensor)]
    dense = [each for each in batch if not isinstance(each.column, tf.SparseTensor)]
    parts = ([getattr(each.column, part) for each in sparse] for part in ("indices", "values", "dense_shape"))
    columns = [each.column for each in dense]
    made = make_quantile_summaries(columns, *parts, batch[0].weights, epsilon=batch[0].epsilon)
    handles = [each.resource_handle for each in (*dense, *sparse)]
    texts = [*made.dense_summaries, *made.sparse_summaries]
    return [quantile_accumulator_add_summaries(handles, stamp, texts)] * len(batch)


class QuantileAccumulator(TrackedResource):
    """The stream of a feature's values, and its buckets.

    Args:
        init_stamp_token: the stamp that it has at first.
        epsilon: by which part of all weights a rank may be wrong.
        num_quantiles: how many buckets there are to be.
        max_elements: how many values come at most.
        name: of the accumulator; `container`: where it is kept.
        generate_quantiles: whether buckets are equal shares of the weights.
    """

    def __init__(
        self,
        init_stamp_token: Any,
        epsilon: float,
        num_quantiles: int,
        max_elements: int | None = None,
        name: str | None = None,
        container: str | None = None,
        generate_quantiles: bool = False,
    ) -> None:
        self._epsilon = epsilon
        with tf.name_scope(plain_name(name or "QuantileAccumulator"), "QuantileAccumulator") as scope:
            handle = _handle(container or "", shared_name=scope, name=scope)
            create = _create(
                handle,
                init_stamp_token,
                epsilon=epsilon,
                max_elements=max_elements or _MOST,
                num_quantiles=num_quantiles,
                generate_quantiles=generate_quantiles,
            )
            ready = _is_initialized(handle)
        saveable = QuantileAccumulatorSaveable(handle, create, scope)
        super().__init__(handle, create, ready, saveable)

    def get_buckets(self, stamp_token: Any) -> tuple[Any, Any]:
        """(whether there are buckets: bool, []; their bounds: float32, [buckets]) of the stamp."""
        ready, buckets = quantile_accumulator_get_buckets([self._handle], stamp_token)
        return ready[0], buckets[0]

    def schedule_get_buckets(self) -> ScheduledStampedResourceOp:
        """The same, to be made with others."""
        return ScheduledStampedResourceOp(self._handle, quantile_accumulator_get_buckets)

    def add_summary(self, stamp_token: Any, column: Any, example_weights: Any) -> Any:
        """The operation that takes a column in: a tensor [examples, 1] or SparseTensor of float32.

        `example_weights` is float32 [examples, 1].
        """
        scheduled = _ScheduledSummary(self._handle, self._epsilon / 2, column, example_weights)
        return _add_together([scheduled], stamp_token)[0]

    def add_prebuilt_summary(self, stamp_token: Any, summary: Any) -> Any:
        """The operation that takes in what a summary, the text of a message, has seen."""
        return quantile_accumulator_add_summaries([self._handle], stamp_token, [summary])

    def schedule_add_summary(self, stamp_token: Any, column: Any, example_weights: Any) -> ScheduledOp:
        """`add_summary`, to be made with others."""
        return _ScheduledSummary(self._handle, self._epsilon / 2, column, example_weights)

    def flush(self, stamp_token: Any, next_stamp_token: Any) -> Any:
        """The operation that finds the buckets, and empties the stream for the next stamp."""
        return _flush(self._handle, stamp_token, next_stamp_token)

    def flush_summary(self, stamp_token: Any, next_stamp_token: Any) -> Any:
        """The summary of the stream, which is emptied: string, []."""
        return _flush_summary(self._handle, stamp_token, next_stamp_token)
