"""`MonitoredSession`: a session that begins, is watched by hooks, recovers, and ends by itself.

The life of one, with its hooks (`session_run_hook.py`):

1. the hooks' `begin`; the session creator finalises the graph and makes a session whose variables are
   restored or initialised; the queue runners start; the hooks' `after_create_session`;
2. steps. One that loses a process goes back to 1, but for `begin`, and is repeated;
3. the hooks' `end`, unless an error ended the `with`; the threads end, the session is closed. OutOfRangeError
   and StopIteration end it as if it was done.

Layers: `layered_sessions.py`. A `SingularMonitoredSession` does not recover.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flowstone.framework import errors
from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.training.hooks.checkpoint_hook import CheckpointSaverHook
from flowstone.training.hooks.session_run_hook import SessionRunHook
from flowstone.training.hooks.step_hooks import StepCounterHook
from flowstone.training.hooks.summary_hooks import SummarySaverHook
from flowstone.training.input.coordinator import Coordinator
from flowstone.training.input.queue_runner import start_queue_runners
from flowstone.training.sessions import layered_sessions
from flowstone.training.sessions.layered_sessions import CoordinatedSession, HookedSession, RecoverableSession
from flowstone.training.sessions.scaffold import Scaffold
from flowstone.training.sessions.session_creators import (
    ChiefSessionCreator,
    SessionCreator,
    WorkerSessionCreator,
)

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["MonitoredSession", "MonitoredTrainingSession", "SingularMonitoredSession"]

_ENDS = (errors.OutOfRangeError, StopIteration)  # the input is used up: no errors
_DEFAULT: Any = object()


class _Monitored:
    """What both kinds share."""

    StepContext = layered_sessions.StepContext

    def __init__(
        self,
        session_creator: SessionCreator,
        hooks: Iterable[SessionRunHook] | None,
        should_recover: bool,
        stop_grace_period_secs: float,
    ) -> None:
        self._graph_was_finalized = get_default_graph().finalized
        self._hooks = list(hooks or ())
        for hook in self._hooks:
            hook.begin()
        self._session_creator, self._grace_secs = session_creator, stop_grace_period_secs
        self._raw: Any = None
        self._coord: Coordinator | None = None
        self._sess: RecoverableSession | CoordinatedSession | None = (
            RecoverableSession(self._create) if should_recover else self._create()
        )

    def _create(self) -> CoordinatedSession:
        raw = self._raw = self._session_creator.create_session()
        coord = self._coord = Coordinator(clean_stop_exception_types=())
        if raw.graph.get_collection(GraphKeys.QUEUE_RUNNERS):
            start_queue_runners(sess=raw, coord=coord)
        for hook in self._hooks:
            hook.after_create_session(raw, coord)
        return CoordinatedSession(HookedSession(raw, self._hooks), coord, self._grace_secs)

    @property
    def graph(self) -> Any:
        """The session's graph; None once it is closed."""
        return None if self._raw is None else self._raw.graph

    def _tf_sess(self) -> Any:
        """The session without hooks."""
        return self._raw

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """As `Session.run`, with the hooks called. RuntimeError once it is closed or should stop."""
        return self._open().run(fetches, feed_dict, options, run_metadata)

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Calls `step_fn` with a `StepContext`, which has the session without hooks, and `run_with_hooks`.

        `step_fn`: a function whose only argument is named ``step_context``. Returns what it returns. Raises
        ValueError for one with other arguments, TypeError for what cannot be called.
        """
        names = tuple(inspect.getfullargspec(step_fn).args)
        if names not in (("step_context",), ("self", "step_context")):
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or `self` and `step_context` "
                f"arguments if it's an instance method. Got {names} instead."
            )
        return self._open().run_step_fn(step_fn)

    def _open(self) -> RecoverableSession | CoordinatedSession:
        if self._sess is None:
            raise RuntimeError("Attempted to use a closed Session.")
        return self._sess

    def should_stop(self) -> bool:
        """Whether the training loop should end: a hook or thread asked for it, or the session is closed."""
        return self._sess is None or self._sess.should_stop()

    def close(self) -> None:
        """Calls the hooks' `end` and closes the session; RuntimeError if it is closed already."""
        self._close(was_error=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        ended = kind is None or issubclass(kind, _ENDS)
        self._close(was_error=not ended)
        return ended

    def _close(self, was_error: bool) -> None:
        try:
            if not was_error:
                for hook in self._hooks:
                    hook.end(self._raw)
        finally:
            try:
                if self._sess is None:
                    raise RuntimeError("Session is already closed.")
                self._sess.close()
            finally:
                self._sess = self._raw = self._coord = None
                if not self._graph_was_finalized:
                    get_default_graph()._unsafe_unfinalize()

    def _is_closed(self) -> bool:
        return self._raw is None


class MonitoredSession(_Monitored):
    """A session with hooks that recovers when a process is lost (AbortedError, UnavailableError).

    Args:
        session_creator: makes its sessions; a ChiefSessionCreator if None.
        hooks: SessionRunHooks, called in this order.
        stop_grace_period_secs: how long threads may go on after a stop.

    The graph is final while it lives. ``with MonitoredSession(...) as session: while not
    session.should_stop(): session.run(...)``.
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        creator = ChiefSessionCreator() if session_creator is None else session_creator
        super().__init__(creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_Monitored):
    """A session with hooks that does not recover: AbortedError and UnavailableError are raised.

    Args: as of `MonitoredSession` and `ChiefSessionCreator`.
    """

    def __init__(
        self,
        hooks: Iterable[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: Any = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: Any = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The session without hooks; None once it is closed."""
        return self._tf_sess()


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: Any = None,
    scaffold: Scaffold | None = None,
    hooks: Iterable[SessionRunHook] | None = None,
    chief_only_hooks: Iterable[SessionRunHook] | None = None,
    save_checkpoint_secs: float | None = _DEFAULT,
    save_summaries_steps: int | None = _DEFAULT,
    save_summaries_secs: float | None = _DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: int | None = _DEFAULT,
    summary_dir: Any = None,
) -> MonitoredSession:
    """A MonitoredSession for training.

    Args:
        master: the session's target; `config`: its ConfigProto.
        is_chief: the chief initialises the variables and has the hooks that save; others wait for it.
        checkpoint_dir: where checkpoints are restored from and saved.
        scaffold: the operations that it begins with; a default Scaffold if None.
        hooks: further hooks; `chief_only_hooks`: further hooks of the chief, which come first.
        save_checkpoint_secs, save_checkpoint_steps: how often checkpoints are saved (default: every 600
            seconds); never if both are None or not positive.
        save_summaries_steps, save_summaries_secs: likewise summaries (default: every 100 steps).
        stop_grace_period_secs: how long threads may go on after a stop.
        log_step_count_steps: how often the steps a second are logged; None or 0: never.
        max_wait_secs: how long a worker waits for the chief.
        summary_dir: where summaries are written; `checkpoint_dir` if None.
    """
    if save_summaries_steps is _DEFAULT and save_summaries_secs is _DEFAULT:
        save_summaries_steps, save_summaries_secs = 100, None
    if save_checkpoint_secs is _DEFAULT and save_checkpoint_steps is _DEFAULT:
        save_checkpoint_secs, save_checkpoint_steps = 600, None
    scaffold = Scaffold() if scaffold is None else scaffold
    creator: SessionCreator = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
    all_hooks: list[SessionRunHook] = []
    if is_chief:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
        all_hooks += chief_only_hooks or ()
        summary_dir = summary_dir or checkpoint_dir
        if summary_dir:
            if log_step_count_steps and log_step_count_steps > 0:
                all_hooks.append(StepCounterHook(log_step_count_steps, output_dir=summary_dir))
            if period := _period(save_summaries_steps, save_summaries_secs):
                all_hooks.append(SummarySaverHook(output_dir=summary_dir, scaffold=scaffold, **period))
        if checkpoint_dir and (period := _period(save_checkpoint_steps, save_checkpoint_secs)):
            all_hooks.append(CheckpointSaverHook(checkpoint_dir, scaffold=scaffold, **period))
    all_hooks += hooks or ()
    return MonitoredSession(creator, all_hooks, stop_grace_period_secs)


def _period(steps: Any, secs: Any) -> dict[str, Any]:
    """The arguments that tell a hook how often; empty: never."""
    steps, secs = (None if value is _DEFAULT else value for value in (steps, secs))
    if not (steps and steps > 0) and not (secs and secs > 0):
        return {}
    return {"save_steps": steps, "save_secs": secs}
