"""Adadelta (Zeiler, 2012): steps in proportion to running averages of squared updates and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.training.optimizers.optimizer import Optimizer, hyperparameter

__all__ = ["AdadeltaOptimizer"]


class AdadeltaOptimizer(Optimizer):
    """Adadelta; slots "accum" (of squared gradients) and "accum_update". `rho` is the averages' decay."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-08,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._rho, self._epsilon = learning_rate, rho, epsilon
        self._lr_t: Any = None
        self._rho_t: Any = None
        self._epsilon_t: Any = None

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "accum", self._name)
            self._zeros_slot(var, "accum_update", self._name)

    def _prepare(self) -> None:
        self._lr_t = convert_to_tensor(self._call_if_callable(self._lr), name="lr")
        self._rho_t = convert_to_tensor(self._call_if_callable(self._rho), name="rho")
        self._epsilon_t = convert_to_tensor(self._call_if_callable(self._epsilon), name="epsilon")

    def _slots_of(self, var: Any) -> tuple[Any, Any]:
        return self.get_slot(var, "accum"), self.get_slot(var, "accum_update")

    def _rates(self, dtype: Any) -> tuple[Any, ...]:
        return tuple(hyperparameter(t, dtype) for t in (self._lr_t, self._rho_t, self._epsilon_t))

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        accum, update = self._slots_of(var)
        rates = self._rates(var.dtype)
        return F.ApplyAdadelta(
            var._ref(), accum._ref(), update._ref(), *rates, grad, use_locking=self._use_locking
        ).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        accum, update = self._slots_of(handle)
        rates = self._rates(grad.dtype)
        return F.ResourceApplyAdadelta(
            handle.handle, accum.handle, update.handle, *rates, grad, use_locking=self._use_locking
        )

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        accum, update = self._slots_of(var)
        rates = self._rates(var.dtype)
        return F.SparseApplyAdadelta(
            var._ref(), accum._ref(), update._ref(), *rates, grad.values, grad.indices,
            use_locking=self._use_locking,
        ).op  # fmt: skip

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        accum, update = self._slots_of(handle)
        rates = self._rates(grad.dtype)
        return F.ResourceSparseApplyAdadelta(
            handle.handle, accum.handle, update.handle, *rates, grad, indices, use_locking=self._use_locking
        )
