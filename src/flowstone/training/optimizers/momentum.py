"""Momentum: ``accumulator = momentum · accumulator + gradient``, ``var -= learning_rate · accumulator``.

With `use_nesterov` the step is ``learning_rate · (gradient + momentum · accumulator)`` (Sutskever et al.,
2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.training.optimizers.optimizer import Optimizer, hyperparameter

__all__ = ["MomentumOptimizer"]


class MomentumOptimizer(Optimizer):
    """Momentum; its slot is "momentum". Rates are numbers, scalar Tensors, or functions giving one."""

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._momentum, self._use_nesterov = learning_rate, momentum, use_nesterov
        self._learning_rate_tensor: Any = None
        self._momentum_tensor: Any = None

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "momentum", self._name)

    def _prepare(self) -> None:
        rate, momentum = self._call_if_callable(self._learning_rate), self._call_if_callable(self._momentum)
        self._learning_rate_tensor = convert_to_tensor(rate, name="learning_rate")
        self._momentum_tensor = convert_to_tensor(momentum, name="momentum")

    def _rates(self, dtype: Any) -> tuple[Tensor, Tensor]:
        return hyperparameter(self._learning_rate_tensor, dtype), hyperparameter(self._momentum_tensor, dtype)

    def _options(self) -> dict[str, Any]:
        return {"use_locking": self._use_locking, "use_nesterov": self._use_nesterov}

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        slot = self.get_slot(var, "momentum")
        rate, momentum = self._rates(var.dtype)
        return F.ApplyMomentum(var._ref(), slot._ref(), rate, grad, momentum, **self._options()).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        slot = self.get_slot(handle, "momentum")
        rate, momentum = self._rates(grad.dtype)
        return F.ResourceApplyMomentum(handle.handle, slot.handle, rate, grad, momentum, **self._options())

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        slot = self.get_slot(var, "momentum")
        rate, momentum = self._rates(var.dtype)
        return F.SparseApplyMomentum(
            var._ref(), slot._ref(), rate, grad.values, grad.indices, momentum, **self._options()
        ).op

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        slot = self.get_slot(handle, "momentum")
        rate, momentum = self._rates(grad.dtype)
        return F.ResourceSparseApplyMomentum(
            handle.handle, slot.handle, rate, grad, indices, momentum, **self._options()
        )
