"""`CollectiveAllReduceStrategy`: a replica on each worker, whose gradients are added up by collective
operations.

Each worker runs the same program, in a graph and a session of its own. Variables of the strategy's scope
begin with the first worker's values. Optimisers apply the sum of the workers' gradients, so the variables
stay equal; for the mean, a program divides its loss by `num_replicas_in_sync`, as with TensorFlow's.
Estimators apply the mean, unless the loss is a sum.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.cluster_strategy import ClusterStrategy
from flowstone.contrib.distribute.distribute_lib import (
    DistributionStrategy,
    ReplicaContext,
    get_loss_reduction,
)
from flowstone.contrib.distribute.input_iterators import FunctionIterator, InputContext, InputIterator
from flowstone.contrib.distribute.reduce_ops import ReduceOp, reduce_op_of
from flowstone.contrib.distribute.strategy_extended import StrategyExtended
from flowstone.framework.names.refusals import refuse
from flowstone.ops.collectives import collective_ops
from flowstone.training.optimizers.gradient_reduction import reducing_gradients

__all__ = ["CollectiveAllReduceStrategy"]

_GROUP = 1
_SENT = ("bool", "float16", "float32", "float64", "int32", "int64")
_JOBS = ("chief", "master", "worker")


class _Workers:
    """The group of the workers: this one's job, task and rank, and how many there are. `instances` are the
    numbers of its operations, given out in the order in which the workers' equal programs ask; `hint` says
    how large gradients are to travel."""

    def __init__(self, cluster: Any, task_type: str | None, task_id: int | None, hint: str = "auto") -> None:
        self.hint = hint
        tasks = {} if not cluster else tf.train.ClusterSpec(cluster).as_dict()
        counts = {job: len(tasks[job]) for job in _JOBS if job in tasks}
        self.job, self.task = task_type or "worker", task_id or 0
        self.size = sum(counts.values()) or 1
        if counts and self.job not in counts:
            raise ValueError(f"{self.job} is none of the jobs that train: {', '.join(counts)}")
        before = itertools.takewhile(lambda job: job != self.job, counts)
        self.rank = sum(counts[job] for job in before) + self.task if counts else 0
        self.leader = f"/job:{next(iter(counts))}/task:0" if counts else ""
        self.place = f"/job:{self.job}/task:{self.task}" if counts else ""
        self.instances = itertools.count(1)

    def reduced(self, value: Any, reduce_op: ReduceOp) -> Any:
        """The sum or the mean of a value, a tensor or IndexedSlices, over the workers."""
        if self.size == 1:
            return value
        value = tf.convert_to_tensor(value)
        final = "Div" if reduce_op == ReduceOp.MEAN else "Id"
        return collective_ops.all_reduce(
            value, self.size, _GROUP, next(self.instances), "Add", final, communication_hint=self.hint
        )

    def first_of(self, value: Any) -> Any:
        """The first worker's value."""
        value, instance = tf.convert_to_tensor(value), next(self.instances)
        if not value.shape.is_fully_defined():
            raise ValueError(f"The shape of {value.name}, from which a variable begins, must be known")
        keys = self.size, _GROUP, instance
        if self.rank == 0:
            return collective_ops.broadcast_send(value, value.shape, value.dtype, *keys)
        return collective_ops.broadcast_recv(value.shape, value.dtype, *keys)


class _Replica(ReplicaContext):
    """A worker's replica."""

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """The sum or the mean of a value, or a structure of them, over the workers."""
        return self.strategy.extended.reduce_to(reduce_op, value, None)


class _Extended(StrategyExtended):
    experimental_between_graph = True

    def __init__(self, device: str, workers: _Workers) -> None:
        super().__init__(device)
        self.workers = workers

    @property
    def should_checkpoint(self) -> bool:  # type: ignore[override]
        """Whether this worker writes checkpoints: the first one does."""
        return self.workers.rank == 0

    @property
    def should_save_summary(self) -> bool:  # type: ignore[override]
        """Whether this worker writes summaries: the first one does."""
        return self.workers.rank == 0

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """What `fn` gives for these arguments on this worker."""
        with tf.device(self.device), _Replica(self.strategy, self.workers.rank):
            return fn(*args, **(kwargs or {}))

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        """The sum or the mean of a value, or a structure of them, over the workers."""
        kind = reduce_op_of(reduce_op)
        return tf.nest.map_structure(lambda each: self.workers.reduced(each, kind), value)


class CollectiveAllReduceStrategy(ClusterStrategy):
    """A replica on each worker of the cluster that TF_CONFIG or `configure` says; without one, here alone.

    A session needs the configuration of `update_config_proto`, and all workers initialise variables, at the
    same time.

    Args:
        num_gpus_per_worker: 0 or 1.
        communication: "NCCL" (or the enumeration's) for large gradients to go from GPU to GPU, if each worker
            has one of its own; the runtime chooses for others.

    Raises NotInGraphModeError for several GPUs a worker, ValueError for a job that does not train.
    """

    def __init__(self, num_gpus_per_worker: int = 0, communication: Any = "AUTO") -> None:
        self._hint = str(getattr(communication, "value", communication)).lower()
        super().__init__(num_gpus_per_worker)

    def _made(self, cluster: Any, task_type: str | None, task_id: Any) -> _Extended:
        workers = _Workers(cluster, task_type, None if task_id is None else int(task_id), self._hint)
        return _Extended(f"{workers.place}/device:{self._kind}:0", workers)

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of workers."""
        size: int = self.extended.workers.size
        return size

    @contextmanager
    def scope(self) -> Iterator[DistributionStrategy]:
        """As of every strategy; variables begin with the first worker's values, and optimisers apply the sum
        of the workers' gradients."""
        with ExitStack() as stack:
            is_outermost = tf.contrib.distribute.get_strategy() is not self
            stack.enter_context(super().scope())
            if is_outermost and self.num_replicas_in_sync > 1:
                stack.enter_context(tf.variable_creator_scope(self._variable))
                stack.enter_context(reducing_gradients(self._summed))
            yield self

    def _variable(self, next_creator: Callable[..., Any], **arguments: Any) -> Any:
        """A variable; one that all workers share begins with the first one's value."""
        given, kind = arguments.get("initial_value"), arguments.get("dtype")
        is_local = tf.GraphKeys.LOCAL_VARIABLES in (arguments.get("collections") or ())
        if given is None or is_local:
            return next_creator(**arguments)

        def initial_value() -> Any:
            value = tf.convert_to_tensor(given() if callable(given) else given, kind)
            return self.extended.workers.first_of(value) if value.dtype.name in _SENT else value

        arguments["initial_value"] = initial_value
        return next_creator(**arguments)

    def _summed(self, pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        workers, kind = self.extended.workers, get_loss_reduction()
        return [
            (None if gradient is None else workers.reduced(gradient, kind), variable)
            for gradient, variable in pairs
        ]

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """The sum or the mean of a value over the workers, and over an axis if one is given."""
        return self.extended.reduce_to(reduce_op, super().reduce(reduce_op, value, axis), None)

    def input_context(self) -> InputContext:
        """Which of the workers' inputs this one's are."""
        workers = self.extended.workers
        return InputContext(workers.size, workers.rank, workers.size)

    def make_input_fn_iterator(
        self, input_fn: Callable[[InputContext], Any], replication_mode: Any = "PER_WORKER"
    ) -> Any:
        """An iterator over what `input_fn` makes, which the `InputContext` tells which worker it is for."""
        made = input_fn(self.input_context())
        return FunctionIterator(made) if callable(made) else InputIterator(made)

    def make_dataset_iterator(self, dataset: Any) -> Any:
        """Refused with several workers: which part is whose has to be said."""
        return super().make_dataset_iterator(self.experimental_distribute_dataset(dataset))

    def experimental_distribute_dataset(self, dataset: Any) -> Any:
        """Refused with several workers: which part is whose has to be said."""
        if self.num_replicas_in_sync > 1:
            refuse(
                "experimental_distribute_dataset with several workers",
                "make_input_fn_iterator and Dataset.shard",
            )
        return dataset

    def update_config_proto(self, config_proto: Any) -> Any:
        """The configuration of this worker's sessions: a copy, with the leader of the collective operations,
        and no devices but this worker's."""
        copy = super().update_config_proto(config_proto)
        workers = self.extended.workers
        if workers.size > 1:
            copy.experimental.collective_group_leader = workers.leader
            del copy.device_filters[:]
            copy.device_filters.append(workers.place)
        return copy
