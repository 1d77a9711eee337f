"""Optimisers whose weights decay apart from the gradient (Loshchilov and Hutter 2017, arXiv 1711.05101)."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.training.optimizers.adam import AdamOptimizer
from flowstone.training.optimizers.momentum import MomentumOptimizer

__all__ = [
    "AdamWOptimizer",
    "DecoupledWeightDecayExtension",
    "MomentumWOptimizer",
    "extend_with_decoupled_weight_decay",
]


class DecoupledWeightDecayExtension:
    """What a class adds to an optimiser that it also derives from: weights lose a share of themselves.

        class AdagradW(DecoupledWeightDecayExtension, tf.train.AdagradOptimizer): ...

    Before a variable is updated, ``weight_decay * variable`` is taken from it; of a sparse gradient only from
    the rows that occur. The gradient is that of the weights before they decay. In TensorFlow nothing orders
    the decay after the reads of a reference variable, or after the gathers of rows: there the gradient may be
    that of the decayed weights, as the executor comes to the one or the other first.

    Args:
        weight_decay: the share, a scalar or a function of no arguments.
        kwargs: the arguments of the optimiser.
    """

    def __init__(self, weight_decay: Any, **kwargs: Any) -> None:
        self._weight_decay = weight_decay
        self._decay_var_list: set[Any] | None = None
        self._weight_decay_tensor: Any = None
        super().__init__(**kwargs)

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = 1,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
        decay_var_list: Any = None,
    ) -> Any:
        """As `Optimizer.minimize`. All variables decay: as in TensorFlow, `decay_var_list` is lost on the way
        to `apply_gradients`, which takes it."""
        base: Any = super()
        return base.minimize(
            loss,
            global_step=global_step,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            name=name,
            grad_loss=grad_loss,
        )

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Any = None,
    ) -> Any:
        """As `Optimizer.apply_gradients`; `decay_var_list`: the variables that decay, all for None."""
        self._decay_var_list = set(decay_var_list) if decay_var_list else None
        base: Any = super()
        return base.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def _prepare(self) -> None:
        base: Any = super()
        decay = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
        self._weight_decay_tensor = tf.convert_to_tensor(decay, name="weight_decay")
        base._prepare()

    def _decays(self, var: Any) -> bool:
        return self._decay_var_list is None or var in self._decay_var_list

    def _decay_of(self, var: Any) -> Any:
        if callable(self._weight_decay):
            return tf.cast(self._weight_decay_tensor, var.dtype.base_dtype)
        return self._weight_decay

    def _decayed(self, var: Any) -> list[Any]:
        """The operations after which a variable has decayed."""
        if not self._decays(var):
            return []
        own: Any = self
        update = var.assign_sub(self._decay_of(var) * var, use_locking=own._use_locking)
        return [update.op]

    def _decayed_rows(self, var: Any, indices: Any, scatter: Any) -> list[Any]:
        if not self._decays(var):
            return []
        return [scatter(indices, -self._decay_of(var) * tf.gather(var, indices))]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        base: Any = super()
        with tf.control_dependencies(self._decayed(var)):
            return base._apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        base: Any = super()
        with tf.control_dependencies(self._decayed(handle)):
            return base._resource_apply_dense(grad, handle)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        base: Any = super()
        after = self._decayed_rows(var, grad.indices, lambda i, x: F.ScatterAdd(var._ref(), i, x).op)
        with tf.control_dependencies(after):
            return base._apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        base: Any = super()

        def add(rows: Any, values: Any) -> Any:
            with tf.control_dependencies([F.ResourceScatterAdd(handle.handle, rows, values)]):
                return handle.value()

        with tf.control_dependencies(self._decayed_rows(handle, indices, add)):
            return base._resource_apply_sparse(grad, handle, indices)


def extend_with_decoupled_weight_decay(base_optimizer: Any) -> Any:
    """A class of the optimiser `base_optimizer` whose weights decay; its first argument is `weight_decay`."""

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):  # type: ignore[misc]
        """An optimiser whose weights decay apart from the gradient."""

        def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
            self._weight_decay, self._decay_var_list = weight_decay, None
            base_optimizer.__init__(self, *args, **kwargs)

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """`tf.train.MomentumOptimizer` whose weights decay."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            momentum=momentum,
            use_locking=use_locking,
            name=name,
            use_nesterov=use_nesterov,
        )


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """`tf.train.AdamOptimizer` whose weights decay."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            use_locking=use_locking,
            name=name,
        )
