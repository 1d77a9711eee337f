"""Proximal Adagrad (Duchi and Singer, 2009; Duchi et al., 2011): an Adagrad step, then soft thresholding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.constants import constant
from flowstone.training.optimizers.optimizer import Optimizer, hyperparameter

__all__ = ["ProximalAdagradOptimizer"]


class ProximalAdagradOptimizer(Optimizer):
    """Proximal Adagrad; its slot is "accumulator", from `initial_accumulator_value` (positive, else
    ValueError).
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate, self._initial_accumulator_value = learning_rate, initial_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength
        self._tensors: tuple[Any, ...] = ()

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            with get_default_graph().colocate_with(var.op):
                value = constant(
                    self._initial_accumulator_value, dtype=var.dtype.base_dtype, shape=var.get_shape()
                )
            self._get_or_make_slot(var, value, "accumulator", self._name)

    def _prepare(self) -> None:
        self._tensors = (
            convert_to_tensor(self._learning_rate, name="learning_rate"),
            convert_to_tensor(self._l1, name="l1_regularization_strength"),
            convert_to_tensor(self._l2, name="l2_regularization_strength"),
        )

    def _rates(self, dtype: Any) -> list[Any]:
        return [hyperparameter(tensor, dtype) for tensor in self._tensors]

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        slot = self.get_slot(var, "accumulator")
        rates = self._rates(var.dtype)
        return F.ApplyProximalAdagrad(var._ref(), slot._ref(), *rates, grad, use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        slot = self.get_slot(handle, "accumulator")
        rates = self._rates(grad.dtype)
        return F.ResourceApplyProximalAdagrad(
            handle.handle, slot.handle, *rates, grad, use_locking=self._use_locking
        )

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        slot = self.get_slot(var, "accumulator")
        rates = self._rates(var.dtype)
        return F.SparseApplyProximalAdagrad(
            var._ref(), slot._ref(), *rates, grad.values, grad.indices, use_locking=self._use_locking
        ).op

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        slot = self.get_slot(handle, "accumulator")
        rates = self._rates(grad.dtype)
        return F.ResourceSparseApplyProximalAdagrad(
            handle.handle, slot.handle, *rates, grad, indices, use_locking=self._use_locking
        )
