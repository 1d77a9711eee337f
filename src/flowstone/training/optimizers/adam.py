"""Adam (Kingma and Ba, 2014), in the form with the bias corrections folded into the learning rate:

    lr_t = learning_rate · √(1 − beta2^t) / (1 − beta1^t)
    m = beta1 · m + (1 − beta1) · gradient
    v = beta2 · v + (1 − beta2) · gradient²
    var -= lr_t · m / (√v + epsilon)

The powers of the betas are two variables, ``beta1_power`` and ``beta2_power``, multiplied once a step after
all updates. A sparse gradient decays the whole of m and v and moves all of the variable, as a dense one
with zeros would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.declarations.building import place_of
from flowstone.framework.declarations.operation import F
from flowstone.framework.functions.init_scope import outermost_graph
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.control.control_flow import group
from flowstone.training.optimizers.optimizer import Optimizer, hyperparameter

__all__ = ["AdamOptimizer"]


class AdamOptimizer(Optimizer):
    """Adam; slots "m" and "v". Rates are numbers, scalar Tensors, or functions giving one."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-08,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon
        self._lr_t: Any = None
        self._beta1_t: Any = None
        self._beta2_t: Any = None
        self._epsilon_t: Any = None

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        graph = outermost_graph()
        return self._get_non_slot_variable("beta1_power", graph), self._get_non_slot_variable(
            "beta2_power", graph
        )

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        # Workers that build the graph on their own must agree on the place: that of the first by name.
        first = min(var_list, key=lambda variable: variable.name)
        beta1, beta2 = self._call_if_callable(self._beta1), self._call_if_callable(self._beta2)
        self._create_non_slot_variable(initial_value=beta1, name="beta1_power", colocate_with=first)
        self._create_non_slot_variable(initial_value=beta2, name="beta2_power", colocate_with=first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _prepare(self) -> None:
        self._lr_t = convert_to_tensor(self._call_if_callable(self._lr), name="learning_rate")
        self._beta1_t = convert_to_tensor(self._call_if_callable(self._beta1), name="beta1")
        self._beta2_t = convert_to_tensor(self._call_if_callable(self._beta2), name="beta2")
        self._epsilon_t = convert_to_tensor(self._call_if_callable(self._epsilon), name="epsilon")

    def _rates(self, dtype: Any) -> tuple[Any, ...]:
        """The scalar inputs of the fused update: both powers, learning rate, betas and epsilon."""
        scalars = (*self._get_beta_accumulators(), self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        return tuple(hyperparameter(scalar, dtype) for scalar in scalars)

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        rates = self._rates(var.dtype)
        return F.ApplyAdam(var._ref(), m._ref(), v._ref(), *rates, grad, use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        m, v = self.get_slot(handle, "m"), self.get_slot(handle, "v")
        rates = self._rates(grad.dtype)
        return F.ResourceApplyAdam(
            handle.handle, m.handle, v.handle, *rates, grad, use_locking=self._use_locking
        )

    def _apply_sparse_shared(
        self, grad: Tensor, var: Any, indices: Tensor, scatter_add: Callable[..., Any]
    ) -> Any:
        graph = place_of(var)
        beta1_power, beta2_power, rate, beta1, beta2, epsilon = self._rates(var.dtype)
        rate = rate * F.Sqrt(1 - beta2_power) / (1 - beta1_power)
        m = self.get_slot(var, "m")
        new_gradients = grad * (1 - beta1)
        decayed = m.assign(m * beta1, use_locking=self._use_locking)
        with graph.control_dependencies([decayed.op]):
            m_t = scatter_add(m, indices, new_gradients)
        v = self.get_slot(var, "v")
        new_squares = (grad * grad) * (1 - beta2)
        decayed = v.assign(v * beta2, use_locking=self._use_locking)
        with graph.control_dependencies([decayed.op]):
            v_t = scatter_add(v, indices, new_squares)
        root = F.Sqrt(v_t)
        update = var.assign_sub(rate * m_t / (root + epsilon), use_locking=self._use_locking)
        return group(update.op, m_t, v_t)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        def scatter_add(slot: Any, indices: Tensor, values: Tensor) -> Tensor:
            return F.ScatterAdd(slot._ref(), indices, values, use_locking=self._use_locking)

        return self._apply_sparse_shared(grad.values, var, grad.indices, scatter_add)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        def scatter_add(slot: Any, indices: Tensor, values: Tensor) -> Tensor:
            with place_of(slot).control_dependencies([F.ResourceScatterAdd(slot.handle, indices, values)]):
                value: Tensor = slot.value()
                return value

        return self._apply_sparse_shared(grad, handle, indices, scatter_add)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        beta1_power, beta2_power = self._get_beta_accumulators()
        graph = place_of(beta1_power)
        with graph.control_dependencies(update_ops), graph.colocate_with(beta1_power.op):
            powers = [
                beta1_power.assign(beta1_power * self._beta1_t, use_locking=self._use_locking),
                beta2_power.assign(beta2_power * self._beta2_t, use_locking=self._use_locking),
            ]
        return group(*update_ops, *[power.op for power in powers], name=name_scope)
