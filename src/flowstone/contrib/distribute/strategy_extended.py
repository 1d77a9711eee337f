"""What optimisers and libraries ask of a strategy: here of one replica."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import ReplicaContext, UpdateContext
from flowstone.contrib.distribute.reduce_ops import ReduceOp, reduce_op_of
from flowstone.contrib.distribute.steps_on_iterator import MultiStepContext, run_steps
from flowstone.ops.variables.replicas import container_of

__all__ = ["StrategyExtended"]


class StrategyExtended:
    """What optimisers and libraries ask of a strategy of one replica.

    Args:
        device: of variables and functions; None leaves them where they are.
    """

    experimental_require_static_shapes = False
    experimental_between_graph = False
    experimental_should_init = True
    should_checkpoint = True
    should_save_summary = True

    strategy: Any = None  # whose it is
    num_replicas_in_sync = 1

    def __init__(self, device: str | None) -> None:
        self.device = device

    def making_variables(self) -> AbstractContextManager[Any]:
        """Within, which is the strategy's scope, variables are made as it wants them."""
        return nullcontext()

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Where functions run."""
        return () if self.device is None else (self.device,)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Where variables lie."""
        return self.worker_devices

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """What `fn` gives for these arguments, as the only replica."""
        with tf.device(self.device), ReplicaContext(self.strategy, 0):
            return fn(*args, **(kwargs or {}))

    def reduce(self, kind: ReduceOp, value: Any, axis: int | None) -> Any:
        """The sum or the mean of a value over the replicas, and over an axis if one is given."""
        if axis is None:
            return value
        return tf.reduce_sum(value, axis) if kind == ReduceOp.SUM else tf.reduce_mean(value, axis)

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        """The sum or the mean of a value over the replicas: the value."""
        reduce_op_of(reduce_op)
        return value

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Sequence[Any]) -> list[Any]:
        """`reduce_to` of several pairs."""
        return [self.reduce_to(reduce_op, value, where) for value, where in value_destination_pairs]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """The tensor itself, which is where it is needed."""
        return tensor

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Any = None,
        group: bool = True,
    ) -> Any:
        """What `fn` gives for a variable and these arguments, on the variable's device; without `group` in a
        tuple."""
        with tf.colocate_with(var), UpdateContext(self.device):
            made = fn(var, *args, **(kwargs or {}))
        return made if group else (made,)

    def update_non_slot(
        self,
        colocate_with: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Any = None,
        group: bool = True,
    ) -> Any:
        """What `fn` gives for these arguments, where variables lie; without `group` in a tuple."""
        with tf.device(self.device), UpdateContext(self.device):
            made = fn(*args, **(kwargs or {}))
        return made if group else (made,)

    def non_slot_devices(self, var_list: Any) -> Any:
        """Where values lie that belong to no one variable of `var_list`."""
        return self.parameter_devices

    def experimental_run_steps_on_iterator(
        self, fn: Callable[..., Any], iterator: Any, iterations: Any = 1, initial_loop_values: Any = None
    ) -> MultiStepContext:
        """Several steps in one run: `fn(context, element)` in a loop; see `steps_on_iterator`."""
        return run_steps(self.strategy, fn, iterator, iterations, initial_loop_values)

    def value_container(self, value: Any) -> Any:
        """The variable of all replicas that `value` is a part of; else itself."""
        return container_of(value)

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was made in the scope of this strategy."""
        return getattr(container_of(v), "_strategy", self.strategy) is self.strategy

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """A scope in which variables lie where another does."""
        return self.strategy.colocate_vars_with(colocate_with_variable)

    def read_var(self, variable: Any) -> Any:
        """The value of a variable."""
        return tf.identity(variable)
