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

    def _prepare_betas(
        self, var_device: str, var_dtype: Any, apply_state: dict[Any, Any]
    ) -> tuple[dict[str, Any], Any]:
        """What the updates share so far, the betas with it, and the number of this step, from 1 on."""
        super()._prepare_local(var_device, var_dtype, apply_state)
        shared = apply_state[var_device, var_dtype]
        step = tf.cast(self.iterations + 1, var_dtype)
        for name in ("beta_1", "beta_2"):
            shared[f"{name}_t"] = self._read(name, var_dtype)
        return shared, step


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
        shared, step = self._prepare_betas(var_device, var_dtype, apply_state)
        for name in ("beta_1", "beta_2"):
            shared[f"{name}_power"] = tf.pow(shared[f"{name}_t"], step)
        root = tf.sqrt(1 - shared["beta_2_power"])
        shared["lr"] = shared["lr_t"] * (root / (1 - shared["beta_1_power"]))
        shared["epsilon"] = self._epsilon(var_dtype)
        for name in ("beta_1", "beta_2"):
            shared[f"one_minus_{name}_t"] = 1 - shared[f"{name}_t"]

    def _apply_dense(self, grad: Any, var: Any, shared: Any) -> Any:
        options = {
            "var": var.handle, "m": self.get_slot(var, "m").handle, "v": self.get_slot(var, "v").handle,
            "beta1_power": shared["beta_1_power"], "beta2_power": shared["beta_2_power"],
            "lr": shared["lr_t"], "beta1": shared["beta_1_t"], "beta2": shared["beta_2_t"],
            "epsilon": shared["epsilon"], "grad": grad,
        }  # fmt: skip
        if self.amsgrad:
            vhat = self.get_slot(var, "vhat").handle
            return tf.raw_ops.ResourceApplyAdamWithAmsgrad(vhat=vhat, **options)
        return tf.raw_ops.ResourceApplyAdam(**options)

    def _apply_sparse(self, grad: Any, var: Any, indices: Any, shared: Any) -> Any:
        m = self._moved(var, "m", grad * shared["one_minus_beta_1_t"], indices, shared["beta_1_t"])
        squares = (grad * grad) * shared["one_minus_beta_2_t"]
        v = self._moved(var, "v", squares, indices, shared["beta_2_t"])
        others = [m, v]
        if self.amsgrad:
            vhat = self.get_slot(var, "vhat")
            v = vhat.assign(tf.maximum(vhat, v))
            others.append(v)
        root = tf.sqrt(v)
        return tf.group(var.assign_sub(shared["lr"] * m / (root + shared["epsilon"])), *others)


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

    def _prepare_local(self, var_device: str, var_dtype: Any, apply_state: dict[Any, Any]) -> None:
        shared, step = self._prepare_betas(var_device, var_dtype, apply_state)
        shared["beta_1_power"] = tf.pow(shared["beta_1_t"], step)
        shared["neg_scaled_lr"] = -shared["lr_t"] / (1 - shared["beta_1_power"])
        shared["epsilon"] = self._epsilon(var_dtype)
        shared["one_minus_beta_1_t"] = 1 - shared["beta_1_t"]
        shared["zero"] = tf.zeros([], tf.int64)  # unread, as in TensorFlow: later nodes are numbered after it

    def _apply_dense(self, grad: Any, var: Any, shared: Any) -> Any:
        return tf.raw_ops.ResourceApplyAdaMax(
            var=var.handle, m=self.get_slot(var, "m").handle, v=self.get_slot(var, "v").handle,
            beta1_power=shared["beta_1_power"], lr=shared["lr_t"], beta1=shared["beta_1_t"],
            beta2=shared["beta_2_t"], epsilon=shared["epsilon"], grad=grad,
        )  # fmt: skip

    def _apply_sparse(self, grad: Any, var: Any, indices: Any, shared: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = tf.gather(m, indices) * shared["beta_1_t"] + grad * shared["one_minus_beta_1_t"]
        with tf.control_dependencies([self._resource_scatter_update(m, indices, m_rows)]):
            v_rows = tf.maximum(tf.gather(v, indices) * shared["beta_2_t"], tf.abs(grad))
        with tf.control_dependencies([self._resource_scatter_update(v, indices, v_rows)]):
            change = shared["neg_scaled_lr"] * (m_rows / (v_rows + shared["epsilon"]))
        return tf.group(self._resource_scatter_add(var, indices, change))


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
        self._m_cache_read: Any = None

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        if self._m_cache is None:
            kind = var_list[0].dtype.base_dtype
            self._m_cache = self.add_weight("momentum_cache", [], kind, "ones", trainable=False)
            self._weights.append(self._m_cache)
        super()._create_slots(var_list)

    def _prepare(self, var_list: Sequence[Any]) -> dict[Any, Any]:
        self._m_cache_read = tf.identity(self._m_cache)
        return super()._prepare(var_list)

    def _prepare_local(self, var_device: str, var_dtype: Any, apply_state: dict[Any, Any]) -> None:
        """The weights of the momentum now and in the next step, and the products of all of them."""
        shared = apply_state[var_device, var_dtype]
        for key, name in (("lr_t", "learning_rate"), ("beta_1_t", "beta_1"), ("beta_2_t", "beta_2")):
            shared[key] = self._read(name, var_dtype)
        step, following = (tf.cast(self.iterations + i, var_dtype) for i in (1, 2))
        base = tf.cast(0.96, var_dtype)
        for key, number in (("m_t", step), ("m_t_1", following)):
            factor = 1.0 - 0.5 * tf.pow(base, self._initial_decay * number)
            shared[key] = shared["beta_1_t"] * factor
        product = tf.cast(self._m_cache_read, var_dtype) * shared["m_t"]
        if var_dtype is self._m_cache.dtype.base_dtype:
            product = tf.identity(self._m_cache.assign(product))
        next_product = product * shared["m_t_1"]
        shared["neg_lr_t"] = -shared["lr_t"]
        shared["epsilon"] = self._epsilon(var_dtype)
        for name in ("beta_1_t", "beta_2_t", "m_t"):
            shared[f"one_minus_{name}"] = 1 - shared[name]
        shared["one_minus_m_schedule_new"] = 1 - product
        shared["one_minus_m_schedule_next"] = 1 - next_product
        shared["v_t_prime_denominator"] = 1 - tf.pow(shared["beta_2_t"], step)

    def _apply_dense(self, grad: Any, var: Any, shared: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        now = grad / shared["one_minus_m_schedule_new"]
        m_t = m.assign(shared["beta_1_t"] * m + shared["one_minus_beta_1_t"] * grad)
        moved = m_t / shared["one_minus_m_schedule_next"]
        v_t = v.assign(shared["beta_2_t"] * v + shared["one_minus_beta_2_t"] * tf.square(grad))
        spread = v_t / shared["v_t_prime_denominator"]
        mixed = shared["one_minus_m_t"] * now + shared["m_t_1"] * moved
        return var.assign(var - shared["lr_t"] * mixed / (tf.sqrt(spread) + shared["epsilon"])).op

    def _apply_sparse(self, grad: Any, var: Any, indices: Any, shared: Any) -> Any:
        now = grad / shared["one_minus_m_schedule_new"]
        m = self._moved(var, "m", grad * shared["one_minus_beta_1_t"], indices, shared["beta_1_t"])
        m_rows = tf.gather(m, indices)
        moved = m_rows / shared["one_minus_m_schedule_next"]
        mixed = shared["one_minus_m_t"] * now + shared["m_t_1"] * moved
        squares = (grad * grad) * shared["one_minus_beta_2_t"]
        v = self._moved(var, "v", squares, indices, shared["beta_2_t"])
        v_rows = tf.gather(v, indices)
        root = tf.sqrt(v_rows / shared["v_t_prime_denominator"]) + shared["epsilon"]
        changed = self._resource_scatter_add(var, indices, shared["neg_lr_t"] * mixed / root)
        return tf.group(changed, m_rows, v_rows)
