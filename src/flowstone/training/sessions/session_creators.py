"""Session creators: what makes the sessions of a `MonitoredSession`, and makes them anew after a failure."""

from __future__ import annotations

import abc
from typing import Any

from flowstone.framework.tensors.scope import get_default_graph
from flowstone.training.sessions.scaffold import Scaffold
from flowstone.training.sessions.session_preparation import SessionManager

__all__ = ["ChiefSessionCreator", "SessionCreator", "WorkerSessionCreator"]


class SessionCreator(abc.ABC):
    """Base class: `create_session` makes a session that is ready to run steps."""

    @abc.abstractmethod
    def create_session(self) -> Any:
        """A session; called again when one failed."""


class _ScaffoldCreator(SessionCreator):
    """What both creators share: the scaffold is finalised with the first session."""

    def __init__(self, scaffold: Scaffold | None, master: str, config: Any) -> None:
        self._scaffold = Scaffold() if scaffold is None else scaffold
        self._session_manager: SessionManager | None = None
        self._master, self._config = master, config

    def _get_session_manager(self) -> SessionManager:
        self._scaffold.finalize()
        if self._session_manager is None:
            self._session_manager = SessionManager(
                local_init_op=self._scaffold.local_init_op,
                ready_op=self._scaffold.ready_op,
                ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
                graph=get_default_graph(),
            )
        return self._session_manager


class ChiefSessionCreator(_ScaffoldCreator):
    """Makes the chief's sessions, which restore the latest checkpoint, or initialise the variables.

    Args:
        scaffold: the operations; a default Scaffold if None.
        master: the session's target; `config`: its ConfigProto.
        checkpoint_dir: the folder of checkpoints; `checkpoint_filename_with_path`: one checkpoint instead.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path

    def create_session(self) -> Any:
        """A session whose variables are restored or initialised."""
        manager = self._get_session_manager()
        return manager.prepare_session(
            self._master,
            saver=self._scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=self._scaffold.init_op,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )


class WorkerSessionCreator(_ScaffoldCreator):
    """Makes the sessions of workers that are not the chief, which wait for its variables.

    `max_wait_secs`: how long they wait. Other arguments: as of `ChiefSessionCreator`.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> Any:
        """A session whose variables are ready; DeadlineExceededError if they are not in time."""
        manager = self._get_session_manager()
        return manager.wait_for_session(self._master, config=self._config, max_wait_secs=self._max_wait_secs)
