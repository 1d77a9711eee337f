"""Steps of training as objects, and what runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import DistributionStrategy, get_replica_context

__all__ = ["Monitor", "StandardInputStep", "StandardSingleLossStep", "Step"]


class Step:
    """What is done again and again under a strategy; subclasses give an operation when called.

    Args:
        distribution: the strategy.
    """

    def __init__(self, distribution: DistributionStrategy) -> None:
        self._distribution = distribution

    @property
    def distribution(self) -> DistributionStrategy:
        """The strategy."""
        return self._distribution

    def initialize(self) -> Any:
        """What a session runs before the first step."""
        return []


class StandardInputStep(Step):
    """A step with inputs.

    Args:
        dataset_fn: a function without arguments that makes the Dataset.
        distribution: the strategy.
    """

    def __init__(self, dataset_fn: Callable[[], Any], distribution: DistributionStrategy) -> None:
        super().__init__(distribution)
        self._iterator = distribution.make_input_fn_iterator(lambda _: dataset_fn())

    def initialize(self) -> Any:
        """The operation that starts the inputs."""
        return self._iterator.initialize()


class StandardSingleLossStep(StandardInputStep):
    """A step of training with one loss.

    Args:
        dataset_fn: a function without arguments that makes the Dataset.
        loss_fn: from a replica's context and an element to the loss.
        optimizer: minimises the loss.
        distribution: the strategy.
        iterations_per_step: how many elements a step takes, one after another.
    """

    def __init__(
        self,
        dataset_fn: Callable[[], Any],
        loss_fn: Callable[[Any, Any], Any],
        optimizer: Any,
        distribution: DistributionStrategy,
        iterations_per_step: int = 1,
    ) -> None:
        super().__init__(dataset_fn, distribution)
        self._loss_fn = loss_fn
        self._optimizer = optimizer
        self._iterations_per_step = iterations_per_step

    def _iteration(self, inputs: Any) -> Any:
        return self._optimizer.minimize(self._loss_fn(get_replica_context(), inputs))

    def __call__(self) -> Any:
        """The operation of a step."""
        done: list[Any] = []
        for _ in range(self._iterations_per_step):
            with tf.control_dependencies(done):
                done = [self._distribution.experimental_run(self._iteration, self._iterator)]
        return self._distribution.group(done[0])


class Monitor:
    """Runs a step.

    Args:
        step_callable: a Step.
        session: the session that runs it, in which the step's inputs are started.

    Raises ValueError without a session.
    """

    def __init__(self, step_callable: Any, session: Any = None) -> None:
        if session is None:
            raise ValueError("a Monitor needs the session that runs the steps")
        self._run_step = session.make_callable(step_callable())
        session.run(step_callable.initialize())

    def run_steps(self, num_steps: int | None = None) -> None:
        """Runs this many steps; by default until the inputs end."""
        done = 0
        while num_steps is None or done < num_steps:
            try:
                self._run_step()
            except tf.errors.OutOfRangeError:
                return
            done += 1
