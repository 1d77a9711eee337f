"""The rendezvous of one step on one worker: values that cross tasks are pushed where that is possible.

A Send to another task gives the value to that task's worker at once, or leaves a copy here under a key of
text until that worker asks for it (RecvTensor). A Receive from another task waits here for the value. The key
is TensorFlow's: sending device, its incarnation, receiving device, name of the tensor, frames and iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from time import perf_counter_ns
from typing import Any, Protocol

import numpy as np
import torch

from flowstone.distributed.task_names import task_of
from flowstone.framework import errors
from flowstone.runtime.steps.rendezvous import Rendezvous

__all__ = ["Neighbourhood", "StepRendezvous", "incarnation_of", "rendezvous_key"]


def rendezvous_key(
    source: str, incarnation: int, target: str, name: str, path: tuple[tuple[str, int], ...] = ()
) -> str:
    """The key under which the tensor `name` goes from one device to another, in this iteration."""
    frames = "/".join([f"{frame}:{number}" for frame, number in path]) or "0:0"
    return f"{source};{incarnation:016x};{target};{name};{frames}"


def incarnation_of(key: str) -> tuple[str, int]:
    """The sending device of a key, and its incarnation. InvalidArgumentError for text that is no key."""
    parts = key.split(";")
    try:
        if len(parts) < 5:
            raise ValueError
        return parts[0], int(parts[1], 16)
    except ValueError:
        raise errors.InvalidArgumentError(None, None, f"Invalid rendezvous key: {key[:200]}") from None


def _way(key: Any) -> tuple[str, str, str]:
    """The tensor's name, the sending and the receiving device of a step's own key."""
    return key[0]  # type: ignore[no-any-return]


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return value.copy() if isinstance(value, np.ndarray) else value


class Neighbourhood(Protocol):
    """The other tasks, as a step needs them."""

    def push(self, task: str, key: str, value: Any) -> bool:
        """Gives a task a value, of which nothing is needed afterwards; False if it will ask for it."""

    def expect(self, task: str, key: str, meeting: StepRendezvous) -> None:
        """Sees to it that the value of this key arrives from a task, or its failure (`arrived`, `failed`)."""


class StepRendezvous(Rendezvous):
    """Where the part of a step that runs on `task` meets the other parts.

    `incarnations`: of the devices of all tasks. `others`: the way to the other tasks.
    """

    def __init__(self, task: str, incarnations: Mapping[str, int], others: Neighbourhood) -> None:
        super().__init__()
        self._task, self._incarnations, self._others = task, incarnations, others
        self._pushed_to: set[str] = set()
        self.arrivals: dict[str, tuple[int, int]] = {}  # key -> when its value came, in ns, and its bytes
        self._unreached: set[str] = set()  # tasks to which a connection broke that had taken values

    def send(self, key: Hashable, value: Any) -> None:
        task = task_of(_way(key)[2])
        if task == self._task:
            super().send(key, value)
            return
        text = self._text(key)
        with self._lock:
            is_asked = text in self._receivers
            self._pushed_to.add(task)
        if is_asked or not self._others.push(task, text, value):
            super().send(text, _copied(value))  # the step goes on, and may change what it is

    def receive(self, key: Hashable, done: Callable[..., None]) -> None:
        task = task_of(_way(key)[1])
        if task == self._task:
            super().receive(key, done)
            return
        text = self._text(key)
        super().receive(text, done)
        with self._lock:
            is_open = text in self._receivers
        if is_open:
            self._others.expect(task, text, self)

    def answer(self, key: str, done: Callable[..., None]) -> None:
        """Gives another task the value of this key, once it is there, as `receive` does. UnavailableError if
        it may have been pushed over a connection that broke."""
        target = task_of(key.split(";")[2])
        with self._lock:
            is_lost = target in self._unreached and key not in self._values
        if is_lost:
            done(
                None, errors.UnavailableError(None, None, f"The connection to {target} broke within the step")
            )
        else:
            super().receive(key, done)

    def arrived(self, key: str, value: Any) -> None:
        """A value has come from another task; one that came before counts."""
        self.arrivals.setdefault(key, (perf_counter_ns(), getattr(value, "nbytes", 0)))
        with self._lock:
            receiver = self._receivers.pop(key, None)
            if receiver is None and self._error is None:
                self._values.setdefault(key, value)
        if receiver is not None:
            receiver((value,), None)

    def failed(self, key: str, error: BaseException) -> None:
        """A value does not come from another task."""
        with self._lock:
            done = self._receivers.pop(key, None)
        if done is not None:
            done(None, error)

    def lost(self, task: str, error: BaseException) -> None:
        """The connection to a task broke: what it was to send does not come, what was sent may not have
        come."""
        with self._lock:
            if task in self._pushed_to:
                self._unreached.add(task)
            keys = [key for key in self._receivers if isinstance(key, str) and key.startswith(f"{task}/")]
        for key in keys:
            self.failed(key, error)

    def is_expected(self, key: str) -> bool:
        """Whether the value of this key is still awaited."""
        return key in self._receivers

    def _text(self, key: Any) -> str:
        (name, source, target), path = key
        return rendezvous_key(source, self._incarnations.get(source, 0), target, name, path)
