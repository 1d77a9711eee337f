"""GGT: full-matrix Adagrad over the last gradients alone, in the space that these span.

N. Agarwal et al., "The case for full-matrix adaptive regularization", 2018 (arXiv 1806.02958).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["GGTOptimizer"]


class GGTOptimizer(Optimizer):
    """The step is ``learning_rate · (M Mᵀ)^(-1/2) m``: m is the first moment, M has the last ones as columns.

    All variables' gradients are one vector, in the order of the variables' names. Each of M's columns is
    divided by the root of their number. With C = MᵀM, which is small, the root is M C^(-3/2) Mᵀ within the
    space that M spans; outside it stands 1 over the least singular value, if that is above `eps`.

    Args:
        learning_rate: a number or tensor.
        beta1: the decay of the first moment.
        use_locking, name: as of all optimisers.
        window: the number of columns.
        eps: what the least singular value must be above.
        svd_eps: what is added to the diagonal of C.
        sigma_eps: what is added to singular values.

    Variables "flat_grad", "moment1" [size], "grad_buffer" [window, size] and "global_step" belong to no
    single variable. Raises NotImplementedError for sparse gradients.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        use_locking: bool = False,
        name: str = "GGT",
        window: int = 10,
        eps: Any = 0.0001,
        svd_eps: Any = 1e-6,
        sigma_eps: Any = 0.01,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._beta1, self._window = learning_rate, beta1, window
        self._eps, self._svd_eps, self._sigma_eps = eps, svd_eps, sigma_eps
        self._gradients: dict[str, tuple[Any, Any]] = {}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        first = min(var_list, key=lambda each: each.name)
        size = sum(each.shape.num_elements() for each in var_list)
        kind = first.dtype.base_dtype
        values = {
            "global_step": tf.constant(0.0, kind),
            "grad_buffer": tf.zeros([self._window, size], kind),
            "moment1": tf.zeros([size], kind),
            "flat_grad": tf.zeros([size], kind),
        }
        for name, value in values.items():
            self._create_non_slot_variable(value, name, first)

    def _prepare(self) -> None:
        self._gradients = {}

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        self._gradients[var.name] = (grad, var)
        return tf.identity(grad).op

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._apply_dense(grad, handle)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        raise NotImplementedError("Sparse gradient updates are not supported.")

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._apply_sparse(grad, handle)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        pairs = [self._gradients[name] for name in sorted(self._gradients)]
        variables = [variable for _, variable in pairs]
        with tf.control_dependencies(update_ops), tf.name_scope(name_scope):
            step = self._step(tf.concat([tf.reshape(grad, [-1]) for grad, _ in pairs], 0))
            parts = tf.split(step, [each.shape.num_elements() for each in variables])
            rate = tf.cast(self._learning_rate, step.dtype)
            updates = [
                tf.assign_sub(each, rate * tf.reshape(part, each.shape))
                for each, part in zip(variables, parts)
            ]
            return tf.group(*updates, name=name_scope)

    def _step(self, gradient: Any) -> Any:
        """The step for the gradient of all variables [size]; keeps its moment."""
        graph, kind = tf.get_default_graph(), gradient.dtype
        names = ("global_step", "moment1", "grad_buffer", "flat_grad")
        kept, moment, buffer, flat = (self._get_non_slot_variable(name, graph) for name in names)
        gradient = tf.identity(tf.assign(flat, gradient))
        count = tf.identity(tf.assign_add(kept, tf.ones([], kind)))
        beta = tf.cast(self._beta1, kind)
        moment = tf.identity(tf.assign(moment, beta * moment + (1 - beta) * gradient))
        place = tf.floormod(tf.cast(count - 1, tf.int32), self._window)
        columns = tf.identity(tf.scatter_update(buffer, place, moment))
        columns = columns / tf.sqrt(tf.minimum(count, tf.cast(self._window, kind)))  # Mᵀ
        damping = tf.cast(self._svd_eps, kind) * tf.eye(self._window, dtype=kind)
        sigma, u, _ = tf.svd(tf.matmul(columns, columns, transpose_b=True) + damping)
        roots = tf.sqrt(sigma)
        projected = tf.linalg.matvec(u, tf.linalg.matvec(columns, moment), transpose_a=True)

        def back(values: Any) -> Any:
            return tf.linalg.matvec(columns, tf.linalg.matvec(u, values), transpose_a=True)

        inside = back(projected / tf.pow(roots + tf.cast(self._sigma_eps, kind), 3))
        least = tf.reduce_min(roots)
        return tf.cond(
            least > tf.cast(self._eps, kind),
            lambda: inside + (moment - back(projected / sigma)) / least,
            lambda: tf.identity(inside),
        )
