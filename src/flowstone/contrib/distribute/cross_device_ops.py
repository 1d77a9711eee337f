"""Values of several devices made one, and one value given to several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distributed_values import Mirrored, is_distributed
from flowstone.contrib.distribute.reduce_ops import ReduceOp, reduce_op_of

__all__ = ["AllReduceCrossDeviceOps", "CrossDeviceOps", "ReductionToOneDevice", "devices_of"]


def _listed(value: Any) -> list[Any]:
    if is_distributed(value):
        return list(value.values)
    return list(value) if isinstance(value, (list, tuple)) else [value]


def devices_of(destinations: Any) -> tuple[str, ...]:
    """The devices that destinations mean: names, or those of a variable, tensor or value of replicas."""
    if isinstance(destinations, str):
        return (destinations,)
    if isinstance(destinations, (list, tuple)):
        return tuple(destinations)
    if is_distributed(destinations):
        return tuple(each.device or "" for each in destinations.values)
    return (getattr(destinations, "device", destinations) or "",)


class CrossDeviceOps:
    """Reduces values of replicas, by their sum or their mean.

    A value of several replicas is a `PerReplica`, or a list of tensors, of one a tensor; tensors may be
    IndexedSlices. Destinations are devices' names, or a variable, tensor or value of replicas, whose devices
    they are. The result on one device is a tensor, on several a `Mirrored`.
    """

    def reduce(self, reduce_op: Any, per_replica_value: Any, destinations: Any) -> Any:
        """The sum or the mean of the replicas' values, where `destinations` says; else ValueError."""
        return self.reduce_implementation(reduce_op, per_replica_value, destinations)

    def batch_reduce(self, reduce_op: Any, value_destination_pairs: Sequence[Any]) -> list[Any]:
        """`reduce` of several pairs of a value and its destinations."""
        return self.batch_reduce_implementation(reduce_op, value_destination_pairs)

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """The tensor where `destinations` says."""
        return self.broadcast_implementation(tensor, destinations)

    def reduce_implementation(self, reduce_op: Any, per_replica_value: Any, destinations: Any) -> Any:
        """What `reduce` does."""
        total = self._total(reduce_op_of(reduce_op), _listed(per_replica_value), devices_of(destinations)[0])
        return self.broadcast(total, destinations)

    def batch_reduce_implementation(
        self, reduce_op: Any, value_destination_pairs: Sequence[Any]
    ) -> list[Any]:
        """What `batch_reduce` does."""
        return [self.reduce(reduce_op, *pair) for pair in value_destination_pairs]

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
        """What `broadcast` does."""
        copies = []
        for device in devices_of(destinations):
            with tf.device(device):
                copies.append(_copied(tensor))
        return copies[0] if len(copies) == 1 else Mirrored(copies)

    def _total(self, kind: ReduceOp, values: list[Any], device: str) -> Any:
        with tf.device(device):
            if any(isinstance(each, tf.IndexedSlices) for each in values):
                return _total_of_slices(kind, values)
            total = self._sum(values) if len(values) > 1 else tf.identity(values[0])
            return total / len(values) if kind == ReduceOp.MEAN and len(values) > 1 else total

    def _sum(self, values: list[Any]) -> Any:
        return tf.add_n(values)


def _copied(tensor: Any) -> Any:
    if not isinstance(tensor, tf.IndexedSlices):
        return tf.identity(tensor)
    return tf.IndexedSlices(tf.identity(tensor.values), tf.identity(tensor.indices), tensor.dense_shape)


def _total_of_slices(kind: ReduceOp, values: list[Any]) -> Any:
    if not all(isinstance(each, tf.IndexedSlices) for each in values):
        dense = [tf.convert_to_tensor(each) for each in values]
        return tf.add_n(dense) / len(values) if kind == ReduceOp.MEAN else tf.add_n(dense)
    rows = tf.concat([each.values for each in values], 0)
    if kind == ReduceOp.MEAN:
        rows = rows / len(values)
    return tf.IndexedSlices(rows, tf.concat([each.indices for each in values], 0), values[0].dense_shape)


class ReductionToOneDevice(CrossDeviceOps):
    """Values are added up on one device.

    Args:
        reduce_to_device: its name; by default the first destination.
        accumulation_fn: of a list of tensors to their sum; by default `tf.add_n`.
    """

    def __init__(
        self, reduce_to_device: str | None = None, accumulation_fn: Callable[..., Any] | None = None
    ) -> None:
        super().__init__()
        self.reduce_to_device, self.accumulation_fn = reduce_to_device, accumulation_fn or tf.add_n

    def _total(self, kind: ReduceOp, values: list[Any], device: str) -> Any:
        return super()._total(kind, values, self.reduce_to_device or device)

    def _sum(self, values: list[Any]) -> Any:
        return self.accumulation_fn(values)


class AllReduceCrossDeviceOps(CrossDeviceOps):
    """As `CrossDeviceOps`; how values go from device to device is the runtime's affair.

    Args:
        all_reduce_alg: taken, and not needed, as the others.
        num_packs: of gradients.
        agg_small_grads_max_bytes: of gradients that are joined.
        agg_small_grads_max_group: how many are joined.
    """

    def __init__(
        self,
        all_reduce_alg: str = "nccl",
        num_packs: int = 1,
        agg_small_grads_max_bytes: int = 0,
        agg_small_grads_max_group: int = 10,
    ) -> None:
        super().__init__()
