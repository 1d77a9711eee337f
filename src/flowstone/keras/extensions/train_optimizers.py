"""Optimisers of `tf.train` in models of `tf.keras`: their slots are part of a model's checkpoints."""

from __future__ import annotations

from types import ModuleType
from typing import Any

__all__ = ["extend"]


def _checkpoint_children(self: Any) -> list[tuple[str, Any]]:
    """What a checkpoint has of it: the optimiser itself, and the number of its steps."""
    return [("optimizer", self.optimizer), ("global_step", self.iterations)]


def _weights(self: Any) -> list[Any]:
    """The variables of the optimiser; none before it has trained."""
    return list(self.optimizer.variables())


def _get_updates(self: Any, loss: Any, params: Any) -> list[Any]:
    """The operation of a step, which counts it; in a replica's code that of all replicas."""
    pairs = self.optimizer.compute_gradients(loss, var_list=params)
    return [self.optimizer.apply_gradients(pairs, global_step=self.iterations)]


def extend(module: ModuleType) -> None:
    """Changes the class `TFOptimizer` of `keras.optimizers`."""
    wrapper: Any = vars(module)["TFOptimizer"]
    wrapper._checkpoint_children = _checkpoint_children
    wrapper.get_updates = _get_updates
    wrapper.weights = property(_weights)
