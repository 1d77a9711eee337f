"""Workers train copies of a model and send the means of their gradients (`AGNOptimizer`).

J. Hermans, G. Spanakis, R. Möckel, "Accumulated gradient normalization", 2017.
"""

from __future__ import annotations

import copy
from typing import Any

import flowstone as tf
from flowstone.contrib.opt.center_variables import (
    GLOBAL_VARIABLE_NAME,
    CenterGetter,
    at_multiples,
    count_steps,
)
from flowstone.contrib.opt.model_average_optimizer import InitOpHook
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["GLOBAL_VARIABLE_NAME", "GRAD_VARIABLE_NAME", "AGNCustomGetter", "AGNOptimizer"]

GRAD_VARIABLE_NAME = "grad_variable"


class AGNCustomGetter(CenterGetter):
    """Makes trainable variables local ones, on `worker_device`, each with a sum of gradients and a center.

    `sums` are the sums, by the variables' names.
    """

    def __init__(self, worker_device: Any) -> None:
        super().__init__(worker_device)
        self.sums: dict[str, Any] = {}

    def _add_copies(self, name: str, local: Any) -> None:
        with tf.device(self._worker_device):
            self.sums[local.name] = tf.Variable(
                tf.zeros_like(local.initialized_value()),
                name=f"{GRAD_VARIABLE_NAME}/{name}",
                trainable=False,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
            )
        super()._add_copies(name, local)


def _local(getter: Any, *args: Any, **kwargs: Any) -> Any:
    kwargs["collections"] = [tf.GraphKeys.LOCAL_VARIABLES]
    return getter(*args, **kwargs)


class AGNOptimizer(Optimizer):
    """A worker trains its variables, and every `communication_period` steps the center by the mean gradient.

    It then goes on from the center.

    Args:
        optimizer: the optimiser of workers and center.
        num_worker: how many workers there are.
        custom_getter: what the variables were made with.
        communication_period: how many gradients a mean has.
        use_locking, name: as other optimisers'.
    """

    def __init__(
        self,
        optimizer: Any,
        num_worker: int,
        custom_getter: Any,
        communication_period: int = 10,
        use_locking: bool = True,
        name: str = "AGNOptimizer",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt, self._num_worker, self._getter = optimizer, num_worker, custom_getter
        self._period = communication_period
        self._local_opt = copy.deepcopy(optimizer)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The step of the worker's variables, and the center's, when it is due; that counts the global step.

        Raises ValueError for a variable that the getter did not make.
        """
        pairs = [(grad, var) for grad, var in grads_and_vars if grad is not None]
        variables = [var for _, var in pairs]
        centers = [self._getter.center_of(var) for var in variables]
        sums = [self._getter.sums[var.name] for var in variables]
        with tf.variable_scope(tf.get_variable_scope(), custom_getter=_local):
            trained = self._local_opt.apply_gradients(pairs)
        added = [tf.assign_add(each, _dense(grad)).op for each, (grad, _) in zip(sums, pairs, strict=True)]
        step = count_steps(self._getter, tf.group(trained, *added))
        self._opt._prepare()
        self._opt._create_slots(centers)
        return at_multiples(step, self._period, lambda: self._send(variables, centers, sums), global_step)

    def _send(self, variables: Any, centers: Any, sums: Any) -> Any:
        means = [each.read_value() / self._period for each in sums]
        trained = self._opt.apply_gradients(list(zip(means, centers, strict=True)))
        with tf.control_dependencies([trained]):
            pulled = [
                tf.assign(var, center.read_value()) for var, center in zip(variables, centers, strict=True)
            ]
            cleared = [tf.assign(each, tf.zeros_like(each)) for each in sums]
        return tf.group(*pulled, *cleared)

    def get_init_op(self, task_index: int) -> Any:
        """The operation by which the variables of worker `task_index` become the centers."""
        return tf.group(
            *[
                tf.assign(var, self._getter.centers[var.name])
                for var in tf.local_variables()
                if var.name in self._getter.centers
            ]
        )

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> Any:
        """A hook that runs `get_init_op` when the session begins."""
        return InitOpHook(lambda: self.get_init_op(task_index))


def _dense(grad: Any) -> Any:
    return tf.convert_to_tensor(grad)
