"""The debugger's sessions as hooks of monitored sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorboard.compat.proto.config_pb2 import RunOptions

from flowstone.debugger.command_line import Filter, LocalCLIDebugWrapperSession
from flowstone.debugger.wrapper_sessions import DumpingDebugWrapperSession, WatchOptions, write_run
from flowstone.training.hooks.session_run_hook import SessionRunArgs, SessionRunHook

__all__ = ["DumpingDebugHook", "LocalCLIDebugHook"]


class _DebugHook(SessionRunHook):
    """A hook that has each run dumped as a debugger's session says."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self._session: Any = None
        self._folder: str | None = None

    def before_run(self, run_context: Any) -> Any:
        """Asks for the dumps of the run that begins."""
        if self._session is None:
            self._session = self._make(run_context.session)
        session, args = self._session, run_context.original_args
        session._run_call_count += 1
        self._folder = session._folder_of_run(args.fetches, args.feed_dict)
        if self._folder is None:
            return None
        options: Any = RunOptions()
        watches: WatchOptions = session._watches(args.fetches, args.feed_dict)
        watches.add_to(options, run_context.session.graph, f"file://{self._folder}")
        write_run(self._folder, run_context.session.graph, args.fetches, args.feed_dict)
        return SessionRunArgs(None, None, options=options)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Hands the dumps over."""
        if self._folder is not None:
            self._session._after_run(self._folder, None)


class DumpingDebugHook(_DebugHook):
    """Dumps every run below `session_root`; see `DumpingDebugWrapperSession`."""

    def __init__(
        self,
        session_root: str,
        watch_fn: Callable[..., Any] | None = None,
        thread_name_filter: str | None = None,
        log_usage: bool = True,
    ) -> None:
        super().__init__(
            lambda session: DumpingDebugWrapperSession(session, session_root, watch_fn, thread_name_filter)
        )


class LocalCLIDebugHook(_DebugHook):
    """Stops before and after runs and takes commands; see `LocalCLIDebugWrapperSession`."""

    def __init__(
        self,
        ui_type: str = "curses",
        dump_root: str | None = None,
        thread_name_filter: str | None = None,
        config_file_path: Any = None,
    ) -> None:
        self._filters: dict[str, Filter] = {}

        def make(session: Any) -> Any:
            wrapper = LocalCLIDebugWrapperSession(session, dump_root, True, ui_type, thread_name_filter)
            for name, function in self._filters.items():
                wrapper.add_tensor_filter(name, function)
            return wrapper

        super().__init__(make)

    def add_tensor_filter(self, filter_name: str, tensor_filter: Filter) -> None:
        """See `LocalCLIDebugWrapperSession.add_tensor_filter`."""
        self._filters[filter_name] = tensor_filter
        if self._session is not None:
            self._session.add_tensor_filter(filter_name, tensor_filter)
