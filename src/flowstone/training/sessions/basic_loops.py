"""`basic_train_loop`: a training loop under a `Supervisor`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowstone.framework import errors
from flowstone.training.sessions.supervisor import Supervisor

__all__ = ["basic_train_loop"]


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: str = "",
) -> None:
    """Calls ``train_step_fn(session, *args, **kwargs)`` until the supervisor stops.

    If a process is lost (AbortedError), it goes on with a new session, from the last checkpoint; other errors
    are raised.
    """
    lost = True
    while lost:
        lost = False
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *(args or ()), **(kwargs or {}))
        except errors.AbortedError:
            lost = True
