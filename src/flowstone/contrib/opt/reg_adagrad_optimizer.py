"""Adagrad whose accumulators can be left alone while a regulariser's gradient is applied."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.training.optimizers.adagrad import AdagradOptimizer

__all__ = ["RegAdagradOptimizer"]


class RegAdagradOptimizer(AdagradOptimizer):
    """`tf.train.AdagradOptimizer`; within `avoid_updating_slots()` its accumulators stay as they are."""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "RegAdagrad",
    ) -> None:
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._should_update_slots = True

    @contextlib.contextmanager
    def avoid_updating_slots(self) -> Iterator[None]:
        """A context in which updates that are built do not change the accumulators."""
        self._should_update_slots = False
        try:
            yield
        finally:
            self._should_update_slots = True

    def _rate(self, dtype: Any) -> Any:
        return tf.cast(self._learning_rate_tensor, dtype.base_dtype)

    def _keywords(self) -> dict[str, Any]:
        return {"use_locking": self._use_locking, "update_slots": self._should_update_slots}

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        slot = self.get_slot(var, "accumulator")
        return F.ApplyAdagrad(var._ref(), slot._ref(), self._rate(var.dtype), grad, **self._keywords()).op

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        slot = self.get_slot(handle, "accumulator")
        rate = self._rate(grad.dtype)
        return F.ResourceApplyAdagrad(handle.handle, slot.handle, rate, grad, **self._keywords())

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        slot = self.get_slot(var, "accumulator")
        return F.SparseApplyAdagrad(
            var._ref(), slot._ref(), self._rate(var.dtype), grad.values, grad.indices, **self._keywords()
        ).op

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        slot = self.get_slot(handle, "accumulator")
        rate = self._rate(grad.dtype)
        return F.ResourceSparseApplyAdagrad(
            handle.handle, slot.handle, rate, grad, indices, **self._keywords()
        )
