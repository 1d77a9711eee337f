"""`ProfileContext`: profiles the steps of all sessions within a block.

    with tf.contrib.tfprof.ProfileContext("/tmp/profiles", trace_steps=[50], dump_steps=[50]) as context:
        context.add_auto_profiling("op", tf.profiler.ProfileOptionBuilder.time_and_memory(), [51])
        train()

A step is a call of `session.run`; they are counted from 0. A traced step is added to the `Profiler`, a dump
writes the profiler's messages as `profile_STEP`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Any

from flowstone.client.session import BaseSession
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.file_system import open_file, recursive_create_dir
from flowstone.profiling.profiler import Profiler

__all__ = ["ProfileContext"]

# Where no steps are named: none while caches fill, then some, then no more.
_WARM_UP, _EVERY, _MOST = 10, 10, 100

# All sessions; `run` is replaced within a block.
_SESSIONS: Any = BaseSession

_VIEWS = {
    "scope": "profile_name_scope",
    "graph": "profile_graph",
    "op": "profile_operations",
    "code": "profile_python",
}


class ProfileContext:
    """Traces, dumps and profiles steps of the sessions that run within its block.

    Args:
        profile_dir: the folder for what is dumped.
        trace_steps: the numbers of the steps to trace; None for one in ten from the tenth on.
        dump_steps: the numbers of the steps after which the profile is written; None for those traced.
        enabled: whether anything is done at all.
        debug: taken as TensorFlow does; nothing more is printed.

    Raises ValueError without a folder.
    """

    def __init__(
        self,
        profile_dir: Any,
        trace_steps: Iterable[int] | None = None,
        dump_steps: Iterable[int] | None = None,
        enabled: bool = True,
        debug: bool = False,
    ) -> None:
        if not profile_dir:
            raise ValueError("Must have a directory for profile.\n")
        self._profile_dir, self._enabled = profile_dir, enabled
        self._trace_steps = None if trace_steps is None else frozenset(trace_steps)
        self._dump_steps = None if dump_steps is None else frozenset(dump_steps)
        self._trace_next = self._dump_next = False
        self._auto_profiles: list[tuple[str, Any, frozenset[int]]] = []
        self._profiles: dict[str, list[Any]] = {}
        self._profiler: Profiler | None = None
        self._graph: Any = None
        self._step = 0
        self._lock = threading.Lock()
        self._original_run: Any = None

    @property
    def profiler(self) -> Profiler:
        """The profiler of the traced steps; its graph is the first traced session's, or the default one."""
        if self._profiler is None:
            self._profiler = Profiler(self._graph or get_default_graph())
        return self._profiler

    def add_auto_profiling(self, cmd: str, options: Any, profile_steps: Iterable[int]) -> None:
        """Profiles after these steps.

        Args:
            cmd: the view: "scope", "graph", "op" or "code". ValueError for others.
            options: of `ProfileOptionBuilder`.
            profile_steps: the numbers of the steps.
        """
        if cmd not in _VIEWS:
            raise ValueError(f"There is no view {cmd!r}: the views are {', '.join(_VIEWS)}")
        self._auto_profiles.append((cmd, options, frozenset(profile_steps)))

    def get_profiles(self, cmd: str) -> list[Any]:
        """What automatic profiling with this view returned. ValueError if it has not run."""
        if cmd not in self._profiles:
            raise ValueError(f"No autoprofiler for command: {cmd}, was run")
        return self._profiles[cmd]

    def trace_next_step(self) -> None:
        """Traces the next step, whatever its number."""
        self._trace_next = True

    def dump_next_step(self) -> None:
        """Traces the next step and writes the profile after it, whatever its number."""
        self._dump_next = True

    def __enter__(self) -> ProfileContext:
        if self._enabled:
            original = self._original_run = BaseSession.run

            def run(
                session: Any,
                fetches: Any,
                feed_dict: Any = None,
                options: Any = None,
                run_metadata: Any = None,
            ) -> Any:
                return self._run(original, session, fetches, feed_dict, options, run_metadata)

            _SESSIONS.run = run
        return self

    def __exit__(self, exec_type: Any, exec_value: Any, exec_tb: Any) -> None:
        if self._original_run is not None:
            _SESSIONS.run = self._original_run
            self._original_run = None

    def _run(
        self, original: Any, session: Any, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any
    ) -> Any:
        with self._lock:
            step = self._step
            self._step += 1
            dump = self._dump_next or (self._dump_steps is not None and step in self._dump_steps)
            trace = dump or self._trace_next or self._is_traced(step)
            self._trace_next = self._dump_next = False
        if not trace:
            result = original(session, fetches, feed_dict, options, run_metadata)
        else:
            config = messages("config_pb2")
            options = config.RunOptions() if options is None else options
            options.trace_level = config.RunOptions.FULL_TRACE
            run_metadata = config.RunMetadata() if run_metadata is None else run_metadata
            result = original(session, fetches, feed_dict, options, run_metadata)
            self._graph = self._graph or session.graph
            self.profiler.add_step(step, run_metadata)
            if dump or self._dump_steps is None:
                self._dump(step)
        self._profile(step)
        return result

    def _is_traced(self, step: int) -> bool:
        if self._trace_steps is not None:
            return step in self._trace_steps
        return _WARM_UP <= step < _MOST and step % _EVERY == 0

    def _dump(self, step: int) -> None:
        recursive_create_dir(self._profile_dir)
        with open_file(os.path.join(self._profile_dir, f"profile_{step}"), "wb") as file:
            file.write(self.profiler.serialize_to_string())

    def _profile(self, step: int) -> None:
        for view, options, steps in self._auto_profiles:
            if step in steps:
                message = getattr(self.profiler, _VIEWS[view])(options)
                self._profiles.setdefault(view, []).append(message)
