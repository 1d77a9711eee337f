"""Sums over the shards of a batch, of which there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["CrossShardOptimizer", "core", "cross_replica_sum", "outside_compilation"]


def cross_replica_sum(x: Any, group_assignment: Any = None, name: str | None = None) -> Any:
    """The sum of a tensor over all shards: the tensor."""
    return tf.identity(x, name=name)


def core(num: int) -> str:
    """The name of a TPU's core, for a device that programs with none do not have."""
    return f"device:TPU_REPLICATED_CORE:{num}"


def outside_compilation(computation: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function returns that a TPU would leave to its host: here all is on a host."""
    return computation(*args, **kwargs)


class CrossShardOptimizer(Optimizer):
    """Wraps an optimiser whose gradients are averaged over shards: with one shard, the optimiser itself.

    Args:
        opt: the optimiser. TypeError for other things.
        reduction: of the losses over shards: SUM or MEAN. ValueError for others.
        name: of the wrapper. group_assignment: which shards belong together.
    """

    def __init__(
        self,
        opt: Any,
        reduction: Any = "weighted_mean",
        name: str = "CrossShardOptimizer",
        group_assignment: Any = None,
    ) -> None:
        allowed = (tf.losses.Reduction.SUM, tf.losses.Reduction.MEAN)
        if reduction not in allowed:
            raise ValueError(f"Unsupported reduction: {reduction}.")
        if not isinstance(opt, Optimizer):
            raise TypeError(f"CrossShardOptimizer only works with tf.train.Optimizer, not {type(opt)}")
        super().__init__(False, name)
        self._opt = opt

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """As of the optimiser."""
        return self._opt.compute_gradients(loss, *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """As of the optimiser."""
        return self._opt.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """As of the optimiser."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """As of the optimiser."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        """As of the optimiser."""
        return self._opt.variables()
