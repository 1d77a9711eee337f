"""LARS: a rate a layer, by the norms of weights and gradient (You et al. 2017, arXiv 1708.03888)."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["LARSOptimizer"]


class LARSOptimizer(Optimizer):
    """Momentum whose rate is scaled for each variable by ``eeta * |w| / (|g| + weight_decay * |w|)``.

    Args:
        learning_rate, momentum: scalars.
        weight_decay: added to the gradient as a share of the weights. eeta: the trust in a layer.
        epsilon: added to the divisor.
        skip_list: parts of names of variables that are neither scaled nor decay.
        use_nesterov: whether the momentum is Nesterov's.

    Raises ValueError for a negative momentum. Gradients are dense.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Any = None,
        use_nesterov: bool = False,
    ) -> None:
        if momentum < 0.0:
            raise ValueError(f"momentum should be positive: {momentum}")
        super().__init__(False, name)
        self._learning_rate, self._momentum, self._weight_decay = learning_rate, momentum, weight_decay
        self._eeta, self._epsilon = eeta, epsilon
        self._skip_list, self._use_nesterov = skip_list, use_nesterov
        self._rate_tensor: Any = None
        self._momentum_tensor: Any = None

    def _create_slots(self, var_list: Any) -> None:
        for var in var_list:
            self._zeros_slot(var, "momentum", self._name)

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._rate_tensor = tf.convert_to_tensor(rate, name="learning_rate")
        self._momentum_tensor = tf.convert_to_tensor(self._call_if_callable(self._momentum), name="momentum")

    def compute_lr(self, grad: Any, var: Any) -> tuple[Any, Any]:
        """The rate for a variable, and its gradient with the weights' decay."""
        rate = self._rate_tensor
        if self._skip_list is not None and any(part in var.name for part in self._skip_list):
            return rate, grad
        weights, gradient = tf.norm(var, ord=2), tf.norm(grad, ord=2)
        trust = tf.where(
            tf.greater(weights, 0.0),
            tf.where(
                tf.greater(gradient, 0.0),
                self._eeta * weights / (gradient + self._weight_decay * weights + self._epsilon),
                1.0,
            ),
            1.0,
        )
        return rate * trust, grad + self._weight_decay * var

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        rate, grad = self.compute_lr(grad, var)
        slot, dtype = self.get_slot(var, "momentum"), var.dtype.base_dtype
        update = F.ApplyMomentum(
            var._ref(),
            slot._ref(),
            tf.cast(1.0, dtype),
            grad * tf.cast(rate, dtype),
            tf.cast(self._momentum_tensor, dtype),
            use_locking=False,
            use_nesterov=self._use_nesterov,
        )
        return update.op

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        rate, grad = self.compute_lr(grad, handle)
        slot, dtype = self.get_slot(handle, "momentum"), handle.dtype.base_dtype
        return F.ResourceApplyMomentum(
            handle.handle,
            slot.handle,
            tf.cast(1.0, dtype),
            grad * tf.cast(rate, dtype),
            tf.cast(self._momentum_tensor, dtype),
            use_locking=False,
            use_nesterov=self._use_nesterov,
        )

    # Rows take the step of momentum alone.

    def _sparse_options(self, dtype: Any) -> dict[str, Any]:
        rate, momentum = (tf.cast(x, dtype) for x in (self._rate_tensor, self._momentum_tensor))
        flags = {"use_locking": self._use_locking, "use_nesterov": self._use_nesterov}
        return {"lr": rate, "momentum": momentum, **flags}

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        slot, options = self.get_slot(var, "momentum"), self._sparse_options(var.dtype.base_dtype)
        return F.SparseApplyMomentum(
            var._ref(), slot._ref(), grad=grad.values, indices=grad.indices, **options
        ).op

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        slot, options = self.get_slot(handle, "momentum"), self._sparse_options(grad.dtype)
        return F.ResourceSparseApplyMomentum(
            handle.handle, slot.handle, grad=grad, indices=indices, **options
        )
