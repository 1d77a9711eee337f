"""Mutexes: mutual exclusion between parts of steps, without holding a thread.

There are two forms. In TensorFlow's, ``MutexLock`` returns a value, a `MutexLock`; the mutex is free again
when ``ConsumeMutexLock`` has run on it, or when no reference to the value is left. The white paper's (Table
1) is a pair of operations of one step, ``MutexAcquire`` and ``MutexRelease``. In both, a step that fails, is
cancelled or ends releases the mutexes that it had acquired, so that none stays locked without an owner.
Waiting steps acquire it in the order of their requests.

>>> from types import SimpleNamespace
>>> step = SimpleNamespace(on_cancel=lambda callback: lambda: None)
>>> mutex, held = Mutex("m"), []
>>> mutex.acquire(step, lambda outputs, error: held.extend(outputs))
>>> mutex.acquire(step, lambda outputs, error: print("acquired", outputs))
>>> held.pop().release()
acquired (<MutexLock of m>,)
"""

from __future__ import annotations

import weakref
from typing import Any

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, AsyncCall, Environment, StepCall, Value
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.ops.control.waiting import WAITS, WaitingList
from flowstone.ops.queues.queue_attempts import Done
from flowstone.ops.queues.queue_ops import find_resource

__all__: list[str] = []


class Mutex:
    """A mutex: its lock, if it is acquired, and the requests that wait for it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_locked = False
        self.waiting = WaitingList("MutexLock")

    def __repr__(self) -> str:
        return f"<Mutex {self.name}{' (locked)' if self.is_locked else ''}>"

    def acquire(self, step: Any, done: Done) -> None:
        """Calls `done` with a `MutexLock` when the mutex is free; it is acquired then."""

        def attempt() -> Any:
            if self.is_locked:
                return WAITS
            self.is_locked = True
            return (MutexLock(self, step),)

        self.waiting.start(step, done, attempt)

    def release(self) -> None:
        """Ends all waiting requests, because its container is dropped."""
        self.waiting.release()

    def _unlock(self) -> None:
        def free() -> None:
            self.is_locked = False

        self.waiting.change(free)


class MutexLock:
    """The lock of an acquired mutex: until `release` is called, no reference to it is left, or its step is
    cancelled."""

    __slots__ = ("__weakref__", "_is_held", "_remove", "mutex")

    def __init__(self, mutex: Mutex, step: Any) -> None:
        self.mutex, self._is_held = mutex, True
        self._remove: Any = None
        this = weakref.ref(self)

        def cancel() -> None:
            lock = this()
            if lock is not None:
                lock.release()

        self._remove = step.on_cancel(cancel)

    def __repr__(self) -> str:
        return f"<MutexLock of {self.mutex.name}>"

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """Frees the mutex; does nothing the second time."""
        if self._is_held:
            self._is_held = False
            remove, self._remove = self._remove, None
            if remove is not None:
                remove()
            self.mutex._unlock()


def _mutex(node: Node, env: Environment) -> Value:
    return Value(find_resource(node, env, "mutex", Mutex))


mutex_op = op(
    "MutexV2", "-> resource: resource", "container: string = '' ; shared_name: string = ''", stateful=True
)
mutex_op.infer(lambda node: ())
mutex_op.kernel(CPU)(_mutex)

mutex_lock_op = op("MutexLock", "mutex: resource -> mutex_lock: variant", stateful=True, asynchronous=True)
mutex_lock_op.infer(lambda node: ())
mutex_lock_op.kernel(CPU)(lambda node, env: AsyncCall(lambda step, done, mutex: mutex.acquire(step, done)))

consume_mutex_lock_op = op("ConsumeMutexLock", "mutex_lock: variant ->", stateful=True)
consume_mutex_lock_op.infer(lambda node: None)
consume_mutex_lock_op.kernel(CPU)(lambda node, env: MutexLock.release)

# ---- the white paper's Table 1


def _held(step: Any, mutex: Mutex) -> list[MutexLock]:
    """The step's locks of this mutex; they end with the step."""
    return step.state(("mutex", id(mutex)), list)  # type: ignore[no-any-return]


def _acquire(step: Any, done: Any, mutex: Mutex) -> None:
    locks = _held(step, mutex)

    def keep(outputs: Any, error: Any = None) -> None:
        if error is None:
            locks.extend(outputs)
            outputs[0]._remove = None  # it refers to the step, and the step holds the lock
            outputs = ()
        done(outputs, error)

    mutex.acquire(step, keep)


def _release(step: Any, mutex: Mutex) -> None:
    locks = _held(step, mutex)
    if not locks:
        raise errors.FailedPreconditionError(
            None, None, f"MutexRelease: this step has not acquired the mutex '{mutex.name}'"
        )
    locks.pop().release()


mutex_acquire_op = op("MutexAcquire", "mutex: resource ->", stateful=True, asynchronous=True)
mutex_acquire_op.infer(lambda node: None)
mutex_acquire_op.kernel(CPU)(lambda node, env: AsyncCall(_acquire))

mutex_release_op = op("MutexRelease", "mutex: resource ->", stateful=True)
mutex_release_op.infer(lambda node: None)
mutex_release_op.kernel(CPU)(lambda node, env: StepCall(_release))

for _declaration in (mutex_op, mutex_lock_op, consume_mutex_lock_op, mutex_acquire_op, mutex_release_op):
    _declaration.not_differentiable()
