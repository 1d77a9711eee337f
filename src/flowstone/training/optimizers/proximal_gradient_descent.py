"""Proximal gradient descent (Duchi and Singer, 2009): a gradient step, then soft thresholding."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.training.optimizers.optimizer import Optimizer, hyperparameter

__all__ = ["ProximalGradientDescentOptimizer"]


class ProximalGradientDescentOptimizer(Optimizer):
    """Proximal gradient descent; no slots. `learning_rate` and strengths: numbers or scalar Tensors."""

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength
        self._tensors: tuple[Any, ...] = ()

    def _prepare(self) -> None:
        self._tensors = (
            convert_to_tensor(self._learning_rate, name="learning_rate"),
            convert_to_tensor(self._l1, name="l1_regularization_strength"),
            convert_to_tensor(self._l2, name="l2_regularization_strength"),
        )

    def _rates(self, dtype: Any) -> list[Any]:
        return [hyperparameter(tensor, dtype) for tensor in self._tensors]

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        rates = self._rates(var.dtype)
        return F.ApplyProximalGradientDescent(var._ref(), *rates, grad, use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        rates = self._rates(grad.dtype)
        return F.ResourceApplyProximalGradientDescent(
            handle.handle, *rates, grad, use_locking=self._use_locking
        )

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        rates = self._rates(var.dtype)
        return F.SparseApplyProximalGradientDescent(
            var._ref(), *rates, grad.values, grad.indices, use_locking=self._use_locking
        ).op

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        rates = self._rates(grad.dtype)
        return F.ResourceSparseApplyProximalGradientDescent(
            handle.handle, *rates, grad, indices, use_locking=self._use_locking
        )
