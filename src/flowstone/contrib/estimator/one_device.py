"""Model functions on several devices, here on one: what is split and summed elsewhere is whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.framework.names.refusals import refuse
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["TowerOptimizer", "replicate_model_fn"]


class TowerOptimizer(Optimizer):
    """An optimiser as a model function that is replicated needs it: on one device the optimiser itself.

    Args:
        optimizer_or_optimizer_fn: an optimiser, or a function without arguments that makes one.
    """

    COLLECTION_FOR_GRAPH_STATES = "replicate_model_fn_graph_states"
    _used = False

    def __init__(self, optimizer_or_optimizer_fn: Any) -> None:
        TowerOptimizer._used = True
        self._made = None if callable(optimizer_or_optimizer_fn) else optimizer_or_optimizer_fn
        self._make = optimizer_or_optimizer_fn

    def _optimizer(self) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made

    @staticmethod
    def has_been_used() -> bool:
        """Whether there has been a TowerOptimizer."""
        return TowerOptimizer._used

    def get_name(self, *args: Any, **kwargs: Any) -> str:
        """The optimiser's name."""
        name: str = self._optimizer().get_name(*args, **kwargs)
        return name

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The optimiser's slot of a variable."""
        return self._optimizer().get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The names of the optimiser's slots."""
        return self._optimizer().get_slot_names(*args, **kwargs)

    def variables(self, *args: Any, **kwargs: Any) -> Any:
        """The optimiser's variables."""
        return self._optimizer().variables(*args, **kwargs)

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """The gradients of a loss with their variables."""
        return self._optimizer().compute_gradients(loss, *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The operation that applies gradients to variables."""
        return self._optimizer().apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def minimize(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """The operation of a step that makes a loss smaller."""
        return self._optimizer().minimize(loss, *args, **kwargs)


def replicate_model_fn(
    model_fn: Callable[..., Any],
    loss_reduction: str = tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS,
    devices: Sequence[str] | None = None,
) -> Callable[..., Any]:
    """A model function on a device.

    Args:
        model_fn: an Estimator's model function.
        loss_reduction: how the losses of several devices would become one.
        devices: the name of the device; by default operations are placed as elsewhere.

    Returns a function of `features`, `labels`, `mode`, `params` and `config`. Raises NotInGraphModeError for
    several devices.
    """
    if devices is not None and len(devices) > 1:
        instead = "one device, or tf.train.replica_device_setter and tf.train.SyncReplicasOptimizer"
        refuse("tf.contrib.estimator.replicate_model_fn of several devices", instead)
    device = devices[0] if devices else None
    accepted = inspect.signature(model_fn).parameters

    def single_device_model_fn(
        features: Any, labels: Any, mode: str, params: Any = None, config: Any = None
    ) -> Any:
        given = {"labels": labels, "mode": mode, "params": params, "config": config}
        with tf.device(device):
            return model_fn(features, **{name: given[name] for name in given if name in accepted})

    return single_device_model_fn
