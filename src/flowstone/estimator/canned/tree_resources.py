"""The resources of boosted trees: an ensemble, and the streams in which boundaries of buckets are found.

Both are initialised with the graph's other resources and saved by every Saver, under TensorFlow's names. The
names below are those of TensorFlow's module `boosted_trees_ops`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.framework.declarations.op_functions import positional
from flowstone.ops.checkpoints.saveable_object import SaveableObject, SaveSpec

__all__ = [
    "PruningMode",
    "QuantileAccumulator",
    "TreeEnsemble",
    "boosted_trees_bucketize",
    "calculate_best_gains_per_feature",
    "center_bias",
    "example_debug_outputs",
    "make_quantile_summaries",
    "make_stats_summary",
    "predict",
    "training_predict",
    "update_ensemble",
]

boosted_trees_bucketize = positional("BoostedTreesBucketize")
calculate_best_gains_per_feature = positional("BoostedTreesCalculateBestGainsPerFeature")
center_bias = positional("BoostedTreesCenterBias")
create_quantile_stream_resource = positional("BoostedTreesCreateQuantileStreamResource")
example_debug_outputs = positional("BoostedTreesExampleDebugOutputs")
get_bucket_boundaries = positional("BoostedTreesQuantileStreamResourceGetBucketBoundaries")
is_quantile_resource_initialized = positional("IsBoostedTreesQuantileStreamResourceInitialized")
make_quantile_summaries = positional("BoostedTreesMakeQuantileSummaries")
make_stats_summary = positional("BoostedTreesMakeStatsSummary")
predict = positional("BoostedTreesPredict")
quantile_add_summaries = positional("BoostedTreesQuantileStreamResourceAddSummaries")
quantile_flush = positional("BoostedTreesQuantileStreamResourceFlush")
quantile_resource_deserialize = positional("BoostedTreesQuantileStreamResourceDeserialize")
quantile_resource_handle_op = positional("BoostedTreesQuantileStreamResourceHandleOp")
training_predict = positional("BoostedTreesTrainingPredict")
update_ensemble = positional("BoostedTreesUpdateEnsemble")
_create_ensemble = positional("BoostedTreesCreateEnsemble")
_deserialize_ensemble = positional("BoostedTreesDeserializeEnsemble")
_ensemble_handle = positional("BoostedTreesEnsembleResourceHandleOp")
_ensemble_states = positional("BoostedTreesGetEnsembleStates")
_is_ensemble_initialized = positional("IsBoostedTreesEnsembleInitialized")
_serialize_ensemble = positional("BoostedTreesSerializeEnsemble")

_Resource = namedtuple("_Resource", ["handle", "create", "is_initialized"])


class PruningMode:
    """When splits that do not pay are taken back."""

    NO_PRUNING, PRE_PRUNING, POST_PRUNING = range(3)

    _modes = {"none": NO_PRUNING, "post": POST_PRUNING, "pre": PRE_PRUNING}

    @classmethod
    def from_str(cls, mode: str) -> int:
        """The number of `mode`; ValueError for another name."""
        if mode not in cls._modes:
            raise ValueError(f"pruning_mode mode must be one of: {', '.join(cls._modes)}")
        return cls._modes[mode]


class _Saveable(SaveableObject):
    """Some tensors of a resource; restoring makes the resource first."""

    def __init__(
        self, handle: Any, tensors: dict[str, Any], create_op: Any, restore: Callable[..., Any]
    ) -> None:
        specs = [SaveSpec(tensor, "", handle.name + end) for end, tensor in tensors.items()]
        super().__init__(handle, specs, handle.name)
        self._create_op, self._restore = create_op, restore

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None) -> Any:
        """The operation that puts what was saved in place of what is there."""
        with tf.control_dependencies([self._create_op]):
            return self._restore(restored_tensors)


class TreeEnsemble:
    """An ensemble of trees.

    Args:
        name: of the resource.
        stamp_token: the stamp that it begins with.
        is_local: whether it is this task's own, and neither saved nor seen by others.
        serialized_proto: a message `TreeEnsemble` to begin with.
    """

    def __init__(
        self, name: str, stamp_token: int = 0, is_local: bool = False, serialized_proto: bytes | str = ""
    ) -> None:
        with tf.name_scope(name, "TreeEnsemble") as scope:
            self.resource_handle = handle = _ensemble_handle(container="", shared_name=scope, name=scope)
            self.initializer = _create_ensemble(handle, stamp_token, serialized_proto)
            self._is_initialized = _is_ensemble_initialized(handle)
            if not is_local:
                stamp, text = _serialize_ensemble(handle)
                tensors = {"_stamp": stamp, "_serialized": text}
                saveable = _Saveable(
                    handle, tensors, self.initializer, lambda saved: self.deserialize(*saved)
                )
                tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, saveable)
            key = tf.GraphKeys.LOCAL_RESOURCES if is_local else tf.GraphKeys.RESOURCES
            tf.add_to_collection(key, _Resource(handle, self.initializer, self._is_initialized))

    def is_initialized(self) -> Any:
        """Whether it has been made: a scalar of bool."""
        return self._is_initialized

    def get_stamp_token(self) -> Any:
        """How often it has changed: a scalar of int64."""
        return _ensemble_states(self.resource_handle)[0]

    def get_states(self) -> tuple[Any, Any, Any, Any, Any]:
        """Stamp, number of trees, of finished ones, of layers tried; the range of the last layer's nodes."""
        stamp, trees, finished, layers, nodes = _ensemble_states(self.resource_handle)
        return (
            tf.identity(stamp, name="stamp_token"),
            tf.identity(trees, name="num_trees"),
            tf.identity(finished, name="num_finalized_trees"),
            tf.identity(layers, name="num_attempted_layers"),
            tf.identity(nodes, name="last_layer_nodes_range"),
        )

    def serialize(self) -> Any:
        """The stamp, and the message as a string."""
        return _serialize_ensemble(self.resource_handle)

    def deserialize(self, stamp_token: Any, serialized_proto: Any) -> Any:
        """The operation that puts the ensemble of a message in place of this one."""
        return _deserialize_ensemble(self.resource_handle, stamp_token, serialized_proto)


class QuantileAccumulator:
    """Streams of numbers, of which boundaries of buckets are found.

    Args:
        epsilon: by which part of the total weight a rank may be wrong.
        num_streams: how many features; `num_quantiles`: how many buckets each gets.
        name: of the resource.
        max_elements: how many numbers come at most; None for any number.
    """

    def __init__(
        self,
        epsilon: float,
        num_streams: int,
        num_quantiles: int,
        name: str | None = None,
        max_elements: int | None = None,
    ) -> None:
        self._epsilon, self._streams, self._quantiles = epsilon, num_streams, num_quantiles
        most = {} if max_elements is None else {"max_elements": max_elements}
        with tf.name_scope(name, "QuantileAccumulator") as scope:
            handle = quantile_resource_handle_op(container="", shared_name=scope, name=scope)
            self.resource_handle = handle
            self.initializer = create_quantile_stream_resource(handle, epsilon, num_streams, **most)
            self._is_initialized = is_quantile_resource_initialized(handle)
        resource = _Resource(handle, self.initializer, self._is_initialized)
        tf.add_to_collection(tf.GraphKeys.RESOURCES, resource)
        boundaries = self.get_bucket_boundaries()
        tensors = {f"_bucket_boundaries_{at}": tensor for at, tensor in enumerate(boundaries)}
        self.saveable = _Saveable(
            handle, tensors, self.initializer, lambda saved: quantile_resource_deserialize(handle, saved)
        )
        tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, self.saveable)

    def is_initialized(self) -> Any:
        """Whether it has been made: a scalar of bool."""
        return self._is_initialized

    def add_summaries(self, float_columns: Sequence[Any], example_weights: Any) -> Any:
        """The operation that takes a batch of each feature in."""
        summaries = make_quantile_summaries(float_columns, example_weights, self._epsilon)
        return quantile_add_summaries(self.resource_handle, summaries)

    def flush(self) -> Any:
        """The operation that finds the boundaries of what has come, and empties the streams."""
        return quantile_flush(self.resource_handle, self._quantiles)

    def get_bucket_boundaries(self) -> list[Any]:
        """Of each feature the boundaries that were found last."""
        return list(get_bucket_boundaries(self.resource_handle, self._streams))
