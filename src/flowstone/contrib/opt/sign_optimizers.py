"""AddSign and PowerSign (Bello et al. 2017, arXiv 1709.07417): do gradient and momentum agree?"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["AddSignOptimizer", "PowerSignOptimizer"]


class _SignOptimizer(Optimizer):
    """What both have: a moving average of the gradient, and a decay of the signs' influence."""

    _kernels: tuple[str, str]

    def __init__(
        self,
        learning_rate: Any,
        scale: Any,
        beta: Any,
        sign_decay_fn: Callable[[Any], Any] | None,
        use_locking: bool,
        name: str,
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._scale, self._beta, self._sign_decay_fn = learning_rate, scale, beta, sign_decay_fn
        self._tensors: tuple[Any, ...] = ()
        self._global_step: Any = None

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """As `Optimizer.apply_gradients`; the step also decides the signs' influence."""
        if global_step is not None:
            with tf.control_dependencies(None):
                self._global_step = tf.identity(global_step)
        elif self._sign_decay_fn is not None:
            raise ValueError("Cannot use sign_decay_fn without a global_step")
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _create_slots(self, var_list: Any) -> None:
        for var in var_list:
            self._zeros_slot(var, "m", self._name)

    def _prepare(self) -> None:
        decay = 1.0 if self._sign_decay_fn is None else self._sign_decay_fn(self._global_step)
        values = (self._lr, self._scale, decay, self._beta)
        names = ("learning_rate", "scale", "sign_decay", "beta")
        self._tensors = tuple(tf.convert_to_tensor(value, name=name) for value, name in zip(values, names))

    def _rates(self, dtype: Any) -> tuple[Any, ...]:
        return tuple(tf.cast(value, dtype.base_dtype) for value in self._tensors)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        kernel = getattr(F, self._kernels[0])
        rates = self._rates(var.dtype)
        return kernel(
            var._ref(), self.get_slot(var, "m")._ref(), *rates, grad, use_locking=self._use_locking
        ).op

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        kernel = getattr(F, self._kernels[1])
        slot = self.get_slot(handle, "m")
        return kernel(
            handle.handle, slot.handle, *self._rates(grad.dtype), grad, use_locking=self._use_locking
        )

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._apply_dense(tf.convert_to_tensor(grad), var)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        dense = tf.convert_to_tensor(tf.IndexedSlices(grad, indices, tf.shape(handle)))
        return self._resource_apply_dense(dense, handle)


class AddSignOptimizer(_SignOptimizer):
    """The step is ``lr * grad * (alpha + decay * sign(grad) * sign(m))`` with `m` the gradient's average.

    Args:
        learning_rate, alpha: scalars. beta: the average's decay.
        sign_decay_fn: from the global step to the decay; None for 1.
        use_locking, name: as of all optimisers.
    """

    _kernels = ("ApplyAddSign", "ResourceApplyAddSign")

    def __init__(
        self,
        learning_rate: Any = 0.1,
        alpha: Any = 1.0,
        beta: Any = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, alpha, beta, sign_decay_fn, use_locking, name)


class PowerSignOptimizer(_SignOptimizer):
    """The step is ``lr * grad * base ** (decay * sign(grad) * sign(m))`` with `m` the gradient's average.

    Args:
        learning_rate, base: scalars. beta: the average's decay.
        sign_decay_fn: from the global step to the decay; None for 1.
        use_locking, name: as of all optimisers.
    """

    _kernels = ("ApplyPowerSign", "ResourceApplyPowerSign")

    def __init__(
        self,
        learning_rate: Any = 0.1,
        base: Any = math.e,
        beta: Any = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, math.log(base), beta, sign_decay_fn, use_locking, name)
