"""Strategies, and the contexts in which code finds its strategy.

A strategy says where variables lie and where a function runs. With one replica nothing is copied or added up:
what a replica gives is the result; `several_replicas` has the rest. Code asks `get_strategy` and
`get_replica_context`; outside of any scope these are of a strategy that does nothing.

Contexts lie on a stack of the thread: a scope puts its strategy there (the cross-replica context), a function
that is run has a `ReplicaContext` above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distributed_values import local_values
from flowstone.contrib.distribute.input_iterators import (
    DistributedDataset,
    FunctionIterator,
    InputContext,
    InputIterator,
)
from flowstone.contrib.distribute.reduce_ops import ReduceOp, reduce_op_of
from flowstone.ops.variables.replicas import contexts, current_context, current_replica, within

__all__ = [
    "DistributionStrategy",
    "InputContext",
    "ReduceOp",
    "ReplicaContext",
    "UpdateContext",
    "get_cross_replica_context",
    "get_loss_reduction",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "require_replica_context",
    "strategy_of_several",
]


class UpdateContext:
    """The context in which variables are updated.

    Args:
        device: where.
    """

    def __init__(self, device: Any) -> None:
        self.device = device
        self._within: Any = None

    def __enter__(self) -> UpdateContext:
        self._within = within(self)
        self._within.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._within.__exit__(*exception)


class ReplicaContext:
    """What the code of a replica knows of it.

    Args:
        strategy: the strategy that runs it.
        replica_id_in_sync_group: its number, a tensor or an int.
    """

    def __init__(self, strategy: DistributionStrategy, replica_id_in_sync_group: Any) -> None:
        self._strategy = strategy
        self._replica_id_in_sync_group = replica_id_in_sync_group

    @property
    def strategy(self) -> DistributionStrategy:
        """The strategy that runs the replica."""
        return self._strategy

    @property
    def replica_id_in_sync_group(self) -> Any:
        """The replica's number, from 0."""
        return self._replica_id_in_sync_group

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas compute a step together."""
        return self._strategy.num_replicas_in_sync

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of the replica."""
        return tuple(self._strategy.extended.worker_devices)

    def merge_call(self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """What `merge_fn` gives for the strategy and these arguments, in the cross-replica context."""
        with within(self._strategy):
            return merge_fn(self._strategy, *args, **(kwargs or {}))

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """The sum or the mean of a value, or a structure of them, over the replicas: of one the value."""
        reduce_op_of(reduce_op)
        return tf.nest.map_structure(tf.identity, value)

    def __enter__(self) -> ReplicaContext:
        contexts.stack.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        contexts.stack.pop()


class DistributionStrategy:
    """Where variables lie and where functions run.

    Args:
        extended: what libraries ask of the strategy.
    """

    def __init__(self, extended: Any) -> None:
        self._extended = extended
        extended.strategy = self
        self._scales_losses = False

    @contextmanager
    def scaling_losses(self) -> Iterator[None]:
        """Within, which is an Estimator's training, the replicas' losses become one by their mean."""
        before, self._scales_losses = self._scales_losses, True
        try:
            yield
        finally:
            self._scales_losses = before

    def loss_reduction(self) -> ReduceOp:
        """How the replicas' losses become one: by their sum; in an Estimator's training by their mean, unless
        the last of the graph's losses is a sum itself."""
        last = tf.get_default_graph().last_loss_reduction
        is_mean = self._scales_losses and last != tf.losses.Reduction.SUM
        return ReduceOp.MEAN if is_mean else ReduceOp.SUM

    def parts_of_loss(self) -> int:
        """By what a replica's loss is divided before gradients are taken, whose sum is applied."""
        return self.num_replicas_in_sync if self.loss_reduction() is ReduceOp.MEAN else 1

    def input_context(self) -> InputContext:
        """What an input function is told: which of the replicas' inputs it makes."""
        return InputContext(num_replicas_in_sync=self.num_replicas_in_sync)

    @property
    def extended(self) -> Any:
        """What libraries ask of the strategy."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas compute a step together."""
        count: int = self._extended.num_replicas_in_sync
        return count

    @contextmanager
    def scope(self) -> Iterator[DistributionStrategy]:
        """Within, this is the strategy, and variables are resource variables on its device.

        Raises RuntimeError within the scope of another strategy.
        """
        current = get_strategy()
        if has_strategy() and current is not self:
            raise RuntimeError(f"Mixing different strategies: {self} within the scope of {current}")
        with ExitStack() as stack:
            if self._extended.device is not None:
                stack.enter_context(tf.device(self._extended.device))
            scope = tf.get_variable_scope()
            stack.enter_context(tf.variable_scope(scope, use_resource=True, auxiliary_name_scope=False))
            if current is not self:
                stack.enter_context(self._extended.making_variables())
            yield stack.enter_context(within(self))

    def experimental_run_v2(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """What `fn` gives for these arguments on each replica. RuntimeError in the code of a replica."""
        if current_replica() is not None:
            raise RuntimeError(
                "Method requires being in cross-replica context, use get_replica_context().merge_call()"
            )
        with self.scope():
            return self._extended.call_for_each_replica(fn, args, kwargs)

    def experimental_run(self, fn: Callable[..., Any], input_iterator: Any = None) -> Any:
        """What `fn` gives on each replica, for the next element of an iterator if there is one."""
        with self.scope():
            args = () if input_iterator is None else (input_iterator.get_next(),)
        return self.experimental_run_v2(fn, args)

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """The sum or the mean of a value over the replicas, and over an axis if one is given.

        Raises ValueError for another `reduce_op`.
        """
        reduced = self._extended.reduce(reduce_op_of(reduce_op), value, axis)
        return local_values(reduced)[0]

    def unwrap(self, value: Any) -> tuple[Any, ...]:
        """The values of the replicas on this machine."""
        return local_values(value)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of the replicas on this machine."""
        return self.unwrap(value)

    def group(self, value: Any, name: str | None = None) -> Any:
        """An operation that has run what the replicas gave."""
        values = self.unwrap(value)
        return values[0] if name is None and len(values) == 1 else tf.group(*values, name=name)

    @property
    def _several_devices(self) -> tuple[str, ...]:
        """The devices of the replicas, if there are several."""
        devices: tuple[str, ...] = self._extended.worker_devices
        return devices if len(devices) > 1 else ()

    splits_batches = True  # whether a Dataset's batches are of all replicas together

    def make_dataset_iterator(self, dataset: Any) -> Any:
        """An iterator over a Dataset, with `initialize` and `get_next`, which gives each replica its part."""
        return InputIterator(dataset, self._several_devices, self.splits_batches)

    def make_input_fn_iterator(
        self, input_fn: Callable[[InputContext], Any], replication_mode: Any = "PER_WORKER"
    ) -> Any:
        """An iterator over the Dataset, or over what the function gives, that `input_fn` makes; each replica
        gets an element of its own."""
        made, devices = input_fn(self.input_context()), self._several_devices
        return FunctionIterator(made, len(devices) or 1) if callable(made) else InputIterator(made, devices)

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """The Dataset of the slices of arrays."""
        return tf.data.Dataset.from_tensor_slices(numpy_input)

    def experimental_distribute_dataset(self, dataset: Any) -> Any:
        """The Dataset whose batches are split among the replicas; of one replica the Dataset itself."""
        devices = self._several_devices
        return DistributedDataset(dataset, devices, True) if devices else dataset

    def experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any]
    ) -> Any:
        """The Dataset that a function makes of an `InputContext`, each element of which is one replica's."""
        made, devices = dataset_fn(self.input_context()), self._several_devices
        return DistributedDataset(made, devices, False) if devices else made

    def update_config_proto(self, config_proto: Any) -> Any:
        """A session's configuration as the strategy needs it: a copy, with as many CPU devices as it uses."""
        copy = tf.ConfigProto()
        if config_proto is not None:
            copy.CopyFrom(config_proto)
        devices = [tf.DeviceSpec.from_string(each) for each in self._several_devices]
        count = 1 + max((each.device_index or 0 for each in devices if each.device_type == "CPU"), default=0)
        if count > 1:
            copy.device_count["CPU"] = max(count, copy.device_count["CPU"])
        return copy

    def configure(
        self, session_config: Any = None, cluster_spec: Any = None, task_type: Any = None, task_id: Any = None
    ) -> None:
        """Nothing: a strategy of one replica needs no cluster."""

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """A scope in which variables lie where another does."""
        return tf.colocate_with(colocate_with_variable)


@cache
def _default() -> DistributionStrategy:
    """The strategy that does nothing."""
    extended = import_module("flowstone.contrib.distribute.strategy_extended")  # which imports this one
    return DistributionStrategy(extended.StrategyExtended(None))


def _current() -> Any:
    found = current_context()
    return ReplicaContext(_default(), 0) if found is None else found


def get_replica_context() -> ReplicaContext | None:
    """The replica whose code this is; None in the cross-replica context."""
    context = _current()
    return context if isinstance(context, ReplicaContext) else None


def get_cross_replica_context() -> DistributionStrategy | None:
    """The strategy, in its cross-replica context; None in a replica's code."""
    context = _current()
    return context if isinstance(context, DistributionStrategy) else None


def in_cross_replica_context() -> bool:
    """Whether this is the cross-replica context of a strategy."""
    return get_cross_replica_context() is not None


def get_strategy() -> DistributionStrategy:
    """The strategy whose scope this is; outside one that does nothing."""
    for context in reversed(contexts.stack):
        if isinstance(context, ReplicaContext):
            return context.strategy
        if isinstance(context, DistributionStrategy):
            return context
    return _default()


def strategy_of_several() -> DistributionStrategy | None:
    """The strategy whose scope this is if it has several replicas on this machine; else None."""
    strategy = get_strategy()
    return strategy if len(strategy.extended.worker_devices) > 1 else None


def has_strategy() -> bool:
    """Whether this is within the scope of a strategy."""
    return get_strategy() is not _default()


def require_replica_context(replica_ctx: Any) -> None:
    """Raises RuntimeError unless this is the code of the replica `replica_ctx`."""
    if get_replica_context() is not replica_ctx:
        raise RuntimeError("this is called within the replica's own context only")


def get_loss_reduction() -> ReduceOp:
    """How the replicas' losses become one: see `DistributionStrategy.loss_reduction`."""
    return get_strategy().loss_reduction()
