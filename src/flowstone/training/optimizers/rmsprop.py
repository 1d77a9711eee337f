"""RMSProp (Tieleman and Hinton, 2012): divides the gradient by a running average of its magnitude.

    rms = decay · rms + (1 − decay) · gradient²
    momentum = momentum · momentum_slot + learning_rate · gradient / √(rms + epsilon)
    var -= momentum

`centered` subtracts the square of the gradient's running mean from rms, an estimate of the variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.variables.initializers import ones_initializer
from flowstone.training.optimizers.optimizer import Optimizer, hyperparameter

__all__ = ["RMSPropOptimizer"]


class RMSPropOptimizer(Optimizer):
    """RMSProp; slots "rms" (from ones), "momentum" and, when centered, "mg"."""

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._decay, self._momentum = learning_rate, decay, momentum
        self._epsilon, self._centered = epsilon, centered
        self._tensors: tuple[Any, ...] = ()

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            dtype = var.dtype.base_dtype
            ones = ones_initializer(dtype=dtype)
            self._get_or_make_slot_with_initializer(var, ones, var.get_shape(), dtype, "rms", self._name)
            if self._centered:
                self._zeros_slot(var, "mg", self._name)
            self._zeros_slot(var, "momentum", self._name)

    def _prepare(self) -> None:
        rates = {
            "learning_rate": self._learning_rate,
            "decay": self._decay,
            "momentum": self._momentum,
            "epsilon": self._epsilon,
        }
        self._tensors = tuple(
            convert_to_tensor(self._call_if_callable(value), name=name) for name, value in rates.items()
        )

    def _slots_of(self, var: Any) -> list[Any]:
        """The variable and its slots, in the order of the update's inputs."""
        names = ["mg", "rms", "momentum"] if self._centered else ["rms", "momentum"]
        return [var, *[self.get_slot(var, name) for name in names]]

    def _rates(self, dtype: Any) -> tuple[Any, ...]:
        return tuple(hyperparameter(tensor, dtype) for tensor in self._tensors)

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        update = F.ApplyCenteredRMSProp if self._centered else F.ApplyRMSProp
        buffers = [variable._ref() for variable in self._slots_of(var)]
        return update(*buffers, *self._rates(var.dtype), grad, use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        update = F.ResourceApplyCenteredRMSProp if self._centered else F.ResourceApplyRMSProp
        handles = [variable.handle for variable in self._slots_of(handle)]
        return update(*handles, *self._rates(grad.dtype), grad, use_locking=self._use_locking)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        update = F.SparseApplyCenteredRMSProp if self._centered else F.SparseApplyRMSProp
        buffers = [variable._ref() for variable in self._slots_of(var)]
        rates = self._rates(var.dtype)
        return update(*buffers, *rates, grad.values, grad.indices, use_locking=self._use_locking).op

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        update = F.ResourceSparseApplyCenteredRMSProp if self._centered else F.ResourceSparseApplyRMSProp
        handles = [variable.handle for variable in self._slots_of(handle)]
        return update(*handles, *self._rates(grad.dtype), grad, indices, use_locking=self._use_locking)
