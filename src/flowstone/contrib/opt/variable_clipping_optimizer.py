"""An optimiser that clips variables after each step."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["VariableClippingOptimizer"]


class VariableClippingOptimizer(Optimizer):
    """Wraps an optimiser and clips variables by their norm along dimensions after each of its steps.

    Args:
        opt: the optimiser.
        vars_to_clip_dims: for each variable to clip, the dimensions of the norm; of a sparse gradient only
            rows that occur are clipped, so that dimension 0 must not be among them.
        max_norm: the greatest norm.
        use_locking, name: as of all optimisers. colocate_clip_ops_with_vars: where the clipping is placed.
    """

    def __init__(
        self,
        opt: Any,
        vars_to_clip_dims: Any,
        max_norm: float,
        use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt, self._vars_to_clip_dims = opt, vars_to_clip_dims
        self._max_norm, self._colocate = max_norm, colocate_clip_ops_with_vars

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """As of the optimiser."""
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """As of the optimiser."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """As of the optimiser."""
        return self._opt.get_slot_names(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The operation of a step and of the clipping after it."""
        pairs = list(grads_and_vars)
        with tf.name_scope(name, self._name) as scope:
            update = self._opt.apply_gradients(pairs, global_step=global_step)
            clips = []
            with tf.control_dependencies([update]):
                for grad, var in pairs:
                    if grad is not None and var in self._vars_to_clip_dims:
                        clips.append(self._clipped(grad, var))
            return tf.group(update, *clips, name=scope)

    def _clipped(self, grad: Any, var: Any) -> Any:
        dims = self._vars_to_clip_dims[var]
        with tf.colocate_with(var if self._colocate else None, ignore_existing=not self._colocate):
            if isinstance(grad, tf.IndexedSlices) and 0 not in dims:
                rows = tf.unique(grad.indices).y
                clipped = tf.clip_by_norm(tf.gather(var, rows), self._max_norm, list(dims))
                return self._put(var, rows, clipped)
            return var.assign(
                tf.clip_by_norm(var.read_value(), self._max_norm, dims), use_locking=self._use_locking
            )

    def _put(self, var: Any, rows: Any, values: Any) -> Any:
        if hasattr(var, "handle"):
            return F.ResourceScatterUpdate(var.handle, rows, values)
        return F.ScatterUpdate(var._ref(), rows, values, use_locking=self._use_locking)
