"""`Target`: what sessions connect to; those of one target share its state.

=====================  =====================================================================================
target                 its state
=====================  =====================================================================================
``""``                 the session's own
``"local"``            common to all sessions of this name in the process
``"grpc://host:port"`` that of a cluster, behind the server at this address (`distributed`)
=====================  =====================================================================================
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Any

from flowstone.framework import errors
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.runtime.process.device import LOCALHOST
from flowstone.runtime.steps.collectives import Collectives


class Target:
    """The resources that sessions of one target share. The default target "" gives each session its own."""

    _shared: dict[str, Target] = {}
    _lock = threading.Lock()

    def __init__(self) -> None:
        self.resources = ResourceStore()
        self.collectives = Collectives(LOCALHOST)
        self.sessions: weakref.WeakSet[Any] = weakref.WeakSet()

    @classmethod
    def named(cls, name: str) -> Target:
        """The target of this name. NotFoundError for a kind of target that does not exist."""
        if not name:
            return cls()
        if is_remote(name):
            return RemoteTarget(name)
        if name != "local":
            raise errors.NotFoundError(
                None,
                None,
                f"No session factory registered for the target {name!r}; there are '', 'local' and "
                "'grpc://host:port'.",
            )
        with cls._lock:
            return cls._shared.setdefault(name, cls())

    def reset(self, containers: Iterable[str], config: Any = None) -> None:
        """Drops containers (all if none is named) and ends the target's sessions."""
        self.resources.reset(containers)
        for session in list(self.sessions):
            session._cancel()


class RemoteTarget(Target):
    """A server of a cluster. Its resources are there; this object's own are unused."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def reset(self, containers: Iterable[str], config: Any = None) -> None:
        """Drops containers on the cluster's tasks (those that ``config.device_filters`` name, if any), and
        ends all sessions there."""
        from flowstone.distributed.servers.session_client import reset_cluster

        reset_cluster(self.name, containers, config)


def is_remote(name: str) -> bool:
    """Whether this names a server."""
    return name.startswith("grpc://")
