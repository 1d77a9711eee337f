"""Values of several devices made one, and one value given to several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import ReduceOp

__all__ = ["AllReduceCrossDeviceOps", "CrossDeviceOps"]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class CrossDeviceOps:
    """Reduces values of replicas, by their sum or their mean.

    A value of several replicas is a list of tensors, of one a tensor. Destinations are a device's name, or
    a variable or tensor, whose device it is.
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
        kind = str(getattr(reduce_op, "name", reduce_op)).upper()
        if kind not in ReduceOp.__members__:
            raise ValueError(f"values are reduced by their sum or their mean, not by {reduce_op!r}")
        values = _listed(per_replica_value)
        with tf.device(_device(destinations)):
            total = tf.add_n(values) if len(values) > 1 else tf.identity(values[0])
            return total / len(values) if kind == "MEAN" and len(values) > 1 else total

    def batch_reduce_implementation(
        self, reduce_op: Any, value_destination_pairs: Sequence[Any]
    ) -> list[Any]:
        """What `batch_reduce` does."""
        return [self.reduce_implementation(reduce_op, *pair) for pair in value_destination_pairs]

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
        """What `broadcast` does."""
        with tf.device(_device(destinations)):
            return tf.identity(tensor)


def _device(destinations: Any) -> str:
    device: str = getattr(destinations, "device", destinations) or ""
    return device


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
