"""Queue runners: the threads that fill a queue by running its enqueue operations (white paper 4.6).

A `QueueRunner` belongs to a graph: it names a queue, the operations that enqueue (a thread each) and the two
that close the queue. `create_threads` makes the threads for one session:

- each runs its operation until the coordinator stops;
- an error of `queue_closed_exception_types` (by default OutOfRangeError: the input is used up) ends the
  thread; the last one of the session to end so closes the queue, so that consumers get what is left;
- any other error is given to the coordinator, or without one logged, kept in `exceptions_raised` and raised;
- once the coordinator stops, one more thread closes the queue and cancels the enqueues that wait.

``tf.train.batch`` and the like put their runners into the collection QUEUE_RUNNERS; `start_queue_runners`
starts all of them.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from flowstone.client.repetition import repeat
from flowstone.client.session import BaseSession
from flowstone.framework import errors
from flowstone.framework.graphs.collection_protos import register_proto_function
from flowstone.framework.graphs.graph import GraphKeys
from flowstone.framework.process import logging
from flowstone.framework.tensors import scope
from flowstone.io.proto.queue_runner_pb2 import QueueRunnerDef
from flowstone.ops.variables.save_slice_info import without_scope
from flowstone.training.input.coordinator import Coordinator

__all__ = ["QueueRunner", "add_queue_runner", "start_queue_runners"]

# Sessions that start the runners of their graph themselves.
_SELF_STARTING = ("MonitoredSession", "SingularMonitoredSession")
_MESSAGE = "QueueRunnerDef"  # of whichever package: a program may hold TensorFlow's own


class QueueRunner:
    """Enqueue operations of a queue, to be run in threads.

    Args:
        queue: the queue.
        enqueue_ops: operations, one a thread.
        close_op: operation that closes the queue (None: the queue's own).
        cancel_op: operation that closes it and cancels pending enqueues (None: the queue's own).
        queue_closed_exception_types: tuple of errors that mean the end of the input (None: OutOfRangeError).
        queue_runner_def: a QueueRunnerDef message to take all of this from, with `import_scope` before its
            names.

    Raises ValueError if queue or operations are missing or given beside a message, TypeError for types that
    are no errors.
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: tuple[type[errors.OpError], ...] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._take_from_graph(queue_runner_def, import_scope)
        else:
            if queue is None or not enqueue_ops:
                raise ValueError("Must provide queue and enqueue_ops.")
            self._queue, self._enqueue_ops = queue, list(enqueue_ops)
            self._close_op = queue.close() if close_op is None else close_op
            self._cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
            self._queue_closed_exception_types = _checked_types(queue_closed_exception_types)
        self._lock = threading.Lock()
        self._exceptions_raised: list[BaseException] = []
        self._running: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def _take_from_graph(self, message: Any, import_scope: str | None) -> None:
        if getattr(getattr(message, "DESCRIPTOR", None), "name", "") != _MESSAGE:
            raise TypeError(f"queue_runner_def must be a QueueRunnerDef, not {type(message).__name__}")
        graph = scope.get_default_graph()

        def find(name: str) -> Any:
            return graph.as_graph_element(f"{import_scope}/{name}" if import_scope else name)

        self._queue = find(message.queue_name)
        self._enqueue_ops = [find(name) for name in message.enqueue_op_name]
        self._close_op, self._cancel_op = find(message.close_op_name), find(message.cancel_op_name)
        codes = message.queue_closed_exception_types or (errors.OUT_OF_RANGE,)
        self._queue_closed_exception_types = tuple(map(errors.exception_type_from_error_code, codes))

    # ---- what it is

    @property
    def queue(self) -> Any:
        """The queue (from a message: the operation that makes it)."""
        return self._queue

    @property
    def enqueue_ops(self) -> list[Any]:
        """The operations that enqueue, one a thread."""
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        """The operation that closes the queue."""
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        """The operation that closes the queue and cancels pending enqueues."""
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type[errors.OpError], ...]:
        """The errors that mean the end of the input."""
        return self._queue_closed_exception_types

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """The errors of threads that have no coordinator."""
        return self._exceptions_raised

    @property
    def name(self) -> str:
        """The queue's name."""
        return self._queue.name  # type: ignore[no-any-return]

    # ---- threads

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """Threads that run the enqueue operations in `sess`; none while such threads run there already.

        `coord`: gets the errors and is asked when to stop; it registers the threads. `start`: starts them.
        """
        with self._lock:
            if self._running.get(sess, 0) > 0:
                return []
            self._running[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        threads = [self._thread(op.name, self._run, sess, op, coord) for op in self._enqueue_ops]
        if coord is not None:
            threads.append(self._thread("close_on_stop", self._close_on_stop, sess, coord))
        for thread in threads:
            thread.daemon = daemon
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def _thread(self, purpose: str, target: Callable[..., None], *arguments: Any) -> threading.Thread:
        return threading.Thread(
            target=target, args=arguments, name=f"QueueRunnerThread-{self.name}-{purpose}"
        )

    def _run(self, sess: Any, enqueue_op: Any, coord: Coordinator | None) -> None:
        try:
            repeat(sess, enqueue_op, _never if coord is None else coord.should_stop)
        except self._queue_closed_exception_types:
            if self._ended(sess) == 0:
                self._close(sess, self._close_op)
            return
        except Exception as error:
            self._ended(sess)
            self._report(error, coord)
            return
        self._ended(sess)

    def _ended(self, sess: Any) -> int:
        """Counts a thread of this session as ended; returns how many still run."""
        with self._lock:
            self._running[sess] -= 1
            return self._running[sess]

    def _report(self, error: Exception, coord: Coordinator | None) -> None:
        if coord is not None:
            if not coord.joined:  # else the session was closed while the thread waited
                coord.request_stop(error)
            return
        logging.error("Exception in QueueRunner: %s", error)
        with self._lock:
            self._exceptions_raised.append(error)
        raise error

    def _close_on_stop(self, sess: Any, coord: Coordinator) -> None:
        coord.wait_for_stop()
        self._close(sess, self._cancel_op)

    def _close(self, sess: Any, close_op: Any) -> None:
        """Runs the operation that closes the queue; that the session is gone does not matter any more."""
        with contextlib.suppress(errors.OpError, RuntimeError):
            sess.make_callable(close_op)()

    # ---- messages

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A QueueRunnerDef that names its operations; None if the queue lies outside `export_scope`."""
        if export_scope is not None and not self.name.startswith(export_scope):
            return None
        codes: Any = map(errors.error_code_from_exception_type, self._queue_closed_exception_types)
        return QueueRunnerDef(
            queue_name=without_scope(self.name, export_scope),
            enqueue_op_name=[without_scope(op.name, export_scope) for op in self._enqueue_ops],
            close_op_name=without_scope(self._close_op.name, export_scope),
            cancel_op_name=without_scope(self._cancel_op.name, export_scope),
            queue_closed_exception_types=codes,
        )

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """The runner that a QueueRunnerDef describes, with the default graph's operations."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)


def _never() -> bool:
    return False


def _checked_types(types: Any) -> tuple[type[errors.OpError], ...]:
    if types is None:
        return (errors.OutOfRangeError,)
    if (
        isinstance(types, tuple)
        and types
        and all(isinstance(t, type) and issubclass(t, errors.OpError) for t in types)
    ):
        return types
    raise TypeError(
        f"queue_closed_exception_types, when provided, must be a tuple of tf.error types, but saw: {types!r}"
    )


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a runner to a collection of the default graph, where `start_queue_runners` finds it."""
    scope.get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Makes (and with `start` starts) the threads of all runners in a collection of the session's graph.

    `sess`: None is the default session (ValueError if there is none). Returns the threads. TypeError if
    `sess` is no session.
    """
    if sess is None:
        sess = scope.get_default_session()
        if sess is None:
            raise ValueError(
                "Cannot start queue runners: No default session is registered. Use "
                "`with sess.as_default()` or pass an explicit session to "
                "tf.start_queue_runners(sess=sess)"
            )
    if not isinstance(sess, BaseSession):
        if type(sess).__name__ in _SELF_STARTING:
            return []
        raise TypeError(f"sess must be a `tf.Session` object. Given class: {type(sess)}")
    runners = sess.graph.get_collection(collection)
    if not runners:
        logging.warning(
            "`tf.train.start_queue_runners()` was called when no queue runners were defined. You can "
            "safely remove the call to this deprecated function."
        )
    with sess.graph.as_default():
        return [
            thread
            for runner in runners
            for thread in runner.create_threads(sess, coord=coord, daemon=daemon, start=start)
        ]


register_proto_function(GraphKeys.QUEUE_RUNNERS, QueueRunnerDef, QueueRunner.to_proto, QueueRunner.from_proto)
