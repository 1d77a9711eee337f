"""Workers train copies of a model, which are averaged now and then (`ModelAverageOptimizer`).

S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with elastic averaging SGD", 2015, compares such schemes.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.opt.center_variables import (
    GLOBAL_VARIABLE_NAME,
    CenterGetter,
    at_multiples,
    count_steps,
)
from flowstone.training.hooks.session_run_hook import SessionRunHook
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["GLOBAL_VARIABLE_NAME", "ModelAverageCustomGetter", "ModelAverageOptimizer"]


class ModelAverageCustomGetter(CenterGetter):
    """Makes trainable variables local ones, on `worker_device`, each with a mean of all workers'."""


class ModelAverageOptimizer(Optimizer):
    """Every `interval_steps` steps of the workers, each gets the mean of all workers' variables.

    Args:
        opt: the optimiser of each worker.
        num_worker: how many workers there are, all of which take part.
        is_chief: whether this is the worker that takes the mean.
        ma_custom_getter: what the variables were made with.
        interval_steps: how many steps of a worker lie between two means.
        use_locking, name: as other optimisers'.
    """

    def __init__(
        self,
        opt: Any,
        num_worker: int,
        is_chief: bool,
        ma_custom_getter: Any,
        interval_steps: int = 100,
        use_locking: bool = True,
        name: str = "ModelAverageOptimizer",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt, self._num_worker, self._is_chief = opt, num_worker, is_chief
        self._getter, self._interval_steps = ma_custom_getter, interval_steps

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Those of the worker's optimiser."""
        return self._opt.compute_gradients(*args, **kwargs)  # type: ignore[no-any-return]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The step of the worker's variables, and the mean, when it is due; that counts the global step.

        Raises ValueError without gradients, or for a variable that the getter did not make.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        variables = [var for grad, var in pairs if grad is not None]
        centers = [self._getter.center_of(var) for var in variables]
        step = count_steps(self._getter, self._opt.apply_gradients(pairs))
        sums = [
            tf.ConditionalAccumulator(
                center.dtype.base_dtype, shape=center.shape, shared_name=f"{center.op.name}/accumulator"
            )
            for center in centers
        ]
        tokens = tf.FIFOQueue(-1, [tf.bool], shapes=[[]], shared_name="model_average_tokens")
        rounds = step // self._interval_steps
        return at_multiples(
            step,
            self._interval_steps,
            lambda: self._meet(variables, centers, sums, tokens, rounds),
            global_step,
        )

    def _meet(self, variables: Any, centers: Any, sums: Any, tokens: Any, rounds: Any) -> Any:
        given = [
            each.apply_grad(var.read_value(), local_step=rounds)
            for each, var in zip(sums, variables, strict=True)
        ]
        with tf.control_dependencies(given):
            means = []
            if self._is_chief:
                for each, center in zip(sums, centers, strict=True):
                    means.append(tf.assign(center, each.take_grad(self._num_worker)).op)
            with tf.control_dependencies(means):
                ready = []
                if self._is_chief:
                    ready.append(tokens.enqueue_many([tf.fill([self._num_worker], True)]))
        with tf.control_dependencies([*given, *ready]):
            token = tokens.dequeue()
        with tf.control_dependencies([token]):
            return tf.group(
                *[tf.assign(var, center.read_value()) for var, center in zip(variables, centers, strict=True)]
            )

    def get_init_op(self) -> Any:
        """The operation by which the worker's variables become the means."""
        return tf.group(
            *[
                tf.assign(var, self._getter.centers[var.name])
                for var in tf.local_variables()
                if var.name in self._getter.centers
            ]
        )

    def make_session_run_hook(self) -> Any:
        """A hook that runs `get_init_op` when the session begins."""
        return InitOpHook(self.get_init_op)


class InitOpHook(SessionRunHook):
    """Runs an operation, made by `make()` when the graph is complete, once the session is there."""

    def __init__(self, make: Any) -> None:
        self._make = make
        self._op: Any = None

    def begin(self) -> None:
        """Makes the operation."""
        self._op = self._make()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs it."""
        session.run(self._op)
