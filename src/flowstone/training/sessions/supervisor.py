"""`Supervisor`: an older way than `MonitoredSession` to begin, save and end a training.

With `managed_session` the program trains in a session that is restored or initialised, while threads
(`supervisor_services.py`) save checkpoints and write summaries into `logdir`, from their start on and then
every so often. The program's loop looks at `should_stop`. At the end, or after an error, the threads are
stopped; the error of the program or of a thread is raised.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.process import logging
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.io.file_system import as_path
from flowstone.ops.summaries.summaries import merge_all
from flowstone.ops.variables.variable_collections import global_variables, global_variables_initializer
from flowstone.training.checkpoints.meta_graph import create_meta_graph_def, write_graph
from flowstone.training.checkpoints.saver import Saver
from flowstone.training.hooks.global_step import get_global_step
from flowstone.training.hooks.global_step import global_step as step_of
from flowstone.training.hooks.session_log import session_log
from flowstone.training.hooks.summary_writer import FileWriter
from flowstone.training.input.coordinator import Coordinator, LooperThread
from flowstone.training.sessions.scaffold import default_local_init_op, default_ready_op
from flowstone.training.sessions.session_preparation import SessionManager
from flowstone.training.sessions.supervisor_services import CheckpointThread, StepCounterThread, SummaryThread

__all__ = ["Supervisor"]

_DEFAULT = 0  # of an argument: what the graph has, or what is made


class Supervisor:
    """Begins, saves and ends a training.

    Args:
        graph: the graph, which becomes final; the default graph if None.
        ready_op, ready_for_local_init_op, local_init_op, init_op, init_feed_dict, init_fn: as of `Scaffold`
            (`init_fn` gets the session only).
        is_chief: the chief initialises, saves and writes; others wait for it.
        logdir: the folder of checkpoints and summaries; None: nothing is written.
        summary_op, saver, global_step, summary_writer: what is written, saved, counted, and the log. None:
            no such thing.
        save_summaries_secs, save_model_secs: how often, in seconds; 0: never.
        recovery_wait_secs: how often others look whether the chief is ready.
        stop_grace_secs: how long threads may go on after a stop.
        checkpoint_basename: the checkpoints' name, to which the step is added.
        session_manager: makes the sessions.
        local_init_run_options: RunOptions of `local_init_op`; `local_init_feed_dict`: what it is fed.

    An argument that is `USE_DEFAULT` is found in the collection of its name, or made. ValueError for a
    variable without a device where `is_chief` is false.
    """

    USE_DEFAULT = _DEFAULT

    def __init__(
        self,
        graph: Any = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: Any = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: Any = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: Any = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: Any = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        self._graph = get_default_graph() if graph is None else graph
        self._is_chief, self._coord = is_chief, Coordinator()
        self._stop_grace_secs, self._recovery_wait_secs = stop_grace_secs, recovery_wait_secs
        self._init_feed_dict, self._init_fn = init_feed_dict, init_fn
        self._save_model_secs, self._save_summaries_secs = save_model_secs, save_summaries_secs
        with self._graph.as_default():
            self._ready_op = _found(ready_op, GraphKeys.READY_OP, default_ready_op)
            self._ready_for_local_init_op = _found(
                ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP, _nothing
            )
            self._init_op = _found(init_op, GraphKeys.INIT_OP, global_variables_initializer)
            self._local_init_op = _found(local_init_op, GraphKeys.LOCAL_INIT_OP, default_local_init_op)
            self._saver = _found(saver, GraphKeys.SAVERS, _new_saver)
            self._summary_op = _found(summary_op, GraphKeys.SUMMARY_OP, merge_all)
            self._global_step = get_global_step() if _is_default(global_step) else global_step
        self._logdir = as_path(logdir) if logdir and is_chief else None
        self._save_path = os.path.join(self._logdir, checkpoint_basename) if self._logdir else None
        self._summary_writer = summary_writer if is_chief and not _is_default(summary_writer) else None
        if _is_default(summary_writer) and self._logdir:
            self._summary_writer = FileWriter(self._logdir)
        self._graph_added_to_summary = False
        self._session_manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
            local_init_feed_dict=local_init_feed_dict,
        )
        self._check_devices()
        self._graph.finalize()

    def _check_devices(self) -> None:
        if self._is_chief:
            return
        for op in self._graph.get_operations():
            if op.type in ("Variable", "VariableV2") and not op.device:
                raise ValueError(f"When using replicas, all Variables must have their device set: {op}")

    # ---- sessions

    @contextlib.contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """A session to train in; at the end of the context threads are stopped and the session closed.

        `master`: its target; `config`: its ConfigProto. An error in the context or in a thread is raised
        then, but OutOfRangeError.
        """
        session = None
        try:
            session = self.prepare_or_wait_for_session(
                master, config, start_standard_services=start_standard_services
            )
            yield session
        except Exception as error:
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    session.close()

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """A session that is ready, with its threads started; see `SessionManager.prepare_session`."""
        self._coord.clear_stop()
        if self._summary_writer is not None:
            self._summary_writer.reopen()
        if self._is_chief:
            session = self._session_manager.prepare_session(
                master, init_op=self._init_op, saver=self._saver, checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint, max_wait_secs=max_wait_secs, config=config,
                init_feed_dict=self._init_feed_dict, init_fn=self._init_fn,
            )  # fmt: skip
            self._write_graph()
            if start_standard_services:
                self.start_standard_services(session)
        else:
            session = self._session_manager.wait_for_session(
                master, config=config, max_wait_secs=max_wait_secs
            )
        if start_standard_services:
            self.start_queue_runners(session)
        return session

    def _write_graph(self) -> None:
        if self._logdir is not None:
            write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir, "graph.pbtxt")
        if self._summary_writer is not None and not self._graph_added_to_summary:
            saver_def = self._saver.saver_def if self._saver else None
            self._summary_writer.add_graph(self._graph)
            self._summary_writer.add_meta_graph(create_meta_graph_def(graph=self._graph, saver_def=saver_def))
            self._graph_added_to_summary = True

    # ---- threads

    def start_standard_services(self, sess: Any) -> list[threading.Thread] | None:
        """Starts the threads that save and write; returns them, None without `logdir`. RuntimeError if this
        is not the chief."""
        if not self._is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. "
                "Because only chief supervisors can write events."
            )
        if not self._logdir:
            logging.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        writer, threads = self._summary_writer, list[threading.Thread]()
        if self._global_step is not None and writer is not None:
            writer.add_session_log(session_log("START"), step_of(sess, self._global_step))
        if self._save_summaries_secs and writer is not None:
            if self._summary_op is not None:
                threads.append(SummaryThread(self, sess, self._save_summaries_secs))
            if self._global_step is not None:
                threads.append(StepCounterThread(self, sess, self._save_summaries_secs))
        if self._saver and self._save_model_secs:
            threads.append(CheckpointThread(self, sess, self._save_model_secs))
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(
        self, sess: Any, queue_runners: Sequence[Any] | None = None
    ) -> list[threading.Thread]:
        """Starts the threads of `queue_runners` (None: all of the graph); returns them."""
        runners = (
            self._graph.get_collection(GraphKeys.QUEUE_RUNNERS) if queue_runners is None else queue_runners
        )
        return [
            thread
            for runner in runners
            for thread in runner.create_threads(sess, coord=self._coord, daemon=True, start=True)
        ]

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Starts a thread that calls ``target(*args, **kwargs)`` every `timer_interval_secs` seconds (None:
        again and again) until the supervisor stops; returns it."""
        return LooperThread.loop(self._coord, timer_interval_secs, target, args, kwargs)

    def stop(
        self, threads: Any = None, close_summary_writer: bool = True, ignore_live_threads: bool = False
    ) -> None:
        """Stops the threads, and raises the error of one, or the one that `request_stop` got.

        `threads`: further threads to wait for. `close_summary_writer`: the log is ended.
        `ignore_live_threads`: threads that go on are no RuntimeError.
        """
        self._coord.request_stop()
        try:
            self._coord.join(
                threads,
                stop_grace_period_secs=self._stop_grace_secs,
                ignore_live_threads=ignore_live_threads,
            )
        finally:
            if close_summary_writer and self._summary_writer is not None:
                self._summary_writer.add_session_log(session_log("STOP"))
                self._summary_writer.close()
                self._graph_added_to_summary = False

    def request_stop(self, ex: Any = None) -> None:
        """Asks the threads and the program to stop, with `ex` because of that error."""
        self._coord.request_stop(ex)

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._coord.should_stop()

    def stop_on_exception(self) -> contextlib.AbstractContextManager[None]:
        """A context in which an error becomes a request to stop."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Waits until a stop is requested."""
        self._coord.wait_for_stop()

    def summary_computed(self, sess: Any, summary: Any, global_step: Any = None) -> None:
        """Writes a summary that the program computed, at this step or the session's global step. RuntimeError
        without a log."""
        if self._summary_writer is None:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self._global_step is not None:
            global_step = step_of(sess, self._global_step)
        self._summary_writer.add_summary(summary, global_step)

    # ---- what it has

    @property
    def is_chief(self) -> bool:
        """Whether it initialises, saves and writes."""
        return self._is_chief

    @property
    def session_manager(self) -> Any:
        """What makes the sessions."""
        return self._session_manager

    @property
    def coord(self) -> Coordinator:
        """The threads' Coordinator."""
        return self._coord

    @property
    def init_op(self) -> Any:
        """The initialiser."""
        return self._init_op

    @property
    def init_feed_dict(self) -> Any:
        """What it is fed."""
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        """The names of what is not initialised."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """The names of what is not initialised and the local initialiser needs."""
        return self._ready_for_local_init_op

    @property
    def summary_writer(self) -> Any:
        """The log; None without one."""
        return self._summary_writer

    @property
    def summary_op(self) -> Any:
        """The summaries; None without any."""
        return self._summary_op

    @property
    def save_summaries_secs(self) -> float:
        """How often summaries are written, in seconds."""
        return self._save_summaries_secs

    @property
    def global_step(self) -> Any:
        """The global step; None without one."""
        return self._global_step

    @property
    def saver(self) -> Any:
        """The Saver; None without one."""
        return self._saver

    @property
    def save_model_secs(self) -> float:
        """How often checkpoints are saved, in seconds."""
        return self._save_model_secs

    @property
    def save_path(self) -> str | None:
        """The checkpoints' path, to which the step is added; None if there are none."""
        return self._save_path

    # The older names.
    PrepareSession = prepare_or_wait_for_session
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Stop = stop
    RequestStop = request_stop
    Loop = loop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


def _is_default(value: Any) -> bool:
    return isinstance(value, int) and value == _DEFAULT


def _nothing() -> Any:
    return None


def _new_saver() -> Any:
    return Saver() if global_variables() else None


def _found(value: Any, collection: str, make: Callable[[], Any]) -> Any:
    """An argument's value; of a default the first item of a collection, or else what `make` makes, which is
    added to it."""
    if not _is_default(value):
        return value
    graph = get_default_graph()
    items = graph.get_collection(collection)
    if items:
        return items[0]
    made = make()
    if made is not None:
        graph.add_to_collection(collection, made)
    return made
