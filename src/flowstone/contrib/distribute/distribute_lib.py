"""Strategies of one replica, and the contexts in which code finds its strategy.

A strategy says where variables lie and where a function runs. With one replica nothing is copied or added up:
what a replica gives is the result. Code asks `get_strategy` and `get_replica_context`; outside of any scope
these are of a strategy that does nothing.

Contexts lie on a stack of the thread: a scope puts its strategy there (the cross-replica context), a function
that is run has a `ReplicaContext` above it.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import flowstone as tf

__all__ = [
    "DistributionStrategy",
    "InputContext",
    "ReduceOp",
    "ReplicaContext",
    "StrategyExtended",
    "UpdateContext",
    "get_cross_replica_context",
    "get_loss_reduction",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "require_replica_context",
]


class ReduceOp(enum.Enum):
    """How the values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"


class InputContext(NamedTuple):
    """What a function of inputs is told: the number of pipelines, which one it feeds, and of replicas."""

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1


class _Contexts(threading.local):
    def __init__(self) -> None:
        self.stack: list[Any] = []


_contexts = _Contexts()


@contextmanager
def _within(context: Any) -> Iterator[Any]:
    _contexts.stack.append(context)
    try:
        yield context
    finally:
        _contexts.stack.pop()


class UpdateContext:
    """The context in which variables are updated.

    Args:
        device: where.
    """

    def __init__(self, device: Any) -> None:
        self.device = device
        self._within: Any = None

    def __enter__(self) -> UpdateContext:
        self._within = _within(self)
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
        with _within(self._strategy):
            return merge_fn(self._strategy, *args, **(kwargs or {}))

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """The sum or the mean of a value, or a structure of them, over the replicas: of one the value."""
        _checked(reduce_op)
        return tf.nest.map_structure(tf.identity, value)

    def __enter__(self) -> ReplicaContext:
        _contexts.stack.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _contexts.stack.pop()


def _checked(reduce_op: Any) -> ReduceOp:
    try:
        return ReduceOp[str(getattr(reduce_op, "name", reduce_op)).upper()]
    except KeyError:
        raise ValueError(f"values are reduced by their sum or their mean, not by {reduce_op!r}") from None


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

    def __init__(self, device: str | None) -> None:
        self.device = device

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Where functions run."""
        return () if self.device is None else (self.device,)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Where variables lie."""
        return self.worker_devices

    def call_for_each_replica(
        self, strategy: DistributionStrategy, fn: Callable[..., Any], args: Sequence[Any], kwargs: Any
    ) -> Any:
        """What `fn` gives for these arguments, as the only replica."""
        with tf.device(self.device), ReplicaContext(strategy, 0):
            return fn(*args, **(kwargs or {}))

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        """The sum or the mean of a value over the replicas: the value."""
        _checked(reduce_op)
        return value

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Sequence[Any]) -> list[Any]:
        """`reduce_to` of several pairs."""
        return [self.reduce_to(reduce_op, value, where) for value, where in value_destination_pairs]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """The tensor itself, which is where it is needed."""
        return tensor

    def update(self, var: Any, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """What `fn` gives for a variable and these arguments, on the variable's device."""
        with tf.colocate_with(var), UpdateContext(self.device):
            return fn(var, *args, **(kwargs or {}))

    def read_var(self, variable: Any) -> Any:
        """The value of a variable."""
        return tf.identity(variable)


class DistributionStrategy:
    """Where variables lie and where functions run.

    Args:
        extended: what libraries ask of the strategy.
    """

    def __init__(self, extended: Any) -> None:
        self._extended = extended
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
        return 1

    @contextmanager
    def scope(self) -> Iterator[DistributionStrategy]:
        """Within, this is the strategy, and variables are resource variables on its device.

        Raises RuntimeError within the scope of another strategy.
        """
        current = get_strategy()
        if has_strategy() and current is not self:
            raise RuntimeError(f"Mixing different strategies: {self} within the scope of {current}")
        with ExitStack() as stack:
            stack.enter_context(tf.device(self._extended.device))
            scope = tf.get_variable_scope()
            stack.enter_context(tf.variable_scope(scope, use_resource=True, auxiliary_name_scope=False))
            yield stack.enter_context(_within(self))

    def experimental_run_v2(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """What `fn` gives for these arguments on each replica."""
        with self.scope():
            return self._extended.call_for_each_replica(self, fn, args, kwargs)

    def experimental_run(self, fn: Callable[..., Any], input_iterator: Any = None) -> Any:
        """What `fn` gives on each replica, for the next element of an iterator if there is one."""
        with self.scope():
            args = () if input_iterator is None else (input_iterator.get_next(),)
        return self.experimental_run_v2(fn, args)

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """The sum or the mean of a value over the replicas, and over an axis if one is given.

        Raises ValueError for another `reduce_op`.
        """
        kind = _checked(reduce_op)
        if axis is None:
            return value
        return tf.reduce_sum(value, axis) if kind == ReduceOp.SUM else tf.reduce_mean(value, axis)

    def unwrap(self, value: Any) -> tuple[Any, ...]:
        """The values of the replicas on this machine."""
        return (value,)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of the replicas on this machine."""
        return self.unwrap(value)

    def group(self, value: Any, name: str | None = None) -> Any:
        """An operation that has run what the replicas gave."""
        values = self.unwrap(value)
        return values[0] if name is None and len(values) == 1 else tf.group(*values, name=name)

    def make_dataset_iterator(self, dataset: Any) -> Any:
        """An iterator over a Dataset, with `initialize` and `get_next`."""
        return _InputIterator(dataset)

    def make_input_fn_iterator(
        self, input_fn: Callable[[InputContext], Any], replication_mode: Any = "PER_WORKER"
    ) -> Any:
        """An iterator over the Dataset, or over what the function gives, that `input_fn` makes."""
        made = input_fn(self.input_context())
        return _FunctionIterator(made) if callable(made) else _InputIterator(made)

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """The Dataset of the slices of arrays."""
        return tf.data.Dataset.from_tensor_slices(numpy_input)

    def experimental_distribute_dataset(self, dataset: Any) -> Any:
        """The Dataset itself, all of which is this replica's."""
        return dataset

    def experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any]
    ) -> Any:
        """The Dataset that a function makes of an `InputContext`."""
        return dataset_fn(self.input_context())

    def update_config_proto(self, config_proto: Any) -> Any:
        """A session's configuration as the strategy needs it: a copy."""
        copy = tf.ConfigProto()
        copy.CopyFrom(config_proto)
        return copy

    def configure(
        self, session_config: Any = None, cluster_spec: Any = None, task_type: Any = None, task_id: Any = None
    ) -> None:
        """Nothing: a strategy of one replica needs no cluster."""

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """A scope in which variables lie where another does."""
        return tf.colocate_with(colocate_with_variable)


class _InputIterator:
    """An iterator over a Dataset."""

    def __init__(self, dataset: Any) -> None:
        self._iterator = dataset.make_initializable_iterator()

    def initialize(self) -> Any:
        """The operation that starts the iterator."""
        return self._iterator.initializer

    initializer = property(initialize)

    def get_next(self) -> Any:
        """The next element."""
        return self._iterator.get_next()


class _FunctionIterator:
    """What a function gives each time, as an iterator."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.get_next = function

    def initialize(self) -> Any:
        """An operation that does nothing."""
        return tf.no_op()

    initializer = property(initialize)


_default = DistributionStrategy(StrategyExtended(None))


def _current() -> Any:
    return _contexts.stack[-1] if _contexts.stack else ReplicaContext(_default, 0)


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
    for context in reversed(_contexts.stack):
        if isinstance(context, ReplicaContext):
            return context.strategy
        if isinstance(context, DistributionStrategy):
            return context
    return _default


def has_strategy() -> bool:
    """Whether this is within the scope of a strategy."""
    return get_strategy() is not _default


def require_replica_context(replica_ctx: Any) -> None:
    """Raises RuntimeError unless this is the code of the replica `replica_ctx`."""
    if get_replica_context() is not replica_ctx:
        raise RuntimeError("this is called within the replica's own context only")


def get_loss_reduction() -> ReduceOp:
    """How the replicas' losses become one: see `DistributionStrategy.loss_reduction`."""
    return get_strategy().loss_reduction()
