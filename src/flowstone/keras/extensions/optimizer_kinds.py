"""Optimisers of `tf.keras.optimizers`: SGD, RMSprop, Adagrad, Adadelta and Ftrl.

Sources: Duchi et al. (2011), Zeiler (2012), Hinton's lecture on RMSprop (2012), McMahan et al. (2013). Each
takes the numbers, and in sparse gradients the rows, that TensorFlow 1.15's takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.keras.extensions.optimizer_base import Optimizer

__all__ = ["SGD", "Adadelta", "Adagrad", "Configured", "Ftrl", "RMSprop"]


class Configured(Optimizer):
    """An optimiser whose configuration is its hyperparameters, and the attributes in `_PLAIN`."""

    _HYPERS: tuple[str, ...] = ()
    _PLAIN: tuple[str, ...] = ()

    def get_config(self) -> dict[str, Any]:
        """What it is made of."""
        first, *others = self._HYPERS  # the rate, which its decay follows
        numbers = {name: self._serialize_hyperparameter(name) for name in (first, "decay", *others)}
        plain = {name.lstrip("_"): getattr(self, name) for name in self._PLAIN}
        return {**super().get_config(), **numbers, **plain}

    def _start(self, learning_rate: Any, kwargs: dict[str, Any], **hypers: Any) -> None:
        lr = kwargs.get("lr")
        self._set_hyper("learning_rate", learning_rate if lr is None else lr)
        for name, value in hypers.items():
            self._set_hyper(name, value)

    def _shared(self, var: Any, apply_state: Any) -> Any:
        """What the updates of all variables of this one's device and type share."""
        device, kind = var.device, var.dtype.base_dtype
        return (apply_state or {}).get((device, kind)) or self._fallback_apply_state(device, kind)

    def _apply_dense(self, grad: Any, var: Any, shared: Any) -> Any:
        """The operation that updates `var` by a dense gradient."""
        raise NotImplementedError

    def _apply_sparse(self, grad: Any, var: Any, indices: Any, shared: Any) -> Any:
        """The operation that updates the rows `indices` of `var`, each there once."""
        raise NotImplementedError

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        return self._apply_dense(grad, var, self._shared(var, apply_state))

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any = None) -> Any:
        return self._apply_sparse(grad, var, indices, self._shared(var, apply_state))

    def _read(self, name: str, var_dtype: Any) -> Any:
        """A hyperparameter as it is when the step begins."""
        return tf.identity(self._get_hyper(name, var_dtype))

    def _moved(self, var: Any, slot_name: str, scaled: Any, indices: Any, beta: Any) -> Any:
        """A slot after it moved: times beta, and with `scaled` added to the rows `indices`."""
        slot = self.get_slot(var, slot_name)
        with tf.control_dependencies([slot.assign(slot * beta)]):
            return self._resource_scatter_add(slot, indices, scaled)

    def _epsilon(self, var_dtype: Any) -> Any:
        return tf.convert_to_tensor(getattr(self, "epsilon"), var_dtype)  # noqa: B009


class SGD(Configured):
    """Gradient descent: var -= learning_rate · gradient; with `momentum`, also Nesterov's."""

    _HYPERS, _PLAIN = ("learning_rate", "momentum"), ("nesterov",)

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: Any = 0.0,
        nesterov: bool = False,
        name: str = "SGD",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        if isinstance(momentum, (int, float)) and not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be between [0, 1].")
        self._momentum = isinstance(momentum, tf.Tensor) or callable(momentum) or momentum > 0
        self._start(learning_rate, kwargs, momentum=momentum)
        self.nesterov = nesterov

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        if self._momentum:
            for var in var_list:
                self.add_slot(var, "momentum")

    def _prepare_local(self, var_device: str, var_dtype: Any, apply_state: dict[Any, Any]) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        apply_state[var_device, var_dtype]["momentum"] = self._read("momentum", var_dtype)

    def _apply_dense(self, grad: Any, var: Any, shared: Any) -> Any:
        if not self._momentum:
            return tf.raw_ops.ResourceApplyGradientDescent(var=var.handle, alpha=shared["lr_t"], delta=grad)
        return tf.raw_ops.ResourceApplyKerasMomentum(
            var=var.handle, accum=self.get_slot(var, "momentum").handle, lr=shared["lr_t"], grad=grad,
            momentum=shared["momentum"], use_nesterov=self.nesterov,
        )  # fmt: skip

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Any, var: Any, indices: Any, **kwargs: Any
    ) -> Any:
        if self._momentum:
            return super()._resource_apply_sparse_duplicate_indices(grad, var, indices, **kwargs)
        rate = self._shared(var, kwargs.get("apply_state"))["lr_t"]
        return tf.raw_ops.ResourceScatterAdd(resource=var.handle, indices=indices, updates=-grad * rate)

    def _apply_sparse(self, grad: Any, var: Any, indices: Any, shared: Any) -> Any:
        return tf.raw_ops.ResourceSparseApplyKerasMomentum(
            var=var.handle, accum=self.get_slot(var, "momentum").handle, lr=shared["lr_t"], grad=grad,
            indices=indices, momentum=shared["momentum"], use_nesterov=self.nesterov,
        )  # fmt: skip


class RMSprop(Configured):
    """Divides by the root of a moving mean of squares (`rho`); or of the variance (`centered`)."""

    _HYPERS, _PLAIN = ("learning_rate", "rho", "momentum"), ("epsilon", "centered")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: float | None = 1e-7,
        centered: bool = False,
        name: str = "RMSprop",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        if isinstance(momentum, (int, float)) and not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be between [0, 1].")
        self._momentum = isinstance(momentum, tf.Tensor) or callable(momentum) or momentum > 0
        self._start(learning_rate, kwargs, rho=rho, momentum=momentum)
        self.epsilon = tf.keras.backend.epsilon() if epsilon is None else epsilon
        self.centered = centered

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for name, is_there in (("rms", True), ("momentum", self._momentum), ("mg", self.centered)):
            for var in var_list if is_there else ():
                self.add_slot(var, name)

    def _prepare_local(self, var_device: str, var_dtype: Any, apply_state: dict[Any, Any]) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        shared = apply_state[var_device, var_dtype]
        shared["rho"] = self._read("rho", var_dtype)
        shared["neg_lr_t"] = -shared["lr_t"]
        shared["epsilon"] = self._epsilon(var_dtype)
        shared["momentum"] = self._read("momentum", var_dtype)
        shared["one_minus_rho"] = 1.0 - shared["rho"]

    def _apply_dense(self, grad: Any, var: Any, shared: Any) -> Any:
        if self._momentum:
            return self._with_momentum(grad, var, shared, {}, "Apply")
        rho, rest, rms = shared["rho"], shared["one_minus_rho"], self.get_slot(var, "rms")
        spread = rms_t = rms.assign(rho * rms + rest * tf.square(grad))
        if self.centered:
            mean = self.get_slot(var, "mg")
            mean_t = mean.assign(rho * mean + rest * grad)
            spread = rms_t - tf.square(mean_t)
        return var.assign(var - shared["lr_t"] * grad / (tf.sqrt(spread) + shared["epsilon"])).op

    def _apply_sparse(self, grad: Any, var: Any, indices: Any, shared: Any) -> Any:
        if self._momentum:
            return self._with_momentum(grad, var, shared, {"indices": indices}, "SparseApply")
        moved = [self._moved(var, "rms", (grad * grad) * shared["one_minus_rho"], indices, shared["rho"])]
        spread = tf.gather(moved[0], indices)
        if self.centered:
            moved.append(self._moved(var, "mg", grad * shared["one_minus_rho"], indices, shared["rho"]))
            spread = spread - tf.square(tf.gather(moved[1], indices))
        change = (shared["neg_lr_t"] * grad) / (tf.sqrt(spread) + shared["epsilon"])
        return tf.group(self._resource_scatter_add(var, indices, change), *moved)

    def _with_momentum(self, grad: Any, var: Any, shared: Any, rows: dict[str, Any], form: str) -> Any:
        slots = {"ms": self.get_slot(var, "rms").handle, "mom": self.get_slot(var, "momentum").handle}
        if self.centered:
            slots["mg"] = self.get_slot(var, "mg").handle
        kind = "CenteredRMSProp" if self.centered else "RMSProp"
        operation = getattr(tf.raw_ops, f"Resource{form}{kind}")
        return operation(
            var=var.handle, lr=shared["lr_t"], rho=shared["rho"], grad=grad, momentum=shared["momentum"],
            epsilon=shared["epsilon"], **slots, **rows,
        )  # fmt: skip


class Adagrad(Configured):
    """Divides by the root of the sum of squares, which begins with `initial_accumulator_value`."""

    _HYPERS, _PLAIN = ("learning_rate",), ("_initial_accumulator_value", "epsilon")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float | None = 1e-7,
        name: str = "Adagrad",
        **kwargs: Any,
    ) -> None:
        if initial_accumulator_value < 0.0:
            raise ValueError(f"initial_accumulator_value must be non-negative: {initial_accumulator_value}")
        epsilon = 1e-7 if epsilon is None else epsilon
        if epsilon < 1e-7:
            raise ValueError(f"epsilon must be larger than 1e-7: {epsilon}")
        super().__init__(name, **kwargs)
        self._start(learning_rate, kwargs)
        self._initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            first = tf.constant_initializer(self._initial_accumulator_value, dtype=var.dtype.base_dtype)
            self.add_slot(var, "accumulator", first)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """An optimiser of this configuration; of one without an initial value, as Keras 2's, with 0."""
        return super().from_config({"initial_accumulator_value": 0.0, **config}, custom_objects)

    def _prepare_local(self, var_device: str, var_dtype: Any, apply_state: dict[Any, Any]) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        shared = apply_state[var_device, var_dtype]
        shared["epsilon"] = self._epsilon(var_dtype)
        shared["neg_lr_t"] = -shared["lr_t"]
        shared["zero"] = tf.zeros([], tf.int64)  # unread, as in TensorFlow: later nodes are numbered after it

    def _options(self, grad: Any, var: Any, shared: Any) -> dict[str, Any]:
        accumulated = self.get_slot(var, "accumulator").handle
        rate = {"lr": shared["lr_t"], "epsilon": shared["epsilon"]}
        return {"var": var.handle, "accum": accumulated, "grad": grad, **rate}

    def _apply_dense(self, grad: Any, var: Any, shared: Any) -> Any:
        return tf.raw_ops.ResourceApplyAdagradV2(**self._options(grad, var, shared))

    def _apply_sparse(self, grad: Any, var: Any, indices: Any, shared: Any) -> Any:
        return tf.raw_ops.ResourceSparseApplyAdagradV2(**self._options(grad, var, shared), indices=indices)


class Adadelta(Configured):
    """Steps as large as the moving mean of earlier ones (`rho`), by the gradient's own."""

    _HYPERS, _PLAIN = ("learning_rate", "rho"), ("epsilon",)

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: float | None = 1e-7,
        name: str = "Adadelta",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._start(learning_rate, kwargs, rho=rho)
        self.epsilon = tf.keras.backend.epsilon() if epsilon is None else epsilon

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for name in ("accum_grad", "accum_var"):
            for var in var_list:
                self.add_slot(var, name)

    def _prepare_local(self, var_device: str, var_dtype: Any, apply_state: dict[Any, Any]) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        shared = apply_state[var_device, var_dtype]
        shared["epsilon"] = self._epsilon(var_dtype)
        shared["rho"] = self._read("rho", var_dtype)

    def _options(self, grad: Any, var: Any, shared: Any) -> dict[str, Any]:
        slots = {"accum": self.get_slot(var, "accum_grad").handle}
        slots["accum_update"] = self.get_slot(var, "accum_var").handle
        rates = {"lr": shared["lr_t"], "rho": shared["rho"], "epsilon": shared["epsilon"]}
        return {"var": var.handle, "grad": grad, **slots, **rates}

    def _apply_dense(self, grad: Any, var: Any, shared: Any) -> Any:
        return tf.raw_ops.ResourceApplyAdadelta(**self._options(grad, var, shared))

    def _apply_sparse(self, grad: Any, var: Any, indices: Any, shared: Any) -> Any:
        return tf.raw_ops.ResourceSparseApplyAdadelta(**self._options(grad, var, shared), indices=indices)


class Ftrl(Configured):
    """Follows the regularised leader: `l1_…` and `l2_regularization_strength`, and the shrinkage of l2."""

    _HYPERS = (
        "learning_rate",
        "learning_rate_power",
        "l1_regularization_strength",
        "l2_regularization_strength",
    )

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        name: str = "Ftrl",
        l2_shrinkage_regularization_strength: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        strengths = {
            "initial_accumulator_value": initial_accumulator_value,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
            "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength,
        }
        for key, value in strengths.items():
            if value < 0.0:
                kind = (
                    "be positive or zero" if key.startswith("initial") else "be greater than or equal to zero"
                )
                raise ValueError(f"{key} {value} needs to {kind}")
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power {learning_rate_power} needs to be negative or zero")
        self._start(
            learning_rate, kwargs, learning_rate_power=learning_rate_power,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )  # fmt: skip
        self._initial_accumulator_value = initial_accumulator_value
        self._l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            first = tf.constant_initializer(self._initial_accumulator_value, dtype=var.dtype.base_dtype)
            self.add_slot(var, "accumulator", first)
            self.add_slot(var, "linear")

    def get_config(self) -> dict[str, Any]:
        """What it is made of."""
        config = super().get_config()
        strengths = {name: config.pop(name) for name in self._HYPERS[1:]}
        return {
            **config,
            "initial_accumulator_value": self._initial_accumulator_value,
            **strengths,
            "l2_shrinkage_regularization_strength": self._l2_shrinkage_regularization_strength,
        }

    def _prepare_local(self, var_device: str, var_dtype: Any, apply_state: dict[Any, Any]) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        shared = apply_state[var_device, var_dtype]
        for name in self._HYPERS[1:]:
            shared[name] = self._read(name, var_dtype)
        shrinkage = self._l2_shrinkage_regularization_strength
        shared["l2_shrinkage_regularization_strength"] = tf.cast(shrinkage, var_dtype)

    def _options(self, grad: Any, var: Any, shared: Any) -> tuple[str, dict[str, Any]]:
        accum, linear = (self.get_slot(var, name).handle for name in ("accumulator", "linear"))
        options = {
            "var": var.handle, "accum": accum, "linear": linear, "grad": grad, "lr": shared["lr_t"],
            "l1": shared["l1_regularization_strength"], "l2": shared["l2_regularization_strength"],
            "lr_power": shared["learning_rate_power"],
        }  # fmt: skip
        if self._l2_shrinkage_regularization_strength <= 0.0:
            return "Ftrl", options
        return "FtrlV2", {**options, "l2_shrinkage": shared["l2_shrinkage_regularization_strength"]}

    def _apply_dense(self, grad: Any, var: Any, shared: Any) -> Any:
        kind, options = self._options(grad, var, shared)
        return getattr(tf.raw_ops, f"ResourceApply{kind}")(**options)

    def _apply_sparse(self, grad: Any, var: Any, indices: Any, shared: Any) -> Any:
        kind, options = self._options(grad, var, shared)
        return getattr(tf.raw_ops, f"ResourceSparseApply{kind}")(**options, indices=indices)
