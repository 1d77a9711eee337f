"""`TestCase`: a unit test with a fresh default graph, fixed seeds and a session.

    class AddTest(tf.test.TestCase):
        def test_add(self):
            with self.test_session() as session:
                self.assertAllClose(session.run(tf.add([1.0], 2.0)), [3.0])

`session` makes a new session each time; `cached_session` (and `test_session`) gives the same one throughout a
test. Without `use_gpu` a session uses the CPU only; with `force_gpu` everything is placed on the first GPU.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flowstone.client.session import Session
from flowstone.framework import errors
from flowstone.framework.graphs.graph_def import messages
from flowstone.framework.tensors import scope
from flowstone.testing.assertions import Assertions
from flowstone.testing.environment import get_temp_dir, gpu_device_name

__all__ = ["TestCase"]

DEFAULT_GRAPH_SEED = 87654321


class TestCase(Assertions):
    """A test of graphs; see the module, and `Assertions` for its comparisons."""

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self._threads: list[CheckedThread] = []
        self._tempdir: str | None = None
        self._cached_session: Any = None
        self._cached_key: Any = None

    def setUp(self) -> None:
        """Makes a new default graph; sets the seeds of `random`, NumPy and the graph."""
        super().setUp()
        if self._testMethodName == "test_session":  # by its name, unittest takes it for a test
            self.skipTest("Not a test.")
        self._close_cached_session()
        random.seed(DEFAULT_GRAPH_SEED)
        np.random.seed(DEFAULT_GRAPH_SEED)
        if not scope.graphs.items:
            scope.reset_default_graph()
        scope.get_default_graph().seed = DEFAULT_GRAPH_SEED

    def tearDown(self) -> None:
        """Closes the session; fails if a checked thread was not joined."""
        for thread in self._threads:
            thread.check_termination()
        self._close_cached_session()
        super().tearDown()

    def _close_cached_session(self) -> None:
        if self._cached_session is not None:
            self._cached_session.close()
            self._cached_session = self._cached_key = None

    def get_temp_dir(self) -> str:
        """A directory of this test's own."""
        if self._tempdir is None:
            self._tempdir = tempfile.mkdtemp(dir=get_temp_dir())
        return self._tempdir

    # ---- sessions

    @contextlib.contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[Session]:
        """A new session of `graph` (default: the default graph), which is the default inside the context."""
        graph = scope.get_default_graph() if graph is None else graph
        session = Session(graph=graph, config=_config(config, use_gpu, force_gpu))
        with session, _placement(graph, use_gpu, force_gpu):
            yield session

    @contextlib.contextmanager
    def cached_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[Session]:
        """The test's session, made at the first call and default inside the context.

        Raises ValueError if the arguments differ from the first call's.
        """
        key = graph, None if config is None else config.SerializeToString(), force_gpu
        if self._cached_session is None:
            used = scope.get_default_graph() if graph is None else graph
            self._cached_session = Session(graph=used, config=_config(config, use_gpu, force_gpu))
            self._cached_key = key
        elif self._cached_key != key:
            raise ValueError(
                "The graph, config and force_gpu used to get the cached session are different than the ones "
                "used to create it. Maybe create a new session with self.session()"
            )
        session = self._cached_session
        graph = session.graph
        with graph.as_default(), session.as_default(), _placement(graph, use_gpu, force_gpu):
            yield session

    def test_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Any:
        """`cached_session`, or `session` if a `graph` is given. On the CPU unless told otherwise."""
        if graph is None:
            return self.cached_session(None, config, use_gpu, force_gpu)
        return self.session(graph, config, use_gpu, force_gpu)

    # unittest and pytest collect methods by this prefix; this one is no test.
    test_session.__test__ = False  # type: ignore[attr-defined]

    def evaluate(self, tensors: Any) -> Any:
        """The values of (nested) tensors, in the default session or else the test's."""
        session = scope.get_default_session() or self._cached_session
        if session is not None:
            return session.run(tensors)
        with self.cached_session() as session:
            return session.run(tensors)

    # ---- threads

    def checkedThread(
        self, target: Callable[..., Any], args: Any = None, kwargs: Any = None
    ) -> CheckedThread:
        """A thread whose exception fails the test at `join`; a test must join all that it starts."""
        thread = CheckedThread(self, target, args, kwargs)
        self._threads.append(thread)
        return thread


class CheckedThread:
    """A thread that a test starts and joins; an exception in it is a failure of the test."""

    def __init__(
        self, test: TestCase, target: Callable[..., Any], args: Any = None, kwargs: Any = None
    ) -> None:
        self._test, self._target = test, target
        self._args, self._kwargs = tuple(args or ()), dict(kwargs or {})
        self._thread = threading.Thread(target=self._protected_run)
        self._exception: BaseException | None = None
        self._started = self._joined = False

    def _protected_run(self) -> None:
        try:
            self._target(*self._args, **self._kwargs)
        except Exception as error:
            self._exception = error

    def start(self) -> None:
        """Starts the thread."""
        self._started = True
        self._thread.start()

    def join(self) -> None:
        """Waits until the thread ends, and fails the test if it raised."""
        self._joined = True
        self._thread.join()
        if self._exception is not None:
            self._test.fail(f"Error in checkedThread: {self._exception}")

    def is_alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """Fails the test if it was started and never joined."""
        if self._started and not self._joined:
            state = "was not joined and is still running" if self.is_alive() else "was not joined"
            self._test.fail(f"A checked thread {state}.")


def _config(config: Any, use_gpu: bool, force_gpu: bool) -> Any:
    """A session's configuration for a test: soft placement unless a GPU is demanded, no GPU unless one is
    allowed.
    """
    result = messages("config_pb2").ConfigProto()
    if config is None:
        result.allow_soft_placement = not force_gpu
    else:
        result.CopyFrom(config)
    if not use_gpu and not force_gpu and "GPU" not in result.device_count:
        result.device_count["GPU"] = 0
    return result


@contextlib.contextmanager
def _placement(graph: Any, use_gpu: bool, force_gpu: bool) -> Iterator[None]:
    if force_gpu:
        name = gpu_device_name()
        if not name:
            raise errors.NotFoundError(None, None, "No GPU is available for force_gpu.")
        with graph.device(name):
            yield
    elif use_gpu:
        yield
    else:
        with graph.device("/device:CPU:0"):
            yield
