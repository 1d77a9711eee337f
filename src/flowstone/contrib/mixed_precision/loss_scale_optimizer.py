"""An optimiser of a scaled loss."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["LossScaleOptimizer"]


class LossScaleOptimizer(Optimizer):
    """Wraps an optimiser: gradients are of the scaled loss, divided by the scale, and left out if not finite.

    Args:
        opt: the optimiser.
        loss_scale_manager: a `LossScaleManager`.
    """

    def __init__(self, opt: Any, loss_scale_manager: Any) -> None:
        self._opt = opt
        self._loss_scale_manager = loss_scale_manager

    def get_name(self) -> str:
        """The optimiser's name."""
        return self._opt.get_name()  # type: ignore[no-any-return]

    def get_slot(self, var: Any, name: str) -> Any:
        """The optimiser's slot."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the optimiser's slots."""
        return self._opt.get_slot_names()  # type: ignore[no-any-return]

    def variables(self) -> list[Any]:
        """The optimiser's variables."""
        return self._opt.variables()  # type: ignore[no-any-return]

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """The gradients of `loss`, by way of the scaled loss; the arguments are tf.train.Optimizer's."""
        scale = self._loss_scale_manager.get_loss_scale()
        pairs = self._opt.compute_gradients(
            loss * tf.cast(scale, loss.dtype.base_dtype),
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        inverse = tf.reciprocal(scale)
        return [(None if grad is None else _times(grad, inverse), var) for grad, var in pairs]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The step, taken if all gradients are finite, and the change of the scale. Returns the operation."""
        pairs = list(grads_and_vars)
        finite = [tf.reduce_all(tf.is_finite(_values(grad))) for grad, _ in pairs if grad is not None]
        all_finite = tf.reduce_all(finite)

        def step() -> Any:
            return self._opt.apply_gradients(pairs, global_step, name)

        taken = tf.cond(all_finite, lambda: tf.group(step()), tf.no_op)
        return tf.group(taken, self._loss_scale_manager.update_loss_scale(all_finite))


def _values(grad: Any) -> Any:
    return grad.values if isinstance(grad, tf.IndexedSlices) else grad


def _times(grad: Any, factor: Any) -> Any:
    product = _values(grad) * tf.cast(factor, grad.dtype.base_dtype)
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(product, grad.indices, dense_shape=grad.dense_shape)
    return product
