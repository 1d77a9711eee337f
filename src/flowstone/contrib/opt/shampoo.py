"""Shampoo: Adagrad with a matrix of its own for every axis of a variable.

V. Gupta, T. Koren and Y. Singer, "Shampoo: preconditioned stochastic tensor optimization", 2018
(arXiv 1802.09568).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.opt import matrix_functions
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["ShampooOptimizer"]


def _at(value: Any, step: Any) -> Any:
    """A hyperparameter at a step: it may be a function of the step."""
    return value(step) if callable(value) else value


class ShampooOptimizer(Optimizer):
    """The step is ``learning_rate · gbar``, with each axis j of gbar multiplied by Gbar_j ^ (-alpha / rank).

    gbar is the sum ``gbar_decay · gbar + gbar_weight · gradient``. Gbar_j sums the products of the gradient
    with itself along all other axes, in the same way, divided by the axis' size; of an axis that is longer
    than `max_matrix_size` only the diagonal. Slots "gbar", "Gbar_0" …, and "H_0" … for powers that are kept.

    Args:
        global_step: the number of steps made, a tensor or variable.
        max_matrix_size: the longest axis that has a whole matrix.
        gbar_decay, gbar_weight, mat_gbar_decay, mat_gbar_weight, learning_rate: numbers, or functions of the
            step (float32, []).
        svd_interval, precond_update_interval: after how many steps powers are computed, and sums updated.
        epsilon: what is added to the diagonals.
        alpha: the power of the whole preconditioner.
        use_iterative_root: whether powers are computed by iteration, not from singular values.
        use_locking, name: as of all optimisers.
    """

    def __init__(
        self,
        global_step: Any = 0,
        max_matrix_size: int = 768,
        gbar_decay: Any = 0.0,
        gbar_weight: Any = 1.0,
        mat_gbar_decay: Any = 1.0,
        mat_gbar_weight: Any = 1.0,
        learning_rate: Any = 1.0,
        svd_interval: Any = 1,
        precond_update_interval: Any = 1,
        epsilon: float = 1e-4,
        alpha: Any = 0.5,
        use_iterative_root: bool = False,
        use_locking: bool = False,
        name: str = "Shampoo",
    ) -> None:
        super().__init__(use_locking, name)
        self._global_step = tf.cast(global_step, tf.float32)
        self._max_matrix_size = max_matrix_size
        self._gbar_decay, self._gbar_weight = gbar_decay, gbar_weight
        self._mat_gbar_decay, self._mat_gbar_weight = mat_gbar_decay, mat_gbar_weight
        self._learning_rate, self._alpha, self._epsilon = learning_rate, alpha, epsilon
        self._svd_interval, self._update_interval = svd_interval, precond_update_interval
        self._use_iterative_root = use_iterative_root

    @property
    def _keeps_powers(self) -> bool:
        return callable(self._svd_interval) or self._svd_interval > 1

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "gbar", self._name)
            for i, size in enumerate(var.shape.as_list()):
                is_whole = size <= self._max_matrix_size
                if is_whole and self._keeps_powers:
                    self._get_or_make_slot(var, tf.eye(size), f"H_{i}", self._name)
                sums = tf.zeros([size, size] if is_whole else [size])
                self._get_or_make_slot(var, sums, f"Gbar_{i}", self._name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._apply(grad, var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._apply(grad, handle)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        is_small = handle.shape.as_list()[0] <= self._max_matrix_size
        if is_small or callable(self._gbar_decay) or self._gbar_decay != 0.0:
            shape = tf.shape(handle, out_type=indices.dtype)
            return self._apply(tf.scatter_nd(tf.expand_dims(indices, 1), grad, shape), handle)
        if callable(self._mat_gbar_decay) or self._mat_gbar_decay != 1.0:
            raise ValueError("sums of single rows that are updated cannot decay: mat_gbar_decay must be 1.0")
        return self._apply(grad, handle, indices)

    def _apply(self, grad: Any, var: Any, indices: Any = None) -> Any:
        """The update of a variable, or of its rows `indices`."""
        step = self._global_step + 1.0
        found = grad
        if indices is None:
            weight = _at(self._gbar_weight, step)
            found = _summed(self.get_slot(var, "gbar"), self._gbar_decay, step, weight * grad)
        rank = var.shape.ndims
        power = -_at(self._alpha, step) / rank
        for i, size in enumerate(var.shape.as_list()):
            # Each time the first axis is taken off and put at the end: at last the order is as before.
            if size <= self._max_matrix_size:
                root = self._matrix_power(var, grad, i, power, step)
                found = tf.tensordot(found, root, axes=([0], [0]), name=f"precond_{i}")
            else:
                roots = self._diagonal_power(var, grad, i, power, step, indices)
                found = tf.transpose(found, [*range(1, rank), 0]) * roots
        change = _at(self._learning_rate, step) * found
        if indices is None:
            return tf.assign_sub(var, change, use_locking=self._use_locking).op
        changed = tf.scatter_sub(var, indices, change, use_locking=self._use_locking)
        return tf.convert_to_tensor(changed).op

    # ---- axes with a whole matrix

    def _matrix_power(self, var: Any, grad: Any, axis: int, power: Any, step: Any) -> Any:
        sums, size = self.get_slot(var, f"Gbar_{axis}"), var.shape.as_list()[axis]
        others = [i for i in range(var.shape.ndims) if i != axis]
        interval = _at(self._update_interval, step)

        def updated() -> Any:
            outer = tf.tensordot(grad, grad, axes=(others, others), name=f"grad_outer_{axis}")
            weight = _at(self._mat_gbar_weight, step) * interval
            return _summed(sums, self._mat_gbar_decay, step, weight * outer)

        matrix = tf.cond(tf.mod(step, interval) < 1, updated, lambda: tf.identity(sums)) / float(size)
        if not self._keeps_powers:
            return self._power(matrix, size, power)
        kept = self.get_slot(var, f"H_{axis}")
        is_due = tf.mod(step, _at(self._svd_interval, step)) < 1
        return tf.cond(
            is_due,
            lambda: tf.identity(tf.assign(kept, self._power(matrix, size, power))),
            lambda: tf.identity(kept),
        )

    def _power(self, matrix: Any, size: int, power: Any) -> Any:
        if self._use_iterative_root:
            root = matrix_functions.matrix_square_root(matrix, size, 100, self._epsilon)
            return matrix_functions.matrix_inverse_pth_root(root, size, 2 * power, 100, 1e-6, 0.0)
        if size == 1:
            return tf.pow(matrix + self._epsilon, power)
        values, left, right = tf.svd(matrix + self._epsilon * tf.eye(size), full_matrices=True)
        return tf.matmul(right * tf.pow(tf.maximum(values, self._epsilon), power), left, transpose_b=True)

    # ---- long axes, of which the diagonal is kept

    def _diagonal_power(self, var: Any, grad: Any, axis: int, power: Any, step: Any, indices: Any) -> Any:
        sums, size = self.get_slot(var, f"Gbar_{axis}"), var.shape.as_list()[axis]
        others = [i for i in range(var.shape.ndims) if i != axis]
        squares = tf.reduce_sum(grad * grad, axis=others) if others else grad * grad
        if others and indices is None:  # what a few rows add up to is not divided
            squares /= float(size)
        added = _at(self._mat_gbar_weight, step) * squares
        if indices is None or axis > 0:
            found = _summed(sums, self._mat_gbar_decay, step, added)
        else:
            # As a tensor: rows of a resource variable would be read without the update.
            found = tf.gather(tf.convert_to_tensor(tf.scatter_add(sums, indices, added)), indices)
        return tf.where(found > 0, tf.pow(found, power), tf.zeros_like(found))


def _summed(kept: Any, decay: float | Callable[[Any], Any], step: Any, added: Any) -> Any:
    """``decay · kept + added``, which is what is kept then; with no decay at all nothing needs to be kept."""
    if not callable(decay) and decay == 0.0:
        return added
    if not callable(decay) and decay == 1.0:
        return tf.identity(tf.assign_add(kept, added))
    return tf.identity(tf.assign_add(kept, (_at(decay, step) - 1) * kept + added))
