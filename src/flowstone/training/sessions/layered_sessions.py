"""The layers of a monitored session, each a session around the next.

- `RecoverableSession` makes the inner session anew when a step fails because a process was lost
  (AbortedError, UnavailableError), and repeats the step.
- `CoordinatedSession` ends the threads of the session's Coordinator, and raises their errors.
- `HookedSession` calls the hooks around each step; innermost is the Session itself.

Each has `run`, `run_step_fn`, `should_stop` and `close`. A closed session holds None and should stop. What it
holds is `_sess`: programs take the Session out by that name, where a Saver wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.client.session import Session
from flowstone.framework import errors
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.process import logging
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.tensor_proto import messages
from flowstone.ops.variables.variables import Variable
from flowstone.training.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from flowstone.training.input.coordinator import Coordinator

__all__ = ["LOST", "CoordinatedSession", "HookedSession", "RecoverableSession", "StepContext"]

LOST = (errors.AbortedError, errors.UnavailableError)  # a process is gone, or was started anew
_RECREATED = (
    "%s a session failed, perhaps because a worker or parameter server was preempted. A new session will be "
    "created. Error: %s"
)


class StepContext:
    """What the function of `run_step_fn` gets.

    Args:
        session: the session without hooks.
        run_with_hooks_fn: what `run_with_hooks` calls.
    """

    def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]) -> None:
        self._session, self._run_with_hooks_fn = session, run_with_hooks_fn

    @property
    def session(self) -> Any:
        """The session without hooks."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """As `Session.run`, with the hooks called; at most once in a step function."""
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the training loop, by StopIteration, which the monitored session's `with` takes."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class _Layer:
    """A session around another one."""

    _sess: Any

    @property
    def graph(self) -> Any:
        """The session's graph; None once it is closed."""
        return None if self._sess is None else self._sess.graph


class HookedSession(_Layer):
    """Calls hooks around each step of a session."""

    def __init__(self, session: Any, hooks: Sequence[SessionRunHook]) -> None:
        self._sess, self._hooks, self._should_stop = session, list(hooks), False
        self._calls: dict[Any, Callable[..., Any]] = {}
        protos = messages("config_pb2")
        self._new_options, self._new_metadata = protos.RunOptions, protos.RunMetadata

    def should_stop(self) -> bool:
        """Whether a hook asked to stop, or the session is closed."""
        return self._should_stop or self._sess is None

    def close(self) -> None:
        """Closes the session."""
        session, self._sess = self._sess, None
        if session is not None:
            session.close()

    def run_step_fn(self, step_fn: Callable[[StepContext], Any], run: Any = None) -> Any:
        """Calls the function."""
        return step_fn(StepContext(self._sess, run))

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Makes a step with the hooks' fetches and feeds, and gives them their values."""
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        all_fetches: list[Any] = [fetches]
        places: list[int] = []  # where each hook's fetches are; 0: it has none
        hook_feeds: dict[Any, Any] = {}
        is_plain = options is None and run_metadata is None
        for hook in self._hooks:
            place = 0
            request = hook.before_run(context)
            if request is not None:
                if request.fetches is not None:
                    place = len(all_fetches)
                    all_fetches.append(request.fetches)
                if request.feed_dict:
                    _check_apart(hook_feeds, request.feed_dict, "Same tensor is fed by two hooks.")
                    hook_feeds.update(request.feed_dict)
                if request.options:
                    options, is_plain = _merged(options or self._new_options(), request.options), False
            places.append(place)
        if hook_feeds and feed_dict:
            _check_apart(feed_dict, hook_feeds, "Same tensor is fed by a SessionRunHook and user.")
            hook_feeds.update(feed_dict)
        feeds = hook_feeds or feed_dict
        metadata = self._new_metadata() if run_metadata is None else run_metadata
        if is_plain:
            options = self._new_options()
            results = self._run_plainly(all_fetches, feeds)
        else:
            options = self._new_options() if options is None else options
            results = self._sess.run(all_fetches, feeds, options, metadata)
        for hook, place in zip(self._hooks, places):
            values = results[place] if place else None
            hook.after_run(context, SessionRunValues(values, options, metadata))
        if context.stop_requested:
            self._should_stop = True
        return results[0]

    def _run_plainly(self, fetches: list[Any], feeds: Any) -> Any:
        """As `Session.run`. Callables of steps that were made before are found by their elements."""
        try:
            key = (*map(_identity, fetches), _identity, *feeds) if feeds else (*map(_identity, fetches),)
            call = self._calls.get(key)
        except TypeError:  # something nested
            return self._sess.run(fetches, feeds)
        if call is None:
            if type(self._sess) is not Session or not all(map(_is_flat, [*fetches, *(feeds or ())])):
                return self._sess.run(fetches, feeds)
            call = self._calls[key] = self._sess.make_callable(fetches, list(feeds or ()))
        return call(*feeds.values()) if feeds else call()


def _identity(fetches: Any) -> Any:
    """A key for flat fetches, equal where form and elements are the same; of others it has no hash, or is not
    kept."""
    kind = type(fetches)
    if kind is list or kind is tuple:
        return (kind, *fetches)
    return (dict, *fetches, dict, *fetches.values()) if kind is dict else fetches


def _is_flat(fetches: Any) -> bool:
    if type(fetches) in (list, tuple):
        return all(map(_is_leaf, fetches))
    return all(map(_is_leaf, fetches.values())) if type(fetches) is dict else _is_leaf(fetches)


def _is_leaf(item: Any) -> bool:
    return isinstance(item, (Tensor, Operation, str, Variable))


def _check_apart(feeds: Any, others: Any, message: str) -> None:
    for key in feeds:
        if key in others:
            raise RuntimeError(f"{message} Conflict(s): [{key}]")


def _merged(options: Any, further: Any) -> Any:
    """RunOptions with whatever is more of both."""
    merged = type(options)()
    merged.CopyFrom(options)
    merged.trace_level = max(options.trace_level, further.trace_level)
    merged.timeout_in_ms = max(options.timeout_in_ms, further.timeout_in_ms)
    merged.inter_op_thread_pool = max(options.inter_op_thread_pool, further.inter_op_thread_pool)
    merged.output_partition_graphs = options.output_partition_graphs or further.output_partition_graphs
    merged.debug_options.debug_tensor_watch_opts.extend(further.debug_options.debug_tensor_watch_opts)
    return merged


class CoordinatedSession(_Layer):
    """Ends the threads of a Coordinator with the session, and raises their errors."""

    def __init__(self, session: HookedSession, coord: Coordinator, stop_grace_period_secs: float) -> None:
        self._sess: HookedSession | None = session
        self._coord, self._stop_grace_period_secs = coord, stop_grace_period_secs

    def check(self) -> bool:
        """Raises the error of a thread, if any; returns whether a thread or hook asked to stop."""
        self._coord.raise_requested_exception()
        return self._coord.should_stop() or self._sess is None or self._sess.should_stop()

    def should_stop(self) -> bool:
        """Whether a thread failed, or a thread or hook asked to stop, or the session is closed."""
        return self._coord.should_stop() or self._sess is None or self._sess.should_stop()

    def close(self) -> None:
        """Waits for the threads, closes the session, and raises the error of a thread, if any."""
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True)
        finally:
            session, self._sess = self._sess, None
            if session is not None:
                try:
                    session.close()
                except Exception as error:  # what matters is what `join` raises
                    logging.warning("Closing a session failed: %s", error)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Makes a step."""
        return self._guarded(self._inner().run, *args, **kwargs)

    def run_step_fn(self, step_fn: Callable[[StepContext], Any], run: Any = None) -> Any:
        """Calls the function; `run` is None if no session around this one runs its steps."""
        return self._guarded(self._inner().run_step_fn, step_fn, run or self.run)

    def _inner(self) -> HookedSession:
        if self._sess is None:
            raise RuntimeError("Attempted to use a closed Session.")
        return self._sess

    def _guarded(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except LOST:
            raise
        except Exception:
            # A step fails in many ways once a thread lost its process: that error is the one to recover from.
            # Other errors of threads are raised by `close`.
            try:
                self._coord.raise_requested_exception()
            except LOST:
                raise
            except Exception as error:
                logging.info("A thread of the session failed: %s", error)
            raise


class RecoverableSession(_Layer):
    """Makes its session by `create`, and anew after a step that lost a process; that step is repeated."""

    def __init__(self, create: Callable[[], CoordinatedSession]) -> None:
        self._create = create
        self._sess: CoordinatedSession | None = None
        self._closed = False
        self._renew()

    def _renew(self) -> CoordinatedSession:
        while True:
            try:
                self._sess = self._create()
                return self._sess
            except LOST as error:
                logging.info(_RECREATED, "Creating", error)

    def _drop(self, error: Exception) -> None:
        logging.info(_RECREATED, "A step of", error)
        session, self._sess = self._sess, None
        _close_lost(session)

    def should_stop(self) -> bool:
        """Whether the session says so. One that lost a process does not stop, but is made anew."""
        if self._sess is None:
            return self._closed
        try:
            return self._sess.check()
        except LOST as error:
            self._drop(error)
            self._renew()
            return False
        except Exception:  # `close` will raise it
            return True

    def close(self) -> None:
        """Closes the session."""
        session, self._sess = self._sess, None
        self._closed = True
        _close_lost(session)

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Makes a step, again and again until it loses no process."""
        while True:
            try:
                session = self._sess
                if session is None:
                    session = self._renew()
                return session.run(fetches, feed_dict, options, run_metadata)
            except LOST as error:
                self._drop(error)

    def run_step_fn(self, step_fn: Callable[[StepContext], Any], run: Any = None) -> Any:
        """Calls the function, again and again until it loses no process."""
        while True:
            try:
                session = self._sess
                if session is None:
                    session = self._renew()
                return session.run_step_fn(step_fn, session.run)
            except LOST as error:
                self._drop(error)


def _close_lost(session: CoordinatedSession | None) -> None:
    if session is None:
        return
    try:
        session.close()
    except LOST as error:
        logging.info("Ignored while a session is closed: %s", error)
