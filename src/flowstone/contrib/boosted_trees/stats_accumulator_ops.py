"""`tf.contrib.boosted_trees.python.ops.stats_accumulator_ops`: sums of gradients and Hessians."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.boosted_trees.batch_ops_utils import ScheduledStampedResourceOp
from flowstone.contrib.boosted_trees.resources import TrackedResource, plain_name
from flowstone.contrib.tensor_forest.forest_resources import ForestSavable
from flowstone.framework.declarations.op_functions import positional

__all__ = ["StatsAccumulator", "StatsAccumulatorSaveable"]

_ENDS = ("_stamp", "_num_updates", "_partition_ids", "_feature_ids", "_gradients", "hessians")


class _Ops:
    """The operations of accumulators of one output, or of several."""

    def __init__(self, kind: str) -> None:
        self.handle = positional(f"StatsAccumulator{kind}ResourceHandleOp")
        self.create = positional(f"CreateStatsAccumulator{kind}")
        self.is_initialized = positional(f"StatsAccumulator{kind}IsInitialized")
        self.add = positional(f"StatsAccumulator{kind}Add")
        self.flush = positional(f"StatsAccumulator{kind}Flush")
        self.serialize = positional(f"StatsAccumulator{kind}Serialize")
        self.deserialize = positional(f"StatsAccumulator{kind}Deserialize")
        self.summary = positional(f"StatsAccumulator{kind}MakeSummary")


_OPS = {True: _Ops("Scalar"), False: _Ops("Tensor")}


class StatsAccumulatorSaveable(ForestSavable):
    """An accumulator as checkpoints keep it: stamp, number of updates, and the rows."""

    def __init__(self, resource_handle: Any, create_op: Any, is_scalar: bool, name: str) -> None:
        self._ops = _OPS[is_scalar]
        keys = [resource_handle.name + end for end in _ENDS]
        saved = zip(self._ops.serialize(resource_handle), keys, strict=True)
        super().__init__(resource_handle, saved, create_op, name, self.deserialize)

    def serialize(self) -> Any:
        """(stamp, number of updates, nodes, features, gradients, Hessians)."""
        return self._ops.serialize(self.op)

    def deserialize(
        self, stamp_token: Any, num_updates: Any, partition_ids: Any, feature_ids: Any, gradients: Any,
        hessians: Any,
    ) -> Any:  # fmt: skip
        """The operation that puts these rows in place of what is there."""
        return self._ops.deserialize(
            self.op, stamp_token, num_updates, partition_ids, feature_ids, gradients, hessians
        )


class StatsAccumulator(TrackedResource):
    """Sums of gradients and Hessians.

    Args:
        stamp_token: the stamp that it has at first.
        gradient_shape, hessian_shape: of one example: [] both, or [outputs] and [outputs] or
            [outputs, outputs].
        name: of the accumulator; `container`: where it is kept.
    """

    def __init__(
        self,
        stamp_token: Any,
        gradient_shape: Any,
        hessian_shape: Any,
        name: str | None = None,
        container: str | None = None,
    ) -> None:
        shapes = [tf.TensorShape(shape).as_list() for shape in (gradient_shape, hessian_shape)]
        is_scalar = not any(shapes)
        self.kind = is_scalar
        self._ops = _OPS[is_scalar]
        with tf.name_scope(plain_name(name or "StatsAccumulator"), "StatsAccumulator") as scope:
            handle = self._ops.handle(container or "", shared_name=scope, name=scope)
            create = self._ops.create(handle, stamp_token, *([] if is_scalar else shapes))
            ready = self._ops.is_initialized(handle)
        saveable = StatsAccumulatorSaveable(handle, create, is_scalar, scope)
        super().__init__(handle, create, ready, saveable)

    def serialize(self) -> Any:
        """(stamp, number of updates, nodes, features, gradients, Hessians)."""
        return self._ops.serialize(self._handle)

    def add(
        self, stamp_token: Any, partition_ids: Any, feature_ids: Any, gradients: Any, hessians: Any
    ) -> Any:
        """The operation that adds rows: int32 [rows], int64 [rows, 2], and float32 [rows, …] twice."""
        rows = self._ops.summary(partition_ids, feature_ids, gradients, hessians)
        return self._ops.add([self._handle], stamp_token, *([each] for each in rows))

    def schedule_add(
        self, partition_ids: Any, feature_ids: Any, gradients: Any, hessians: Any
    ) -> ScheduledStampedResourceOp:
        """`add`, to be made with others."""
        rows = self._ops.summary(partition_ids, feature_ids, gradients, hessians)
        names = ("partition_ids", "feature_ids", "gradients", "hessians")
        return ScheduledStampedResourceOp(self._handle, self._ops.add, **dict(zip(names, rows, strict=True)))

    def flush(self, stamp_token: Any, next_stamp_token: Any) -> Any:
        """(number of updates, nodes, features, gradients, Hessians), which go for the next stamp."""
        return self._ops.flush(self._handle, stamp_token, next_stamp_token)
