"""Adagrad with dual averaging (Duchi et al., 2011): regularises also the weights of features that a batch
lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.identities import identity
from flowstone.ops.numbers.casts import cast
from flowstone.training.optimizers.optimizer import Optimizer, hyperparameter

__all__ = ["AdagradDAOptimizer"]


class AdagradDAOptimizer(Optimizer):
    """Adagrad dual averaging; slots "gradient_accumulator" and "gradient_squared_accumulator".

    `global_step`: the variable that counts steps; the update reads it. ValueError unless
    `initial_gradient_squared_accumulator_value` is positive.
    """

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError(
                "initial_gradient_squared_accumulator_value must be positive: "
                f"{initial_gradient_squared_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate, self._global_step = learning_rate, global_step
        self._initial_value = initial_gradient_squared_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength
        self._learning_rate_tensor: Any = None
        self._global_step_on_worker: Any = None

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        graph = get_default_graph()
        for var in var_list:
            dtype, shape = var.dtype.base_dtype, var.get_shape()
            with graph.colocate_with(var.op):
                zeros = constant(0.0, dtype=dtype, shape=shape)
                squares = constant(self._initial_value, dtype=dtype, shape=shape)
            self._get_or_make_slot(var, zeros, "gradient_accumulator", self._name)
            self._get_or_make_slot(var, squares, "gradient_squared_accumulator", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = convert_to_tensor(self._learning_rate, name="learning_rate")
        # The step as it is before this update, plus one: counting starts at 1.
        with get_default_graph().colocate_with(self._learning_rate_tensor):
            self._global_step_on_worker = identity(self._global_step) + 1

    def _slots_of(self, var: Any) -> tuple[Any, Any]:
        return self.get_slot(var, "gradient_accumulator"), self.get_slot(var, "gradient_squared_accumulator")

    def _rates(self, dtype: Any) -> tuple[Any, ...]:
        """Learning rate, l1, l2 and step, in the order of the update's inputs."""
        step = identity(self._global_step_on_worker)
        base = dtype.base_dtype
        return (
            hyperparameter(self._learning_rate_tensor, base),
            cast(self._l1, base),
            cast(self._l2, base),
            step,
        )

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        sums, squares = self._slots_of(var)
        rates = self._rates(var.dtype)
        return F.ApplyAdagradDA(
            var._ref(), sums._ref(), squares._ref(), grad, *rates, use_locking=self._use_locking
        ).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        sums, squares = self._slots_of(handle)
        rates = self._rates(grad.dtype)
        return F.ResourceApplyAdagradDA(
            handle.handle, sums.handle, squares.handle, grad, *rates, use_locking=self._use_locking
        )

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        sums, squares = self._slots_of(var)
        rates = self._rates(var.dtype)
        return F.SparseApplyAdagradDA(
            var._ref(), sums._ref(), squares._ref(), grad.values, grad.indices, *rates,
            use_locking=self._use_locking,
        ).op  # fmt: skip

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        sums, squares = self._slots_of(handle)
        rates = self._rates(grad.dtype)
        return F.ResourceSparseApplyAdagradDA(
            handle.handle, sums.handle, squares.handle, grad, indices, *rates, use_locking=self._use_locking
        )
