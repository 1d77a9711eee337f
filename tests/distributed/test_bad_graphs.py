"""Graphs and sessions that do not fit their cluster: TensorFlow's classes of errors, with task and node."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import server_processes

import flowstone as tf

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


@pytest.fixture(scope="module")
def processes() -> Iterator[server_processes.Processes]:
    with server_processes.running(ps=1, worker=2) as found:
        yield found


def test_a_python_function_of_another_process(processes: server_processes.Processes) -> None:
    with tf.device("/job:worker/task:1"):
        y = tf.py_func(lambda x: x + 1, [tf.constant(1)], tf.int32, name="mine")
    with tf.Session(processes.target()) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"pyfunc_\d+ is not found") as caught:
            session.run(y)
        assert caught.value.op is y.op
        assert caught.value.message.startswith("From /job:worker/replica:0/task:1:\n")
        assert session.run(tf.constant(2) + 1) == 3


def test_a_handle_stays_with_its_task(processes: server_processes.Processes) -> None:
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("held", [2], use_resource=True, initializer=tf.ones_initializer())
    with tf.device("/job:worker/task:1"):
        moved = tf.identity(v.handle)
        value = tf.raw_ops.ReadVariableOp(resource=moved, dtype=tf.float32)
    with tf.Session(processes.target()) as session:
        session.run(v.initializer)
        assert session.run(value).tolist() == [1.0, 1.0]  # it is read where it is, as in TensorFlow
        with pytest.raises(tf.errors.InvalidArgumentError, match="belongs to its process") as caught:
            session.run(v.handle)
        assert caught.value.op is v.handle.op


def test_a_reference_cannot_be_changed_from_another_task(processes: server_processes.Processes) -> None:
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("changed", [2], use_resource=False, initializer=tf.ones_initializer())
    with tf.device("/job:worker/task:1"):
        add = tf.assign_add(v, [1.0, 2.0], name="adds")
    with tf.Session(processes.target()) as session:
        session.run(v.initializer)
        np.testing.assert_array_equal(session.run(add), [2.0, 3.0])  # it runs where the reference is
        lines = session.explain(add).split("placement\n")[1].splitlines()
        assert [line.split()[2] for line in lines if line.split()[:1] == ["adds"]] == [f"{PS}/device:CPU:0"]


def test_a_forgotten_session(processes: server_processes.Processes) -> None:
    y = tf.constant(1) + 1
    with tf.Session(processes.target()) as session:
        assert session.run(y) == 2
        tf.Session.reset(processes.target())
        for _ in range(2):
            with pytest.raises(tf.errors.AbortedError, match=r"Session \w+ is not found"):
                session.run(y)
        with pytest.raises(tf.errors.AbortedError, match="is not found"):
            session.explain(y)
        with pytest.raises(tf.errors.AbortedError, match="is not found"):
            session.list_devices()


def test_tasks_that_were_restarted(processes: server_processes.Processes) -> None:
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("lost", [2], initializer=tf.ones_initializer())
    with tf.device("/job:worker/task:1"):
        y = v + 1.0
    with tf.Session(processes.target()) as session:
        session.run(v.initializer)
        assert session.run(y).tolist() == [2.0, 2.0]
        processes.restart("ps", 0)
        for _ in range(2):  # the first may see the connection break
            with pytest.raises((tf.errors.AbortedError, tf.errors.UnavailableError)) as caught:
                session.run(y)
        assert isinstance(caught.value, tf.errors.AbortedError)
        assert f'Possibly this worker ("{PS}") just restarted' in caught.value.message
        assert caught.value.message.startswith(f"From {PS}:\n")
    with tf.Session(processes.target()) as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value lost"):
            session.run(y)
        session.run(v.initializer)
        assert session.run(y).tolist() == [2.0, 2.0]
        processes.restart("worker", 0)
        with pytest.raises((tf.errors.AbortedError, tf.errors.UnavailableError)):
            session.run(y)
        with pytest.raises(tf.errors.AbortedError, match="Possibly, this master has restarted"):
            session.run(y)


def test_a_task_that_is_gone_is_named(processes: server_processes.Processes) -> None:
    with tf.device("/job:ps/task:0"):
        x = tf.placeholder(tf.float32, [])
        y = x * 2.0
    with tf.Session(processes.target()) as session:
        assert session.run(y, {x: 2.0}) == 4.0
        processes.end("ps", 0)
        try:
            for _ in range(2):
                with pytest.raises(tf.errors.UnavailableError) as caught:
                    session.run(y, {x: 2.0})
                assert PS in caught.value.message
        finally:
            processes.restart("ps", 0)
