"""Adagrad: ``accumulator += gradient²``, ``var -= learning_rate · gradient / √accumulator`` (Duchi et al.,
2011).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.variables.initializers import constant_initializer
from flowstone.training.optimizers.optimizer import Optimizer, hyperparameter

__all__ = ["AdagradOptimizer"]


class AdagradOptimizer(Optimizer):
    """Adagrad; its slot is "accumulator", which begins at `initial_accumulator_value` (positive, else
    ValueError).
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate, self._initial_accumulator_value = learning_rate, initial_accumulator_value
        self._learning_rate_tensor: Any = None

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            dtype, shape = var.dtype.base_dtype, var.get_shape()
            initializer: Any = constant_initializer(self._initial_accumulator_value, dtype=dtype)
            if not shape.is_fully_defined():
                initializer = self._fill_like(var, dtype)
            self._get_or_make_slot_with_initializer(var, initializer, shape, dtype, "accumulator", self._name)

    def _fill_like(self, var: Any, dtype: Any) -> Any:
        def fill() -> Tensor:
            value = convert_to_tensor(self._initial_accumulator_value, dtype)
            return F.Fill(F.Shape(var.initialized_value()), value)

        return fill

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._learning_rate_tensor = convert_to_tensor(rate, name="learning_rate")

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        slot = self.get_slot(var, "accumulator")
        rate = hyperparameter(self._learning_rate_tensor, var.dtype)
        return F.ApplyAdagrad(var._ref(), slot._ref(), rate, grad, use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        slot = self.get_slot(handle, "accumulator")
        rate = hyperparameter(self._learning_rate_tensor, grad.dtype)
        return F.ResourceApplyAdagrad(handle.handle, slot.handle, rate, grad, use_locking=self._use_locking)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        slot = self.get_slot(var, "accumulator")
        rate = hyperparameter(self._learning_rate_tensor, var.dtype)
        return F.SparseApplyAdagrad(
            var._ref(), slot._ref(), rate, grad.values, grad.indices, use_locking=self._use_locking
        ).op

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        slot = self.get_slot(handle, "accumulator")
        rate = hyperparameter(self._learning_rate_tensor, grad.dtype)
        return F.ResourceSparseApplyAdagrad(
            handle.handle, slot.handle, rate, grad, indices, use_locking=self._use_locking
        )
