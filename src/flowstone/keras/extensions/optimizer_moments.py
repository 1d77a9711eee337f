"""Optimisers of `tf.keras.optimizers` by two moments of the gradients: Adam, Adamax and Nadam.

Sources: Kingma and Ba (2014), Dozat (2015). Each takes the numbers that TensorFlow 1.15's takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.keras.extensions.optimizer_kinds import Configured

__all__ = ["Adam", "Adamax", "Nadam"]


class _Moments(Configured):
    """What the optimisers by two moments have: the slots `m` and `v`, and `beta_1` and `beta_2`."""

    _HYPERS: tuple[str, ...] = ("learning_rate", "beta_1", "beta_2")
    _PLAIN: tuple[str, ...] = ("epsilon",)

    def __init__(
        self, name: str, learning_rate: Any, beta_1: Any, beta_2: Any, epsilon: Any, kwargs: dict[str, Any]
    ) -> None:
        super().__init__(name, **kwargs)
        self._start(learning_rate, kwargs, beta_1=beta_1, beta_2=beta_2)
        self.epsilon = tf.keras.backend.epsilon() if epsilon is None else epsilon

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for name in ("m", "v"):
            for var in var_list:
                self.add_slot(var, name)

    def _moved(self, slot: Any, beta: Any, values: Any, indices: Any) -> Any:
        """The slot after it moved: beta · slot, with (1 - beta) · values in the rows `indices`."""
        with tf.control_dependencies([slot.assign(slot * beta)]):
            return self._resource_scatter_add(slot, indices, values * (1.0 - beta))


class Adam(_Moments):
    """Steps by the moving means of gradients and of their squares; `amsgrad`: by the largest of these."""

    _PLAIN = ("epsilon", "amsgrad")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float | None = 1e-7,
        amsgrad: bool = False,
        name: str = "Adam",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, beta_1, beta_2, epsilon, kwargs)
        self.amsgrad = amsgrad

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        super()._create_slots(var_list)
        for var in var_list if self.amsgrad else ():
            self.add_slot(var, "vhat")

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Gives `weights` these values; also those of Keras 2, one more a parameter."""
        count = int((len(self.weights) - 1) / 2)
        if len(weights) == 3 * count + 1 and not self.amsgrad:
            weights = weights[: len(self.weights)]
        super().set_weights(weights)

    def _prepare_local(self, var_device: str, var_dtype: Any, apply_state: dict[Any, Any]) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        shared = apply_state[var_device, var_dtype]
        step = tf.cast(self.iterations + 1, var_dtype)
        for name in ("beta_1", "beta_2"):
            shared[f"{name}_power"] = tf.pow(shared[f"{name}_t"], step)
        rest_1, rest_2 = 1 - shared["beta_1_power"], 1 - shared["beta_2_power"]
        shared["lr"] = shared["lr_t"] * (tf.sqrt(rest_2) / rest_1)

    def _powers(self, var: Any) -> tuple[Any, Any, Any, Any]:
        beta_1, beta_2, step = self._number("beta_1", var), self._number("beta_2", var), self._step(var)
        return beta_1, beta_2, tf.pow(beta_1, step), tf.pow(beta_2, step)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        beta_1, beta_2, power_1, power_2 = self._powers(var)
        options = {
            "var": var.handle, "m": self.get_slot(var, "m").handle, "v": self.get_slot(var, "v").handle,
            "beta1_power": power_1, "beta2_power": power_2, "lr": self._rate(var), "beta1": beta_1,
            "beta2": beta_2, "epsilon": self.epsilon, "grad": grad,
        }  # fmt: skip
        if self.amsgrad:
            vhat = self.get_slot(var, "vhat").handle
            return tf.raw_ops.ResourceApplyAdamWithAmsgrad(vhat=vhat, **options)
        return tf.raw_ops.ResourceApplyAdam(**options)

    def _apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        beta_1, beta_2, power_1, power_2 = self._powers(var)
        rate = self._rate(var) * (tf.sqrt(1.0 - power_2) / (1.0 - power_1))
        m = self._moved(self.get_slot(var, "m"), beta_1, grad, indices)
        v = self._moved(self.get_slot(var, "v"), beta_2, grad * grad, indices)
        if self.amsgrad:
            vhat = self.get_slot(var, "vhat")
            v = vhat.assign(tf.maximum(vhat, v))
        return var.assign_sub(rate * m / (tf.sqrt(v) + self.epsilon))


class Adamax(_Moments):
    """Adam by the largest of the gradients instead of the mean of their squares."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float | None = 1e-7,
        name: str = "Adamax",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, learning_rate, beta_1, beta_2, epsilon, kwargs)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        beta_1 = self._number("beta_1", var)
        return tf.raw_ops.ResourceApplyAdaMax(
            var=var.handle, m=self.get_slot(var, "m").handle, v=self.get_slot(var, "v").handle,
            beta1_power=tf.pow(beta_1, self._step(var)), lr=self._rate(var), beta1=beta_1,
            beta2=self._number("beta_2", var), epsilon=self.epsilon, grad=grad,
        )  # fmt: skip

    def _apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        beta_1, beta_2 = self._number("beta_1", var), self._number("beta_2", var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = tf.gather(m, indices) * beta_1 + grad * (1.0 - beta_1)
        v_rows = tf.maximum(tf.gather(v, indices) * beta_2, tf.abs(grad))
        moved = [tf.scatter_update(m, indices, m_rows), tf.scatter_update(v, indices, v_rows)]
        rate = -self._rate(var) / (1.0 - tf.pow(beta_1, self._step(var)))
        with tf.control_dependencies(moved):
            return self._resource_scatter_add(var, indices, rate * (m_rows / (v_rows + self.epsilon))).op


class Nadam(_Moments):
    """Adam with Nesterov's momentum, whose weight follows a schedule."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float | None = 1e-7,
        name: str = "Nadam",
        **kwargs: Any,
    ) -> None:
        kwargs["decay"] = kwargs.pop("schedule_decay", kwargs.get("decay", 0.004))
        super().__init__(name, learning_rate, beta_1, beta_2, epsilon, kwargs)
        self._m_cache: Any = None
        self._shared: dict[Any, tuple[Any, ...]] = {}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        if self._m_cache is None:
            kind = var_list[0].dtype.base_dtype
            self._m_cache = self.add_weight("momentum_cache", [], kind, 1.0, trainable=False)
            self._weights.append(self._m_cache)
        super()._create_slots(var_list)

    def _prepare(self, var_list: Sequence[Any]) -> dict[Any, Any]:
        """The weights of the momentum now and in the next step, and the products of all of them."""
        self._shared = {}
        first = var_list[0]
        step, beta_1, decay = self._step(first), self._number("beta_1", first), self._initial_decay
        base = tf.constant(0.96, first.dtype.base_dtype)
        now = beta_1 * (1.0 - 0.5 * tf.pow(base, decay * step))
        following = beta_1 * (1.0 - 0.5 * tf.pow(base, decay * (step + 1)))
        product = tf.identity(self._m_cache) * now
        with tf.control_dependencies([product]):
            cached = self._m_cache.assign(product)
        with tf.control_dependencies([cached]):
            product = tf.identity(product)
        self._shared["all"] = (now, following, product, product * following)
        return super()._prepare(var_list)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        beta_1, beta_2 = self._number("beta_1", var), self._number("beta_2", var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_t = m.assign(beta_1 * m + (1.0 - beta_1) * grad)
        v_t = v.assign(beta_2 * v + (1.0 - beta_2) * tf.square(grad))
        return var.assign(var - self._change(grad, var, m_t, v_t))

    def _apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        m = self._moved(self.get_slot(var, "m"), self._number("beta_1", var), grad, indices)
        v = self._moved(self.get_slot(var, "v"), self._number("beta_2", var), grad * grad, indices)
        change = self._change(grad, var, tf.gather(m, indices), tf.gather(v, indices))
        return self._resource_scatter_add(var, indices, -change).op

    def _change(self, grad: Any, var: Any, m: Any, v: Any) -> Any:
        kind = var.dtype.base_dtype
        now, following, product, next_product = (tf.cast(x, kind) for x in self._shared["all"])
        rest = 1.0 - tf.pow(self._number("beta_2", var), self._step(var))
        mixed = (1.0 - now) * (grad / (1.0 - product)) + following * (m / (1.0 - next_product))
        return self._get_hyper("learning_rate", kind) * mixed / (tf.sqrt(v / rest) + self.epsilon)
