"""Sessions around a session, whose runs dump their tensors.

    session = DumpingDebugWrapperSession(session, "/tmp/dumps", lambda fetches, feeds: WatchOptions())
    session.run(train)
    dump = DebugDumpDir(newest folder below /tmp/dumps)

A class below `DebugWrapperSession` says before each run whether and where it is dumped, and gets the dumps
after it, also if the run failed.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from tensorboard.compat.proto.config_pb2 import RunOptions
from tensorboard.compat.proto.event_pb2 import Event, LogMessage

from flowstone.debugger.dump_folder import FEED_KEYS_FILE, FETCHES_FILE, GRAPH_PREFIX
from flowstone.debugger.dumps import DEVICE_PREFIX
from flowstone.debugger.watching import watch_graph
from flowstone.framework.graphs.graph_functions import is_tensor
from flowstone.framework.tensors import nest, scope
from flowstone.io import file_system

__all__ = ["DebugWrapperSession", "DumpingDebugWrapperSession", "WatchOptions"]


class WatchOptions:
    """Which tensors are dumped, and by which debug ops; see `watch_graph`."""

    def __init__(
        self,
        debug_ops: Any = None,
        node_name_regex_whitelist: str | None = None,
        op_type_regex_whitelist: str | None = None,
        tensor_dtype_regex_whitelist: str | None = None,
        tolerate_debug_op_creation_failures: bool = False,
    ) -> None:
        self.debug_ops = ["DebugIdentity"] if debug_ops is None else debug_ops
        self.node_name_regex_whitelist = node_name_regex_whitelist
        self.op_type_regex_whitelist = op_type_regex_whitelist
        self.tensor_dtype_regex_whitelist = tensor_dtype_regex_whitelist
        self.tolerate_debug_op_creation_failures = tolerate_debug_op_creation_failures

    def __repr__(self) -> str:
        return f"WatchOptions({', '.join(f'{key}={value!r}' for key, value in vars(self).items())})"

    def add_to(self, run_options: Any, graph: Any, urls: Any) -> None:
        """Adds these watches of the graph to RunOptions."""
        watch_graph(
            run_options,
            graph,
            self.debug_ops,
            urls,
            self.node_name_regex_whitelist,
            self.op_type_regex_whitelist,
            self.tensor_dtype_regex_whitelist,
            self.tolerate_debug_op_creation_failures,
        )


class DebugWrapperSession:
    """A session that runs another one's steps; which of them are dumped, the classes below decide.

    Args:
        sess: the session. TypeError for what has no `run` and `graph`.
        thread_name_filter: a regular expression: runs of threads of other names are not looked at.
    """

    def __init__(self, sess: Any, thread_name_filter: str | None = None) -> None:
        if not (hasattr(sess, "run") and hasattr(sess, "graph")):
            raise TypeError(f"Expected type session; got type {type(sess)}")
        self._sess = sess
        self._thread_name = re.compile(thread_name_filter or "")
        self._run_call_count = 0
        self._default: list[Any] = []

    # ---- what the classes below say

    def _folder_of_run(self, fetches: Any, feed_dict: Any) -> str | None:
        """The folder for the dumps of the run that begins; None if it is not dumped."""
        raise NotImplementedError

    def _watches(self, fetches: Any, feed_dict: Any) -> WatchOptions:
        return WatchOptions()

    def _after_run(self, folder: str, error: Exception | None) -> None:
        """Is called when a dumped run has ended, with its error if it failed."""

    # ---- a session

    @property
    def graph(self) -> Any:
        """The session's graph."""
        return self._sess.graph

    @property
    def graph_def(self) -> Any:
        """The session's graph as a message."""
        return self._sess.graph_def

    @property
    def sess_str(self) -> str:
        """What the session is connected to."""
        return self._sess.sess_str  # type: ignore[no-any-return]

    @property
    def session(self) -> Any:
        """The session around which this is."""
        return self._sess

    @property
    def run_call_count(self) -> int:
        """How many runs there were."""
        return self._run_call_count

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: Any = None,
        run_metadata: Any = None,
        **keywords: Any,
    ) -> Any:
        """As `Session.run`; the run may be dumped."""
        if not self._thread_name.match(threading.current_thread().name) or not nest.flatten(fetches):
            return self._sess.run(fetches, feed_dict, options, run_metadata)
        self._run_call_count += 1
        folder = self._folder_of_run(fetches, feed_dict)
        if folder is None:
            return self._sess.run(fetches, feed_dict, options, run_metadata)
        watched = RunOptions()
        if options is not None:
            watched.CopyFrom(options)
        self._watches(fetches, feed_dict).add_to(watched, self.graph, f"file://{folder}")
        write_run(folder, self.graph, fetches, feed_dict)
        error: Exception | None = None
        try:
            return self._sess.run(fetches, feed_dict, watched, run_metadata)
        except Exception as caught:
            error = caught
            raise
        finally:
            self._after_run(folder, error)

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> Any:
        """As `Session.partial_run_setup`; partial runs are not dumped."""
        return self._sess.partial_run_setup(fetches, feeds)

    def partial_run(self, handle: Any, fetches: Any, feed_dict: Any = None) -> Any:
        """As `Session.partial_run`; it is not dumped."""
        return self._sess.partial_run(handle, fetches, feed_dict)

    def make_callable(self, fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Any:
        """As `Session.make_callable`, of this session's runs."""
        keys = list(feed_list or [])

        def call(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
            return self.run(fetches, dict(zip(keys, values)) or None, options, run_metadata)

        return call

    def list_devices(self) -> Any:
        """The session's devices."""
        return self._sess.list_devices()

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """As of a monitored session."""
        return self._sess.run_step_fn(step_fn)

    def should_stop(self) -> bool:
        """As of a monitored session. ValueError if the session is none."""
        if not hasattr(self._sess, "should_stop"):
            raise ValueError(
                f"The wrapped session {self._sess!r} does not have a method called 'should_stop'."
            )
        return bool(self._sess.should_stop())

    def close(self) -> None:
        """Closes the session."""
        self._sess.close()

    def as_default(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which this is the default session."""
        return scope.sessions.entered(self)

    def __enter__(self) -> Any:
        stack = contextlib.ExitStack()
        if hasattr(self._sess, "__enter__"):
            stack.enter_context(self._sess)
        else:
            stack.enter_context(self.graph.as_default())
        stack.enter_context(self.as_default())
        self._default.append(stack)
        return self

    def __exit__(self, *exception: Any) -> Any:
        return self._default.pop().__exit__(*exception)


def write_run(folder: str, graph: Any, fetches: Any, feed_dict: Any) -> None:
    """Writes what is fetched and fed, and the part of the graph that this needs, into a run's folder."""
    file_system.recursive_create_dir(folder)
    _write_event(os.path.join(folder, FETCHES_FILE), log_message=LogMessage(message=repr(fetches)))
    fed = list(feed_dict or {})
    keys = repr(dict.fromkeys(fed).keys()) if fed else "None"
    _write_event(os.path.join(folder, FEED_KEYS_FILE), log_message=LogMessage(message=keys))
    device = os.path.join(folder, f"{DEVICE_PREFIX},job_localhost,replica_0,task_0,device_CPU_0")
    file_system.recursive_create_dir(device)
    needed = _needed(graph, fetches, fed)
    definition = graph.as_graph_def()
    kept = [node for node in definition.node if node.name in needed]
    del definition.node[:]
    definition.node.extend(kept)
    name = f"{GRAPH_PREFIX}hash{abs(hash(frozenset(needed)))}_{time.time_ns() // 1000}"
    _write_event(os.path.join(device, name), graph_def=definition.SerializeToString())


def _write_event(path: str, **contents: Any) -> None:
    event = Event(wall_time=time.time(), **contents)
    file_system.atomic_write_string_to_file(path, event.SerializeToString())


def _needed(graph: Any, fetches: Any, feeds: list[Any]) -> set[str]:
    """The names of the operations that a run needs; what is fed ends the search."""
    fed = {
        graph.as_graph_element(key) for key in nest.flatten(feeds) if is_tensor(key) or isinstance(key, str)
    }
    waiting = list(_fetched(graph, nest.flatten(fetches)))
    found: set[str] = set()
    while waiting:
        operation = waiting.pop()
        if operation.name not in found:
            found.add(operation.name)
            inputs = [tensor for tensor in operation.inputs if tensor not in fed]
            found.update(tensor.op.name for tensor in operation.inputs if tensor in fed)
            waiting += [*(tensor.op for tensor in inputs), *operation.control_inputs]
    return found


def _fetched(graph: Any, leaves: list[Any]) -> Iterator[Any]:
    for leaf in leaves:
        for part in nest.components(leaf) if nest.is_composite(leaf) else [leaf]:
            element = graph.as_graph_element(part)
            yield getattr(element, "op", element)


class DumpingDebugWrapperSession(DebugWrapperSession):
    """A session that dumps every run, each into a folder of its own below `session_root`.

    Args:
        sess: the session.
        session_root: the folder. ValueError if it is a file, or is there and not empty.
        watch_fn: from the fetches and the feeds to `WatchOptions` (or the old triple: debug ops, pattern of
            names, pattern of ops); None dumps everything.
        thread_name_filter: see `DebugWrapperSession`.
    """

    def __init__(
        self,
        sess: Any,
        session_root: str,
        watch_fn: Callable[..., Any] | None = None,
        thread_name_filter: str | None = None,
        pass_through_operrors: bool | None = None,
        log_usage: bool = True,
    ) -> None:
        super().__init__(sess, thread_name_filter)
        if file_system.file_exists(session_root):
            if not file_system.is_directory(session_root):
                raise ValueError(f"session_root path points to a file: {session_root}")
            if file_system.list_directory(session_root):
                raise ValueError(f"session_root path points to a non-empty directory: {session_root}")
        else:
            file_system.recursive_create_dir(session_root)
        if watch_fn is not None and not callable(watch_fn):
            raise TypeError("watch_fn is not callable")
        self._session_root, self._watch_fn = session_root, watch_fn

    def _folder_of_run(self, fetches: Any, feed_dict: Any) -> str:
        return os.path.join(self._session_root, f"run_{time.time_ns() // 1000}_{self._run_call_count - 1}")

    def _watches(self, fetches: Any, feed_dict: Any) -> WatchOptions:
        chosen = None if self._watch_fn is None else self._watch_fn(fetches, feed_dict)
        if isinstance(chosen, tuple):
            return WatchOptions(*chosen)
        return WatchOptions() if chosen is None else chosen
