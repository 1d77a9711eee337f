"""A Supervisor's threads, errors and older names; its sessions are in `session_programs.py`."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def counting() -> Any:
    return tf.assign_add(tf.train.get_or_create_global_step(), 1)


def events(folder: Path) -> list[Any]:
    return [e for path in glob.glob(f"{folder}/*tfevents*") for e in tf.train.summary_iterator(path)]


def test_services_save_and_write(tmp_path: Path) -> None:
    count = counting()
    tf.summary.scalar("one", 1.0)
    supervisor = tf.train.Supervisor(logdir=tmp_path, save_summaries_secs=0.01, save_model_secs=0.01)
    with supervisor.managed_session() as session:
        for _ in range(3):
            session.run(count)
        while tf.train.latest_checkpoint(tmp_path) is None or len(events(tmp_path)) < 8:
            supervisor.summary_writer.flush()
            assert not supervisor.should_stop()
    found = events(tmp_path)
    assert {v.tag for e in found for v in e.summary.value} == {"one", "global_step/sec"}
    statuses = [e.session_log.status for e in found if e.HasField("session_log")]
    assert statuses[0] == tf.SessionLog.START
    assert statuses[-1] == tf.SessionLog.STOP
    assert tf.SessionLog.CHECKPOINT in statuses


def test_queue_runners_begin_and_their_errors_are_raised() -> None:
    bad = tf.train.batch([tf.gather([0], tf.train.range_input_producer(3, shuffle=False).dequeue())], 1)
    supervisor = tf.train.Supervisor()
    with pytest.raises(tf.errors.InvalidArgumentError), supervisor.managed_session() as session:
        while not supervisor.should_stop():
            session.run(bad)


def test_a_loop_goes_on_after_a_lost_process(tmp_path: Path) -> None:
    count, seen = counting(), []
    supervisor = tf.train.Supervisor(logdir=tmp_path, save_model_secs=0, save_summaries_secs=0)

    def step(session: Any, lost_at: int) -> None:
        seen.append(int(session.run(count)))
        if seen[-1] == 2:
            supervisor.saver.save(session, supervisor.save_path, 2)
        if len(seen) == lost_at:
            raise tf.errors.AbortedError(None, None, "lost")
        if seen[-1] == 5:
            supervisor.request_stop()

    tf.train.basic_train_loop(supervisor, step, kwargs={"lost_at": 4})
    assert seen == [1, 2, 3, 4, 3, 4, 5]


def test_who_is_not_chief_writes_nothing(tmp_path: Path) -> None:
    with tf.device("/cpu:0"):
        v = tf.get_variable("v", initializer=1.0)
    supervisor = tf.train.Supervisor(is_chief=False, logdir=tmp_path)
    assert supervisor.save_path is None
    assert supervisor.summary_writer is None
    with tf.Session("local") as chief:
        chief.run(supervisor.init_op)
        session = supervisor.PrepareSession("local")
        assert session.run(v) == 1.0
        with pytest.raises(RuntimeError, match="Only chief supervisor"):
            supervisor.StartStandardServices(session)
        with pytest.raises(RuntimeError, match="requires a summary writer"):
            supervisor.SummaryComputed(session, b"")
        supervisor.Stop()
        session.close()
    tf.Session.reset("local")
    assert not list(tmp_path.iterdir())


def test_variables_of_replicas_need_devices() -> None:
    tf.get_variable("v", initializer=1.0)
    with pytest.raises(ValueError, match="must have their device set"):
        tf.train.Supervisor(is_chief=False)


def test_own_threads_are_looped_and_stopped() -> None:
    counting()
    supervisor, calls = tf.train.Supervisor(summary_op=None), []
    with supervisor.managed_session():
        thread = supervisor.Loop(0.001, calls.append, ["a"])
        while len(calls) < 3:
            assert not supervisor.ShouldStop()
    assert not thread.is_alive()
    with supervisor.stop_on_exception():
        assert supervisor.ready_op.dtype == tf.string
    assert supervisor.coord.joined
