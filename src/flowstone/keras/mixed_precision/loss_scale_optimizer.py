"""`LossScaleOptimizer`: the gradients of an optimiser of `tf.keras`, by way of a scaled loss.

P. Micikevicius et al., "Mixed precision training", 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.mixed_precision import loss_scaling
from flowstone.framework.tensors import nest
from flowstone.keras import sessions
from flowstone.keras.extensions.optimizer_base import Optimizer

__all__ = ["LossScaleOptimizer"]


class LossScaleOptimizer(Optimizer):
    """Wraps an optimiser: the loss is multiplied, its gradients are divided by a scale.

    With a dynamic scale a step is left out if a gradient is not finite, and the scale changes by that.

    Args:
        opt: an optimiser of `tf.keras` that clips no gradients.
        loss_scale: a number, "dynamic", or a LossScale.

    Raises ValueError for others.
    """

    _slots_are_of_another = True

    def __init__(self, opt: Any, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f'"opt" must be an instance of OptimizerV2, but got: {opt}')
        for kind in ("clipnorm", "clipvalue"):
            if getattr(opt, kind, None) is not None:
                raise ValueError(
                    f"LossScaleOptimizer does not support wrapping optimizers with a {kind}. Optimizer {opt} "
                    f"has {kind} {getattr(opt, kind)}"
                )
        self.__dict__.update(_hyper={}, _name=opt._name, _optimizer=opt)
        self._loss_scale = loss_scaling.loss_scale_of(loss_scale)
        for weight in self._loss_scale.weights:
            sessions.track_variable(weight)

    # ---- what the wrapped optimiser has

    loss_scale = property(lambda self: self._loss_scale, doc="The LossScale.")

    @property
    def iterations(self) -> Any:
        """The number of steps that were taken."""
        return self._optimizer.iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        self._optimizer.iterations = variable

    @property
    def learning_rate(self) -> Any:
        """The optimiser's learning rate."""
        return self._optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._optimizer.learning_rate = value

    lr = learning_rate

    @property
    def weights(self) -> list[Any]:
        """The optimiser's weights, then those of the scale."""
        return [*self._optimizer.weights, *self._loss_scale.weights]

    def variables(self) -> list[Any]:
        """The same as `weights`."""
        return self.weights

    def get_slot(self, var: Any, slot_name: str) -> Any:
        """The optimiser's slot."""
        return self._optimizer.get_slot(var, slot_name)

    def get_slot_names(self) -> list[str]:
        """The names of the optimiser's slots."""
        names: list[str] = self._optimizer.get_slot_names()
        return names

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        return [("base_optimizer", self._optimizer), ("loss_scale", self._loss_scale)]

    # ---- steps

    def get_scaled_loss(self, loss: Any) -> Any:
        """The loss, multiplied by the scale; of a function one that returns this."""
        if callable(loss):
            return lambda: self.get_scaled_loss(loss())
        return loss * tf.cast(self._loss_scale(), loss.dtype)

    def get_unscaled_gradients(self, grads: Sequence[Any]) -> list[Any]:
        """The gradients of a scaled loss, divided by the scale; None stays None."""
        inverse = 1.0 / self._loss_scale()
        return [None if grad is None else loss_scaling.times(grad, inverse) for grad in grads]

    def get_gradients(self, loss: Any, params: Sequence[Any]) -> list[Any]:
        """The gradients of `loss`, by way of the scaled loss."""
        return self.get_unscaled_gradients(self._optimizer.get_gradients(self.get_scaled_loss(loss), params))

    def minimize(self, loss: Any, var_list: Any, grad_loss: Any = None, name: str | None = None) -> Any:
        """The operation of a step; `loss` is a function without arguments, or a tensor."""
        params = nest.flatten(var_list() if callable(var_list) else var_list)
        scaled = self.get_scaled_loss(loss() if callable(loss) else loss)
        gradients = self.get_unscaled_gradients(tf.gradients(scaled, params, grad_loss))
        return self.apply_gradients(zip(gradients, params), name=name)

    def apply_gradients(self, grads_and_vars: Any, name: str | None = None) -> Any:
        """The step, taken if the scale says so, and the change of the scale. Returns the operation."""
        pairs = list(grads_and_vars)
        _ = self.iterations
        self._optimizer._create_hypers()
        self._optimizer._create_slots([variable for grad, variable in pairs if grad is not None])
        update, should_apply = self._loss_scale.update([grad for grad, _ in pairs])

        def step() -> Any:
            return tf.group(self._optimizer.apply_gradients(pairs, name))

        taken = step() if should_apply is True else tf.cond(should_apply, step, tf.no_op)
        return tf.group(taken, update)

    def get_config(self) -> dict[str, Any]:
        """NotImplementedError: TensorFlow 1.15 has no configuration of it either."""
        raise NotImplementedError("get_config() is not yet implemented for LossScaleOptimizers")
