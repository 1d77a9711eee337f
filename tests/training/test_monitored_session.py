"""Monitored sessions do what TensorFlow's do, in its order, and go on after failures."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import forked

pytestmark = pytest.mark.usefixtures("graph")


def counting() -> Any:
    return tf.assign_add(tf.train.get_or_create_global_step(), 1)


class Raising(tf.train.SessionRunHook):  # type: ignore[misc]
    """Raises these errors in turn, where there is one, after the steps."""

    def __init__(self, *errors: Any) -> None:
        self.errors = list(errors)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error


def lost() -> Exception:
    return tf.errors.AbortedError(None, None, "lost")  # type: ignore[no-any-return]


# ---- recovery


def test_a_step_function_is_repeated_in_the_new_session() -> None:
    count, sessions = counting(), []

    def step(step_context: Any) -> int:
        sessions.append(step_context.session)
        step_context.session.run(count)
        return int(step_context.run_with_hooks(count))

    with tf.train.MonitoredSession(hooks=[Raising(lost())]) as session:
        assert session.run_step_fn(step) == 2
    assert len(set(sessions)) == 2


def test_creating_a_session_is_repeated() -> None:
    count = counting()

    class Unlucky(tf.train.ChiefSessionCreator):  # type: ignore[misc]
        tries = 0

        def create_session(self) -> Any:
            Unlucky.tries += 1
            if Unlucky.tries < 3:
                raise lost()
            return super().create_session()

    with tf.train.MonitoredSession(Unlucky()) as session:
        assert session.run(count) == 1
    assert Unlucky.tries == 3


def test_a_thread_that_lost_a_process_makes_the_session_anew() -> None:
    count, coords = counting(), []

    class Thread(tf.train.SessionRunHook):  # type: ignore[misc]
        def after_create_session(self, session: Any, coord: Any) -> None:
            coords.append(coord)

    with tf.train.MonitoredSession(hooks=[Thread()]) as session:
        assert session.run(count) == 1
        coords[0].request_stop(lost())
        assert not session.should_stop()
        assert session.run(count) == 1
    assert len(coords) == 2


def test_errors_of_threads_are_raised_at_the_end_and_once() -> None:
    count, failed = counting(), threading.Event()

    class Failing(tf.train.SessionRunHook):  # type: ignore[misc]
        def after_create_session(self, session: Any, coord: Any) -> None:
            def work() -> None:
                with coord.stop_on_exception():
                    failed.wait(10)
                    raise ValueError("a thread's")

            thread = threading.Thread(target=work)
            thread.start()
            coord.register_thread(thread)

    with (
        pytest.raises(ValueError, match="a thread's"),
        tf.train.MonitoredSession(hooks=[Failing()]) as session,
    ):
        session.run(count)
        failed.set()
        while not session.should_stop():
            pass
    assert session.should_stop()
    with pytest.raises(RuntimeError, match="closed"):
        session.run(count)


CRASHING = """
import json, os, signal, sys
import flowstone as tf
folder, die_at = sys.argv[1], int(sys.argv[2])
x = tf.get_variable("x", initializer=0.0)
step = tf.train.get_or_create_global_step()
train = tf.group(tf.assign_add(step, 1), tf.assign_add(x, 0.5))
seen = []
with tf.train.MonitoredTrainingSession(
    checkpoint_dir=folder, save_checkpoint_steps=4, save_summaries_steps=2,
    hooks=[tf.train.StopAtStepHook(last_step=20)],
) as session:
    while not session.should_stop():
        session.run(train)
        seen.append([int(session._tf_sess().run(step)), float(session._tf_sess().run(x))])
        if seen[-1][0] == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
print(json.dumps(seen))
"""


def crash(folder: Path, die_at: int) -> subprocess.CompletedProcess[str]:
    return forked.run([str(folder), str(die_at)], code=CRASHING)


def test_a_killed_training_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    assert crash(tmp_path, 7).returncode == -signal.SIGKILL
    assert tf.train.latest_checkpoint(tmp_path).endswith("model.ckpt-4")
    assert crash(tmp_path, 15).returncode == -signal.SIGKILL
    done = crash(tmp_path, -1)
    assert not done.returncode, done.stderr
    seen = json.loads(done.stdout)
    assert seen == [[step, step / 2] for step in range(13, 21)]
    assert tf.train.latest_checkpoint(tmp_path).endswith("model.ckpt-20")


# ---- steps


def test_options_and_metadata_of_hook_and_program() -> None:
    count, seen = counting(), []

    class Tracing(tf.train.SessionRunHook):  # type: ignore[misc]
        def before_run(self, run_context: Any) -> Any:
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, timeout_in_ms=5000)
            return tf.train.SessionRunArgs(None, None, options)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            seen.append((run_values.options, run_values.run_metadata))

    with tf.train.MonitoredSession(hooks=[Tracing()]) as session:
        session.run(count)
        metadata = tf.RunMetadata()
        session.run(count, options=tf.RunOptions(timeout_in_ms=60000), run_metadata=metadata)
    assert [options.timeout_in_ms for options, _ in seen] == [5000, 60000]
    assert all(options.trace_level == tf.RunOptions.FULL_TRACE for options, _ in seen)
    assert all(found.step_stats.dev_stats for _, found in seen)
    assert seen[1][1] is metadata


def test_fetches_of_every_form_beside_those_of_hooks() -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    sparse = tf.SparseTensor([[0, 1]], x[:1], [2, 2])

    class Fetching(tf.train.SessionRunHook):  # type: ignore[misc]
        def before_run(self, run_context: Any) -> Any:
            return tf.train.SessionRunArgs({"double": x * 2.0, "pair": (x, "x:0")})

        def after_run(self, run_context: Any, run_values: Any) -> None:
            assert run_values.results["double"].tolist() == [2.0, 4.0]
            assert [part.tolist() for part in run_values.results["pair"]] == [[1.0, 2.0]] * 2

    hook = Fetching()
    doubled = x * 2.0
    hook.before_run = lambda context: tf.train.SessionRunArgs({"double": doubled, "pair": (x, "x:0")})
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(2):
            value = session.run({"a": [x], "b": sparse}, {x: [1.0, 2.0]})
            assert value["a"][0].tolist() == [1.0, 2.0]
            assert value["b"].values.tolist() == [1.0]


def test_a_worker_waits_for_the_chief() -> None:
    v = tf.get_variable("v", initializer=3.0)
    scaffold = tf.train.Scaffold().finalize()
    worker = tf.train.WorkerSessionCreator(scaffold, "local", max_wait_secs=0)
    with pytest.raises(tf.errors.DeadlineExceededError, match="not ready after waiting 0 secs"):
        worker.create_session()
    chief = tf.train.ChiefSessionCreator(scaffold, "local").create_session()
    session = tf.train.MonitoredTrainingSession("local", is_chief=False, scaffold=scaffold)
    assert session._hooks == []
    assert session.run(v) == 3.0
    session.close()
    chief.close()
    tf.Session.reset("local")


def test_the_hook_of_synchronous_replicas() -> None:
    v = tf.get_variable("v", initializer=1.0)
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.25), 1, 1)
    train = optimizer.minimize(v * 2.0, tf.train.get_or_create_global_step())
    hook = optimizer.make_session_run_hook(True, num_tokens=0)
    assert isinstance(hook, tf.train.SessionRunHook)
    scaffold = tf.train.Scaffold(
        local_init_op=optimizer.chief_init_op, ready_for_local_init_op=optimizer.ready_for_local_init_op
    )
    with tf.train.MonitoredTrainingSession(
        scaffold=scaffold, hooks=[hook], stop_grace_period_secs=0.1
    ) as session:
        for _ in range(3):
            session.run(train)
        np.testing.assert_allclose(session.run(v), -0.5)


@pytest.mark.parametrize(
    ("session_class", "layers"), [(tf.train.MonitoredSession, 4), (tf.train.SingularMonitoredSession, 3)]
)
def test_the_session_is_taken_out_layer_by_layer(session_class: Any, layers: int) -> None:
    value, graph = tf.constant(3), tf.get_default_graph()
    with session_class() as session:
        inner, graphs = session, [session.graph]
        for _ in range(layers):
            inner = inner._sess
            graphs.append(inner.graph)
        assert type(inner).__name__ == "Session"
        assert inner.run(value) == 3
        coordinated = session._sess if layers == 3 else session._sess._sess
    assert all(each is graph for each in graphs)
    assert coordinated.graph is None
