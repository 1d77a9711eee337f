"""Runs a function once for each replica; the replicas take turns in building one graph.

The first replica runs in the caller's thread, each other one in a thread of its own. A replica runs until its
function ends or calls `merge_call`; then the next one has its turn. When all have called, the function to
merge runs once, in the caller's thread, with all replicas' arguments, and each replica goes on with its part
of the result. So the order of the graph's nodes is the same in each run:

    replica 0: a ─ merge_call ┐                       ┌─ b
    replica 1:                └─ a ─ merge_call ─ merge ┘      └─ b

A replica begins with the state of the caller's thread: default graph, scopes, variable scope. An error in any
replica's function is raised in the caller's thread, with the lines of the function in its traceback.
"""

from __future__ import annotations

import contextvars
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import ReplicaContext
from flowstone.contrib.distribute.distributed_values import merged, selected
from flowstone.contrib.distribute.reduce_ops import ReduceOp, reduce_op_of
from flowstone.contrib.framework.arg_scope import argument_stack
from flowstone.framework.tensors import scope
from flowstone.ops.variables.replicas import contexts, within
from flowstone.ops.variables.variable_creation import creators
from flowstone.ops.variables.variable_store import store_of
from flowstone.training.optimizers.gradient_reduction import reductions

__all__ = ["Replica", "call_for_each_replica"]


class _GivenUp(BaseException):
    """Ends a replica's thread when another replica failed."""


class Replica(ReplicaContext):
    """What the code of one of several replicas knows of it."""

    def __init__(self, strategy: Any, number: int, run: _Run) -> None:
        super().__init__(strategy, tf.constant(number))
        self.number, self._run = number, run

    @property
    def devices(self) -> tuple[str, ...]:
        """The replica's device."""
        return (self._strategy.extended.worker_devices[self.number],)

    @property
    def variables(self) -> CreatedVariables:
        """The variables that the replicas make."""
        return self._run.variables

    def merge_call(self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """This replica's part of what `merge_fn` gives for the strategy and the arguments of all replicas,
        in the cross-replica context. Every replica must call it, in the same order.

        RuntimeError if another graph is being built than where the replicas began.
        """
        if tf.get_default_graph() is not self._run.graph:
            raise RuntimeError(
                "`merge_call` called while defining a new graph or a tf.function. This can often happen if "
                "the function passed to `strategy.experimental_run()` contains a nested `@tf.function`"
            )
        return self._run.merge(self.number, (merge_fn, tuple(args), dict(kwargs or {})))

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """The sum or the mean of a value, or a structure of them, over the replicas. Its gradient is the sum
        or the mean of the replicas' gradients."""
        kind = reduce_op_of(reduce_op)
        flat = [tf.convert_to_tensor(each) for each in tf.nest.flatten(value)]

        @tf.custom_gradient
        def reduced(*values: Any) -> Any:
            results = self._reduced(kind, values)
            return results, lambda *gradients: self._reduced(kind, gradients)

        results = reduced(*flat)
        return tf.nest.pack_sequence_as(
            value, list(results) if isinstance(results, (list, tuple)) else [results]
        )

    def _reduced(self, kind: ReduceOp, values: Sequence[Any]) -> list[Any]:
        def all_reduced(strategy: Any, *values: Any) -> list[Any]:
            return strategy.extended.batch_reduce_to(kind, [(each, each) for each in values])  # type: ignore[no-any-return]

        return [tf.identity(each) for each in self.merge_call(all_reduced, values)]


class CreatedVariables:
    """The variables that the first replica makes, for the others to find: by their names, without the
    numbers that make names unique, in order."""

    def __init__(self) -> None:
        self._made: dict[str, list[Any]] = {}
        self._found: dict[tuple[int, str], int] = {}

    def note(self, name: str | None, variable: Any) -> None:
        """Keeps a variable that the first replica made under this name."""
        self._made.setdefault(_without_numbers(name), []).append(variable)

    def find(self, number: int, name: str | None) -> Any:
        """The next one of this name for another replica. ValueError if the first made no more."""
        key = _without_numbers(name)
        at = self._found.get((number, key), 0)
        self._found[number, key] = at + 1
        made = self._made.get(key, [])
        if at >= len(made):
            raise ValueError(
                f"Replica {number} makes the variable {name or 'Variable'}, which replica 0 did not make"
            )
        return made[at]


def _without_numbers(name: str | None) -> str:
    return re.sub(r"_\d+(?=/|$)", "", name or "Variable")


class _Turn:
    """Where a replica's thread is: `call` while it waits in `merge_call`, or `is_done`, with an `error`
    or the function's `result`."""

    def __init__(self) -> None:
        self.go = threading.Semaphore(0)
        self.call: tuple[Any, ...] | None = None
        self.controls: tuple[Any, ...] = ()
        self.is_done, self.result = False, None
        self.error: BaseException | None = None
        self.thread: threading.Thread | None = None


class _Run:
    """One call for each replica; see the module."""

    def __init__(self, strategy: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self._strategy, self._function, self._args, self._kwargs = strategy, function, args, kwargs
        self._devices = strategy.extended.worker_devices
        self._turns = [_Turn() for _ in self._devices]
        self._back = threading.Semaphore(0)
        self._is_given_up = False
        self._merged: Any = None
        self.variables = CreatedVariables()
        self.graph = tf.get_default_graph()
        self._state = _State(self.graph)

    def results(self) -> Any:
        """What the function gives for each replica, as one structure."""
        try:
            own = self._replica(0)
            for number in range(1, len(self._turns)):
                self._advance(number)
            if any(not turn.is_done for turn in self._turns[1:]):
                raise _uneven()
            return merged([own, *(turn.result for turn in self._turns[1:])])
        finally:
            self._give_up()

    def _replica(self, number: int) -> Any:
        graph = self.graph
        base = graph.get_name_scope()
        with ExitStack() as stack:
            if number:
                stack.enter_context(
                    tf.name_scope(f"{base}/replica_{number}/" if base else f"replica_{number}/")
                )
            stack.enter_context(Replica(self._strategy, number, self))
            stack.enter_context(tf.device(self._devices[number]))
            stack.enter_context(_same_variables(number > 0))
            args, kwargs = selected(number, self._args), selected(number, self._kwargs)
            return self._function(*args, **kwargs)

    # ---- turns: what the caller's thread does

    def _advance(self, number: int) -> None:
        """Has a replica run until it waits or is done; raises its error."""
        turn = self._turns[number]
        if turn.is_done:
            return
        if turn.thread is None:
            context = contextvars.copy_context()
            turn.thread = threading.Thread(
                target=context.run, args=(self._in_thread, number), name=f"replica {number}", daemon=True
            )
            turn.thread.start()
        else:
            turn.go.release()
        self._back.acquire()
        if turn.error is not None:
            raise turn.error

    def _give_up(self) -> None:
        """Ends the threads of replicas that are not done."""
        self._is_given_up = True
        for turn in self._turns:
            if turn.thread is not None:
                turn.go.release()
                turn.thread.join()

    # ---- what a replica's thread does

    def _in_thread(self, number: int) -> None:
        turn = self._turns[number]
        try:
            with self._state.restored():
                turn.result = self._replica(number)
        except _GivenUp:
            pass
        except BaseException as error:
            turn.error = error
        turn.is_done, turn.call = True, None
        self._back.release()

    def merge(self, number: int, call: tuple[Any, ...]) -> Any:
        """Called by replica `number`: its part of what the function in `call` gives."""
        turn = self._turns[number]
        turn.call, turn.controls = call, self.graph._scopes.control_dependencies
        if number == 0:
            for other in range(1, len(self._turns)):
                self._advance(other)
            self._merge()
        else:
            self._back.release()
            turn.go.acquire()
            if self._is_given_up:
                raise _GivenUp
        return selected(number, self._merged)

    def _merge(self) -> None:
        calls = [turn.call for turn in self._turns]
        if any(call is None for call in calls):
            raise _uneven()
        functions, args, kwargs = zip(*calls)
        outside = self._state.scopes
        controls = dict.fromkeys(each for turn in self._turns for each in turn.controls)
        fields = {"devices": outside["devices"], "colocation": outside["colocation"]}
        for turn in self._turns:
            turn.call = None
        with (
            self.graph._scopes.having(**fields, control_dependencies=tuple(controls)),
            within(self._strategy),
        ):
            self._merged = functions[0](self._strategy, *merged(args), **merged(kwargs))


def _uneven() -> RuntimeError:
    return RuntimeError("Some replicas made a different number of replica_context().merge_call() calls.")


class _State:
    """What the caller's thread knows when replicas begin, to be given to their threads."""

    def __init__(self, graph: Any) -> None:
        store_of(graph).current_scope()
        locals_ = (
            scope.graphs, scope.sessions, scope._lowest, scope.recordings, graph._scopes, contexts, creators,
            reductions, argument_stack, store_of(graph)._stack,
        )  # fmt: skip
        self._states = [
            (each, {key: _copied(value) for key, value in vars(each).items()}) for each in locals_
        ]
        self.scopes = dict(vars(graph._scopes))

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Within, this thread, which has none of its own, has that state."""
        for local, fields in self._states:
            vars(local).update({key: _copied(value) for key, value in fields.items()})
        yield


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, (list, dict)) else value


@contextmanager
def _same_variables(reuse: bool) -> Iterator[None]:
    """Within, `get_variable` finds, if `reuse`, what the first replica made."""
    with tf.variable_scope(tf.get_variable_scope(), reuse=reuse or None, auxiliary_name_scope=False):
        yield


def call_for_each_replica(
    strategy: Any, function: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None
) -> Any:
    """What `function` gives for each replica of `strategy`, as one structure (`distributed_values.merged`).

    Of arguments that have a part for each replica, each gets its own. RuntimeError if the replicas merge
    unequally often; the first error of a replica's function as it is.
    """
    return _Run(strategy, function, tuple(args), dict(kwargs or {})).results()
