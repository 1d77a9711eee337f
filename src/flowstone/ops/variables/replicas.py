"""Which replica's code this is, as rooms below the strategies ask it.

Strategies (`contrib.distribute`) run a function once for each of several replicas, which take turns in
building one graph. What is done once for all of them together, such as an optimiser's update, goes through
`ReplicaOfSeveral.merge_call`. Contexts lie on a stack of the thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

__all__: list[str] = []


@runtime_checkable
class ReplicaOfSeveral(Protocol):
    """The context of the code of one replica among several; `number` counts from 0."""

    number: int
    strategy: Any

    def merge_call(self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """This replica's part of what ``merge_fn(strategy, …)`` gives, called once for all replicas."""


class _Contexts(threading.local):
    def __init__(self) -> None:
        self.stack: list[Any] = []


contexts = _Contexts()


@contextmanager
def within(context: Any) -> Iterator[Any]:
    """Within, `context` is the innermost one."""
    contexts.stack.append(context)
    try:
        yield context
    finally:
        contexts.stack.pop()


def current_context() -> Any:
    """The innermost context, or None."""
    return contexts.stack[-1] if contexts.stack else None


def current_replica() -> ReplicaOfSeveral | None:
    """The replica among several whose code this is, or None."""
    context = current_context()
    return context if isinstance(context, ReplicaOfSeveral) else None


def is_first_replica() -> bool:
    """Whether what happens once for all replicas, such as a summary, happens here."""
    replica = current_replica()
    return replica is None or replica.number == 0


def container_of(variable: Any) -> Any:
    """The variable of all replicas that `variable` is a part of; else itself."""
    found = getattr(variable, "_container", None)
    return variable if found is None else found
