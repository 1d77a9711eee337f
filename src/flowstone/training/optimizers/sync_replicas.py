"""`SyncReplicasOptimizer`: synchronous training by several workers (white paper section 7, Figure 6).

Each worker computes gradients and gives them, with the step that it started from, to conditional accumulators
(`ops/queues/accumulators.py`), which drop stale ones. The chief's queue runner takes their averages once
`replicas_to_aggregate` have come, lets the wrapped optimiser apply them, and puts as many tokens into a queue
as there are workers. A worker's step ends when it gets a token, which is its next step's number. With more
workers than `replicas_to_aggregate` the slowest are backups.

What the chief must run and start, after the variables are initialised: `chief_init_op`, `get_init_tokens_op`,
`get_chief_queue_runner`; the other workers: `local_step_init_op`. `make_session_run_hook` does it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from flowstone.framework.graphs.graph import GraphKeys, Operation
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.arrays.constants import fill
from flowstone.ops.control.control_flow import group, no_op
from flowstone.ops.queues.accumulators import ConditionalAccumulator, SparseConditionalAccumulator
from flowstone.ops.queues.queues import FIFOQueue
from flowstone.ops.variables.assignments import assign
from flowstone.ops.variables.variable_collections import global_variables, report_uninitialized_variables
from flowstone.ops.variables.variables import Variable
from flowstone.training.hooks.session_run_hook import SessionRunHook
from flowstone.training.input.queue_runner import QueueRunner
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["SyncReplicasOptimizer", "SyncReplicasOptimizerHook"]


class SyncReplicasOptimizer(Optimizer):
    """Wraps `opt`, so that one update is made of the gradients of several workers.

    Args:
        replicas_to_aggregate: how many gradients an update averages.
        total_num_replicas: how many workers there are (default: as many).
        variable_averages: an ExponentialMovingAverage to apply after each update, of
            `variables_to_average`.
    """

    def __init__(
        self,
        opt: Any,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        self._tokens_per_step = max(self._total_num_replicas, replicas_to_aggregate)
        self._variable_averages, self._variables_to_average = variable_averages, variables_to_average
        self._gradients_applied = False
        self._global_step: Any = None
        self._local_step: Any = None
        self._sync_token_queue: Any = None
        self._chief_queue_runner: Any = None
        self._accumulators: list[tuple[Any, str]] = []
        self.local_step_init_op: Any = None
        self.chief_init_op: Any = None
        self.ready_for_local_init_op: Any = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimiser's pairs (gradient, variable)."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """What a worker runs: it gives its gradients and waits for a token.

        Raises ValueError without `global_step`, without variables, and for what is no gradient.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        self._make_local_step()
        graph = scope.get_default_graph()
        with _root(), graph.name_scope(self._name) as own_scope:
            given, taken = self._accumulate(pairs)
        with _on(global_step.device), _root():
            update = self._opt.apply_gradients(zip(taken, [v for _, v in pairs]), global_step)
        with _on(global_step.device), _root():
            self._sync_token_queue, dummy = (
                FIFOQueue(capacity, global_step.dtype.base_dtype, shapes=(), name=name, shared_name=name)
                for name, capacity in (("sync_token_q", -1), ("dummy_queue", 1))
            )
        with graph.control_dependencies(given), _on(global_step.device), _root():
            train_op = assign(self._local_step, self._sync_token_queue.dequeue())
        with graph.control_dependencies([update]), _on(global_step.device), _root():
            sync_op = self._put_tokens(self._tokens_per_step)
        if self._variable_averages is not None:
            with graph.control_dependencies([sync_op]), _root():
                sync_op = self._variable_averages.apply(self._variables_to_average)
        with _on(global_step.device), _root():  # which closes its queue at the end; tokens outlive sessions
            self._chief_queue_runner = QueueRunner(dummy, [sync_op])
        with graph.name_scope(own_scope):
            self._make_chief_init()
        self._gradients_applied = True
        return train_op

    def _make_local_step(self) -> None:
        """The number of the step that the worker's gradients are computed from, on the worker."""
        with scope.get_default_graph().colocate_with(no_op()):
            self._local_step = Variable(
                0,
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                dtype=self._global_step.dtype.base_dtype,
                name="sync_rep_local_step",
            )
        self.local_step_init_op = assign(self._local_step, self._global_step)
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())

    def _accumulate(self, pairs: list[tuple[Any, Any]]) -> tuple[list[Operation], list[Any]]:
        """What gives the gradients to accumulators, and what is taken from these."""
        given: list[Operation] = []
        taken: list[Tensor | IndexedSlices | None] = []
        for gradient, variable in pairs:
            shared_name = variable.name + "/grad_accum"
            with _on(variable.device):
                if gradient is None:
                    taken.append(None)
                    continue
                if isinstance(gradient, Tensor):
                    dense = ConditionalAccumulator(gradient.dtype, variable.get_shape(), shared_name)
                    given.append(dense.apply_grad(gradient, self._local_step))
                    taken.append(dense.take_grad(self._replicas_to_aggregate))
                    self._accumulators.append((dense, variable.device))
                elif isinstance(gradient, IndexedSlices):
                    sparse = SparseConditionalAccumulator(gradient.dtype, None, shared_name)
                    given.append(sparse.apply_indexed_slices_grad(gradient, self._local_step))
                    taken.append(sparse.take_indexed_slices_grad(self._replicas_to_aggregate))
                    self._accumulators.append((sparse, variable.device))
                else:
                    raise ValueError("Unknown grad type!")
        return given, taken

    def _put_tokens(self, count: int) -> Operation:
        return self._sync_token_queue.enqueue_many((fill([count], self._global_step),))  # type: ignore[no-any-return]

    def _make_chief_init(self) -> None:
        started: list[Any] = [self.local_step_init_op]
        for accumulator, device in self._accumulators:
            with _on(device):
                started.append(accumulator.set_global_step(self._global_step, name="SetGlobalStep"))
        self.chief_init_op = group(*started)

    # ---- what the chief starts

    def get_chief_queue_runner(self) -> QueueRunner:
        """The chief's: makes an update whenever enough gradients have come. ValueError before
        `apply_gradients`.
        """
        if not self._gradients_applied:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner  # type: ignore[no-any-return]

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """Puts in the tokens with which the first steps end (-1: `replicas_to_aggregate`).

        ValueError before `apply_gradients`, and for fewer than the first update needs.
        """
        if not self._gradients_applied:
            raise ValueError("get_init_tokens_op() should be called after apply_gradients().")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError(
                f"Too few tokens to finish the first step: {num_tokens} (given) vs {needed} (needed)"
            )
        if num_tokens <= 0:
            return no_op(name="no_init_tokens")
        with _on(self._global_step.device), _root():
            return self._put_tokens(num_tokens)

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SyncReplicasOptimizerHook:
        """The hook that initialises a worker, and starts the chief's queue runner."""
        return SyncReplicasOptimizerHook(self, is_chief, num_tokens)

    # ---- the wrapped optimiser's state

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimiser's slot."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """The names of the wrapped optimiser's slots."""
        return self._opt.get_slot_names(*args, **kwargs)  # type: ignore[no-any-return]

    def variables(self) -> list[Any]:
        """The wrapped optimiser's variables."""
        return self._opt.variables()  # type: ignore[no-any-return]


class SyncReplicasOptimizerHook(SessionRunHook):
    """Initialises a worker's part of a `SyncReplicasOptimizer` once its session exists; see there."""

    def __init__(self, sync_optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._sync_optimizer, self._is_chief, self._num_tokens = sync_optimizer, is_chief, num_tokens
        self._queue_runner: Any = None
        self._init_ops: list[Any] = []

    def begin(self) -> None:
        """Adds what is missing to the graph. ValueError before `apply_gradients`."""
        optimizer = self._sync_optimizer
        if not optimizer._gradients_applied:
            raise ValueError("SyncReplicasOptimizer.apply_gradient should be called before using the hook.")
        if self._is_chief:
            self._queue_runner = optimizer.get_chief_queue_runner()
            self._init_ops = [optimizer.chief_init_op, optimizer.get_init_tokens_op(self._num_tokens)]
        else:
            self._init_ops = [optimizer.local_step_init_op]

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the initial operations and starts the queue runner, with `coord`.

        RuntimeError if global variables are not initialised yet.
        """
        lacking = session.run(self._sync_optimizer.ready_for_local_init_op)
        if len(lacking):
            raise RuntimeError(
                "Init operations did not make model ready for local_init. Variables not initialized: "
                f"{', '.join(name.decode() for name in lacking)}"
            )
        for op in self._init_ops:
            session.run(op)
        if self._queue_runner is not None:
            self._queue_runner.create_threads(session, coord=coord, daemon=True, start=True)


def _root() -> Any:
    """The outermost name scope."""
    return scope.get_default_graph().name_scope(None)


def _on(device: str) -> Any:
    return scope.get_default_graph().device(device) if device else contextlib.nullcontext()
