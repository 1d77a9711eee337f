"""Follow the regularised leader, proximal (McMahan et al., 2013), with optional l2 shrinkage (online l2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.constants import constant
from flowstone.training.optimizers.optimizer import Optimizer, hyperparameter

__all__ = ["FtrlOptimizer"]


class FtrlOptimizer(Optimizer):
    """Ftrl; slots "accum" and "linear".

    `accum_name`, `linear_name`: names of the slots' variables in place of the optimiser's. `beta`: as in
    the paper. ValueError for negative strengths or initial accumulator, and for a positive
    `learning_rate_power`.
    """

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: Any = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: Any = 0.0,
        beta: Any = None,
    ) -> None:
        super().__init__(use_locking, name)
        for what, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0.0:
                raise ValueError(f"{what} {value:f} needs to be positive or zero")
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power {learning_rate_power:f} needs to be negative or zero")
        self._learning_rate, self._learning_rate_power = learning_rate, learning_rate_power
        self._initial_accumulator_value = initial_accumulator_value
        self._l1, self._l2, self._shrinkage = (
            l1_regularization_strength,
            l2_regularization_strength,
            l2_shrinkage_regularization_strength,
        )
        self._beta = beta
        self._accum_name, self._linear_name = accum_name, linear_name
        self._tensors: dict[str, Any] = {}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            start = constant(self._initial_accumulator_value, var.dtype.base_dtype, var.shape)
            self._get_or_make_slot(var, start, "accum", self._accum_name or self._name)
            self._zeros_slot(var, "linear", self._linear_name or self._name)

    def _prepare(self) -> None:
        tensors = {
            "learning_rate": convert_to_tensor(self._learning_rate, name="learning_rate"),
            "l1": convert_to_tensor(self._l1, name="l1_regularization_strength"),
        }
        if self._beta is None:
            tensors["l2"] = convert_to_tensor(self._l2, name="l2_regularization_strength")
        else:  # it acts as l2 regularisation that is relative to the learning rate
            safe_rate = F.Maximum(self._learning_rate, 1e-36)
            tensors["l2"] = self._l2 + self._beta / (2.0 * safe_rate)
        tensors["shrinkage"] = convert_to_tensor(self._shrinkage, name="l2_shrinkage_regularization_strength")
        tensors["power"] = convert_to_tensor(self._learning_rate_power, name="learning_rate_power")
        self._tensors = tensors

    def _rates(self, dtype: Any) -> list[Any]:
        names = ["learning_rate", "l1", "l2", "power"]
        if self._shrinkage > 0.0:
            names.insert(3, "shrinkage")
        return [hyperparameter(self._tensors[name], dtype) for name in names]

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        accum, linear = self.get_slot(var, "accum"), self.get_slot(var, "linear")
        update = F.ApplyFtrlV2 if self._shrinkage > 0.0 else F.ApplyFtrl
        rates = self._rates(var.dtype)
        return update(var._ref(), accum._ref(), linear._ref(), grad, *rates, use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        accum, linear = self.get_slot(handle, "accum"), self.get_slot(handle, "linear")
        update = F.ResourceApplyFtrlV2 if self._shrinkage > 0.0 else F.ResourceApplyFtrl
        rates = self._rates(grad.dtype)
        return update(handle.handle, accum.handle, linear.handle, grad, *rates, use_locking=self._use_locking)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        accum, linear = self.get_slot(var, "accum"), self.get_slot(var, "linear")
        update = F.SparseApplyFtrlV2 if self._shrinkage > 0.0 else F.SparseApplyFtrl
        rates = self._rates(var.dtype)
        return update(
            var._ref(), accum._ref(), linear._ref(), grad.values, grad.indices, *rates,
            use_locking=self._use_locking,
        ).op  # fmt: skip

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        accum, linear = self.get_slot(handle, "accum"), self.get_slot(handle, "linear")
        update = F.ResourceSparseApplyFtrlV2 if self._shrinkage > 0.0 else F.ResourceSparseApplyFtrl
        rates = self._rates(grad.dtype)
        return update(
            handle.handle, accum.handle, linear.handle, grad, indices, *rates, use_locking=self._use_locking
        )
