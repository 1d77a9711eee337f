"""`SessionRunHook`: what is called around the steps of a monitored session.

The order of the calls, of all hooks in the order in which they were given:

1. `begin`, once: the graph may still be changed.
2. `after_create_session`, each time a session was made: first, and after each recovery.
3. `before_run` and `after_run`, around each step. What `before_run` returns is fetched and fed beside what
   the program fetches and feeds; `after_run` gets the values.
4. `end`, once, if no error ended the training.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues"]


class SessionRunArgs(NamedTuple):
    """What a hook adds to a step.

    `fetches`: as those of `Session.run`. `feed_dict`: values by tensor. `options`: RunOptions, which are
    merged with those of the step.
    """

    fetches: Any
    feed_dict: Any = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """What a hook gets from a step.

    `results`: the values of its fetches, in their form; None if it asked for none. `options`: the step's
    RunOptions. `run_metadata`: the RunMetadata that the step filled.
    """

    results: Any
    options: Any
    run_metadata: Any


class SessionRunContext:
    """A step, as hooks see it.

    Args:
        original_args: SessionRunArgs with what the program asked of `run`.
        session: the session that makes the step, without hooks.
    """

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self._original_args, self._session, self._stop_requested = original_args, session, False

    @property
    def original_args(self) -> SessionRunArgs:
        """What the program asked of `run`."""
        return self._original_args

    @property
    def session(self) -> Any:
        """The session that makes the step. Its steps call no hooks."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook asked to stop."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Makes `should_stop` of the monitored session true after this step."""
        self._stop_requested = True


class SessionRunHook:
    """Base class of hooks: each method does nothing."""

    def begin(self) -> None:
        """Called once before the first session is made. It may add operations to the default graph."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called with each session that is made, and the Coordinator of its threads. The graph is final.

        Variables are initialised or restored by then.
        """

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each step; returns what the step fetches and feeds for this hook."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each step that did not fail, with the values that `before_run` asked for."""

    def end(self, session: Any) -> None:
        """Called once at the end, before the session is closed; not if an error ended the training.

        OutOfRangeError and StopIteration are no errors here.
        """
