"""Gradient descent: ``var -= learning_rate · gradient``."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.training.optimizers.optimizer import Optimizer, hyperparameter

__all__ = ["GradientDescentOptimizer"]


class GradientDescentOptimizer(Optimizer):
    """Gradient descent. `learning_rate`: a number, a scalar Tensor, or a function giving one."""

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._learning_rate_tensor: Any = None

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._learning_rate_tensor = convert_to_tensor(rate, name="learning_rate")

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        rate = hyperparameter(self._learning_rate_tensor, var.dtype)
        return F.ApplyGradientDescent(var._ref(), rate, grad, use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        rate = hyperparameter(self._learning_rate_tensor, grad.dtype)
        return F.ResourceApplyGradientDescent(handle.handle, rate, grad, use_locking=self._use_locking)

    # Addition takes duplicate indices as they come.

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        delta = F.Mul(grad.values, hyperparameter(self._learning_rate_tensor, var.dtype), name="mul")
        return F.ScatterSub(var._ref(), grad.indices, delta, use_locking=self._use_locking).op

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        delta = F.Mul(F.Neg(grad), hyperparameter(self._learning_rate_tensor, grad.dtype), name="mul")
        return F.ResourceScatterAdd(handle.handle, indices, delta)
