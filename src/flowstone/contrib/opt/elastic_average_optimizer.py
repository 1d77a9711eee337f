"""Workers train copies of a model that are tied to a common center as by springs (`ElasticAverageOptimizer`).

S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with elastic averaging SGD", 2015.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.opt.center_variables import (
    GLOBAL_VARIABLE_NAME,
    LOCAL_VARIABLE_NAME,
    CenterGetter,
    at_multiples,
    count_steps,
)
from flowstone.contrib.opt.model_average_optimizer import InitOpHook
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = [
    "GLOBAL_VARIABLE_NAME",
    "LOCAL_VARIABLE_NAME",
    "ElasticAverageCustomGetter",
    "ElasticAverageOptimizer",
]


class ElasticAverageCustomGetter(CenterGetter):
    """Makes trainable variables local ones, on `worker_device`, each with its center and a copy of that.

    `local_centers` are the copies, by the variables' names.
    """

    def __init__(self, worker_device: Any) -> None:
        super().__init__(worker_device)
        self.local_centers: dict[str, Any] = {}

    def _add_copies(self, name: str, local: Any) -> None:
        with tf.device(self._worker_device):
            self.local_centers[local.name] = self._copy(
                f"{LOCAL_VARIABLE_NAME}/{name}", local, tf.GraphKeys.LOCAL_VARIABLES
            )
        super()._add_copies(name, local)


class ElasticAverageOptimizer(Optimizer):
    """Every `communication_period` steps, a worker's variables and the center move towards each other.

    Args:
        opt: the optimiser of each worker.
        num_worker: how many workers there are.
        ea_custom_getter: what the variables were made with.
        communication_period: how many steps of a worker lie between two moves.
        moving_rate: the part of the difference by which both move; 0.9 / period / workers if None.
        rho: the strength of the spring: the loss grows by half of it times the squared difference;
            `moving_rate` over the optimiser's learning rate if None.
        use_locking, name: as other optimisers'.
        synchronous: whether the workers wait for each other before they begin.
    """

    BETA = 0.9

    def __init__(
        self,
        opt: Any,
        num_worker: int,
        ea_custom_getter: Any,
        communication_period: int = 10,
        moving_rate: float | None = None,
        rho: float | None = None,
        use_locking: bool = True,
        synchronous: bool = False,
        name: str = "ElasticAverageOptimizer",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt, self._num_worker, self._getter = opt, num_worker, ea_custom_getter
        self._period, self._synchronous = communication_period, synchronous
        self._moving_rate = moving_rate
        if moving_rate is None:
            self._moving_rate = self.BETA / communication_period / num_worker
        self._rho = self._moving_rate / opt._learning_rate if rho is None else rho

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """The gradients of the loss with the springs' energies; the arguments are tf.train.Optimizer's."""
        variables = list(tf.trainable_variables() if var_list is None else var_list)
        springs = [
            tf.nn.l2_loss(var - self._getter.local_centers[var.name])
            for var in variables
            if var.name in self._getter.local_centers
        ]
        total = loss + self._rho * tf.add_n(springs) if springs else loss
        return self._opt.compute_gradients(  # type: ignore[no-any-return]
            total,
            variables,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The step of the worker's variables, and the move, when it is due; that counts the global step.

        Raises ValueError for a variable that the getter did not make.
        """
        pairs = list(grads_and_vars)
        variables = [var for grad, var in pairs if grad is not None]
        centers = [self._getter.center_of(var) for var in variables]
        copies = [self._getter.local_centers[var.name] for var in variables]
        step = count_steps(self._getter, self._opt.apply_gradients(pairs))
        return at_multiples(step, self._period, lambda: self._move(variables, centers, copies), global_step)

    def _move(self, variables: Any, centers: Any, copies: Any) -> Any:
        pulled = [tf.assign(copy, center.read_value()) for copy, center in zip(copies, centers, strict=True)]
        with tf.control_dependencies([each.op for each in pulled]):
            steps = [
                self._moving_rate * (var.read_value() - copy.read_value())
                for var, copy in zip(variables, copies, strict=True)
            ]
        with tf.control_dependencies(steps):
            moves = [tf.assign_sub(var, step).op for var, step in zip(variables, steps, strict=True)]
            moves += [tf.assign_add(center, step).op for center, step in zip(centers, steps, strict=True)]
        return tf.group(*moves)

    def get_init_op(self, task_index: int) -> Any:
        """The operation by which the variables and copies of worker `task_index` become the centers."""
        assigned = []
        for var in tf.local_variables():
            if var.name in self._getter.centers:
                center = self._getter.centers[var.name]
                assigned.append(tf.assign(var, center).op)
                assigned.append(tf.assign(self._getter.local_centers[var.name], center).op)
        if not self._synchronous:
            return tf.group(*assigned)
        queues = [
            tf.FIFOQueue(self._num_worker, [tf.bool], shapes=[[]], shared_name=f"elastic_average_{worker}")
            for worker in range(self._num_worker)
        ]
        with tf.control_dependencies(assigned):
            others = [queue.enqueue(False) for i, queue in enumerate(queues) if i != task_index]
        with tf.control_dependencies(others):
            return tf.group(queues[task_index].dequeue_many(self._num_worker - 1))

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> Any:
        """A hook that runs `get_init_op` when the session begins."""
        return InitOpHook(lambda: self.get_init_op(task_index))

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Any:
        """A Saver that saves the centers under their variables' names, for evaluation.

        Args:
            var_list: a dictionary of variables by name; all that can be saved if None.
            name, **kwargs: as tf.train.Saver's.
        """
        if var_list is None:
            var_list = [*tf.global_variables(), *tf.local_variables()]
        if not isinstance(var_list, dict):
            var_list = {var.op.name: var for var in var_list}
        kept = {id(each) for each in self._getter.centers.values()}
        kept |= {id(each) for each in self._getter.local_centers.values()}
        swapped = {
            key: self._getter.centers.get(var.name, var)
            for key, var in var_list.items()
            if id(var) not in kept and (var.name in self._getter.centers or var in tf.global_variables())
        }
        return tf.train.Saver(swapped, name=name, **kwargs)
