"""Variants of Adam (Kingma and Ba 2014, arXiv 1412.6980): lazy for rows, with Nesterov momentum, AdaMax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.framework.functions.init_scope import outermost_graph
from flowstone.training.optimizers.adam import AdamOptimizer

__all__ = ["AdaMaxOptimizer", "LazyAdamOptimizer", "NadamOptimizer"]

_Scatter = Callable[[Any, Any, Any], Any]


def _on_references(name: str) -> _Scatter:
    """A scatter of reference variables that returns the variable's value."""

    def scatter(var: Any, indices: Any, values: Any) -> Any:
        return getattr(F, name)(var._ref(), indices, values)

    return scatter


def _on_resources(name: str) -> _Scatter:
    """A scatter of resource variables that returns the variable's value after it."""

    def scatter(var: Any, indices: Any, values: Any) -> Any:
        with tf.control_dependencies([getattr(F, name)(var.handle, indices, values)]):
            return var.value()

    return scatter


class _RowOptimizer(AdamOptimizer):
    """An Adam whose rule for rows is `_apply_rows`."""

    def _apply_rows(self, grad: Any, var: Any, indices: Any, scatters: dict[str, _Scatter]) -> Any:
        raise NotImplementedError

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        names = {"add": "ScatterAdd", "sub": "ScatterSub", "update": "ScatterUpdate"}
        scatters = {key: _on_references(name) for key, name in names.items()}
        return self._apply_rows(grad.values, var, grad.indices, scatters)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        names = {"add": "ResourceScatterAdd", "sub": "ResourceScatterSub", "update": "ResourceScatterUpdate"}
        scatters = {key: _on_resources(name) for key, name in names.items()}
        return self._apply_rows(grad, handle, indices, scatters)


class LazyAdamOptimizer(_RowOptimizer):
    """Adam that updates the moments of the rows that occur in a sparse gradient, and of no others.

    That is faster for large embeddings, and not Adam's rule: rows that do not occur do not move. The
    arguments are those of `tf.train.AdamOptimizer`.
    """

    def _apply_rows(self, grad: Any, var: Any, indices: Any, scatters: dict[str, _Scatter]) -> Any:
        beta1_power, beta2_power, rate, beta1, beta2, epsilon = self._rates(var.dtype.base_dtype)
        rate = rate * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m = beta1 * tf.gather(m, indices) + (1 - beta1) * grad
        new_v = beta2 * tf.gather(v, indices) + (1 - beta2) * tf.square(grad)
        m_update, v_update = scatters["update"](m, indices, new_m), scatters["update"](v, indices, new_v)
        var_update = scatters["sub"](var, indices, rate * new_m / (tf.sqrt(new_v) + epsilon))
        return tf.group(var_update, m_update, v_update)


class NadamOptimizer(_RowOptimizer):
    """Adam with Nesterov momentum (Dozat 2015). The arguments are those of `tf.train.AdamOptimizer`."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        rates = self._rates(var.dtype.base_dtype)
        update = F.ApplyAdam(
            var._ref(), m._ref(), v._ref(), *rates, grad, use_locking=self._use_locking, use_nesterov=True
        )
        return update.op

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        m, v = self.get_slot(handle, "m"), self.get_slot(handle, "v")
        rates = self._rates(grad.dtype.base_dtype)
        return F.ResourceApplyAdam(
            handle.handle, m.handle, v.handle, *rates, grad, use_locking=self._use_locking, use_nesterov=True
        )

    def _apply_rows(self, grad: Any, var: Any, indices: Any, scatters: dict[str, _Scatter]) -> Any:
        beta1_power, beta2_power, rate, beta1, beta2, epsilon = self._rates(var.dtype.base_dtype)
        rate = rate * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_gradients = grad * (1 - beta1)
        with tf.control_dependencies([m.assign(m * beta1, use_locking=self._use_locking)]):
            m_t = scatters["add"](m, indices, new_gradients)
            look_ahead = new_gradients + beta1 * tf.gather(m_t, indices)
        with tf.control_dependencies([v.assign(v * beta2, use_locking=self._use_locking)]):
            v_t = scatters["add"](v, indices, grad * grad * (1 - beta2))
        roots = tf.sqrt(tf.gather(v_t, indices)) + epsilon
        var_update = scatters["sub"](var, indices, rate * look_ahead / roots)
        return tf.group(var_update, look_ahead, v_t)


class AdaMaxOptimizer(_RowOptimizer):
    """Adam by the greatest gradient in place of the squares' mean (the same paper, section 7.1).

    The arguments are those of `tf.train.AdamOptimizer`. Of a sparse gradient only the rows that occur move.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _get_beta_accumulators(self) -> Any:
        return self._get_non_slot_variable("beta1_power", outermost_graph())

    def _create_slots(self, var_list: Any) -> None:
        first = min(var_list, key=lambda variable: variable.name)
        beta1 = self._call_if_callable(self._beta1)
        self._create_non_slot_variable(initial_value=beta1, name="beta1_power", colocate_with=first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _rates(self, dtype: Any) -> tuple[Any, ...]:
        scalars = (self._get_beta_accumulators(), self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        return tuple(tf.cast(scalar, dtype.base_dtype) for scalar in scalars)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        rates = self._rates(var.dtype)
        return F.ApplyAdaMax(var._ref(), m._ref(), v._ref(), *rates, grad, use_locking=self._use_locking).op

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        m, v = self.get_slot(handle, "m"), self.get_slot(handle, "v")
        rates = self._rates(grad.dtype)
        return F.ResourceApplyAdaMax(
            handle.handle, m.handle, v.handle, *rates, grad, use_locking=self._use_locking
        )

    def _apply_rows(self, grad: Any, var: Any, indices: Any, scatters: dict[str, _Scatter]) -> Any:
        beta1_power, rate, beta1, beta2, epsilon = self._rates(var.dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m = beta1 * tf.gather(m, indices) + (1 - beta1) * grad
        new_v = tf.maximum(beta2 * tf.gather(v, indices), tf.abs(grad))
        m_update, v_update = scatters["update"](m, indices, new_m), scatters["update"](v, indices, new_v)
        step = -rate / (1 - beta1_power) * (new_m / (new_v + epsilon))
        return tf.group(scatters["add"](var, indices, step), m_update, v_update)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        with tf.control_dependencies(update_ops):
            power = self._get_beta_accumulators()
            with tf.colocate_with(power):
                update = power.assign(power * self._beta1_t, use_locking=self._use_locking)
        return tf.group(*update_ops, update, name=name_scope)
