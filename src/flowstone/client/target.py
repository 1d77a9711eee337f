"""`Target`: what sessions connect to; those of one target share its state."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Any

from flowstone.framework import errors
from flowstone.framework.containers import ResourceStore


class Target:
    """The resources that sessions of one target share. The default target "" gives each session its own."""

    _shared: dict[str, Target] = {}
    _lock = threading.Lock()

    def __init__(self) -> None:
        self.resources = ResourceStore()
        self.sessions: weakref.WeakSet[Any] = weakref.WeakSet()

    @classmethod
    def named(cls, name: str) -> Target:
        """The target of this name. NotFoundError for a kind of target that does not exist."""
        if not name:
            return cls()
        if name != "local":
            raise errors.NotFoundError(
                None,
                None,
                f"No session factory registered for the target {name!r}; there are '' and 'local'.",
            )
        with cls._lock:
            return cls._shared.setdefault(name, cls())

    def reset(self, containers: Iterable[str]) -> None:
        """Drops containers (all if none is named) and ends the target's sessions."""
        self.resources.reset(containers)
        for session in list(self.sessions):
            session._cancel()
