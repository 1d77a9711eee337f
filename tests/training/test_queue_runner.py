"""Queue runners fill queues in threads, close them at the end of the input, and report what fails."""

from __future__ import annotations

import logging
import threading

import pytest

import flowstone as tf
from flowstone.io.proto.queue_runner_pb2 import QueueRunnerDef

pytestmark = pytest.mark.usefixtures("graph")

# What TensorFlow 2.21 writes for the runner of a queue named "fifo_queue" with two equal operations.
WIRE = b'\n\nfifo_queue\x12\x12fifo_queue_enqueue\x12\x12fifo_queue_enqueue\x1a\x10fifo_queue_Close"\x12fifo_queue_Close_1*\x01\x0b'  # noqa: E501


def counting_queue(limit: int, capacity: int = 100) -> tuple[tf.FIFOQueue, tf.Operation, tf.Variable]:
    """A queue, an operation that enqueues 0, 1, … up to `limit` without it, and the counter."""
    counter = tf.Variable(0, name="counter")
    queue = tf.FIFOQueue(capacity, ["int32"], shapes=[[]])
    return queue, queue.enqueue(counter.count_up_to(limit)), counter


def failing_enqueue(queue: tf.FIFOQueue) -> tf.Operation:
    bad = tf.check_numerics(tf.placeholder_with_default(float("nan"), []), "bad")
    return queue.enqueue(tf.cast(bad, tf.int32), name="fail")


# ---- what a runner is


def test_public_names() -> None:
    assert tf.train.queue_runner.QueueRunner is tf.train.QueueRunner
    assert tf.train.queue_runner.add_queue_runner is tf.train.add_queue_runner
    assert tf.train.queue_runner.start_queue_runners is tf.train.start_queue_runners


def test_a_runner_adds_the_operations_that_close(graph: tf.Graph) -> None:
    queue = tf.FIFOQueue(3, ["float32"], shapes=[[]])
    enqueue = queue.enqueue(1.0)
    runner = tf.train.QueueRunner(queue, [enqueue, enqueue])
    assert runner.name == "fifo_queue"
    assert runner.queue is queue
    assert runner.enqueue_ops == [enqueue, enqueue]
    assert runner.close_op.name == "fifo_queue_Close"
    assert runner.cancel_op.name == "fifo_queue_Close_1"
    assert not runner.close_op.get_attr("cancel_pending_enqueues")
    assert runner.cancel_op.get_attr("cancel_pending_enqueues")
    assert runner.queue_closed_exception_types == (tf.errors.OutOfRangeError,)
    assert runner.exceptions_raised == []
    other = tf.train.QueueRunner(queue, [enqueue], close_op=enqueue, cancel_op=runner.cancel_op)
    assert (other.close_op, other.cancel_op) == (enqueue, runner.cancel_op)


def test_wrong_arguments() -> None:
    queue = tf.FIFOQueue(3, ["float32"], shapes=[[]])
    enqueue = queue.enqueue(1.0)
    for arguments in ((), (queue,), (queue, []), (None, [enqueue])):
        with pytest.raises(ValueError, match=r"Must provide queue and enqueue_ops\."):
            tf.train.QueueRunner(*arguments)
    for types in ([ValueError], (ValueError,), (tf.errors.OutOfRangeError, 3), ()):
        with pytest.raises(TypeError, match=r"must be a tuple of tf\.error types"):
            tf.train.QueueRunner(queue, [enqueue], queue_closed_exception_types=types)


# ---- messages


def test_the_message_is_tensorflows() -> None:
    queue = tf.FIFOQueue(3, ["float32"], shapes=[[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)] * 2)
    message = runner.to_proto()
    assert message.SerializeToString() == WIRE
    read = tf.train.QueueRunner.from_proto(QueueRunnerDef.FromString(WIRE))
    assert read.name == "fifo_queue"
    assert read.enqueue_ops == runner.enqueue_ops
    assert (read.close_op, read.cancel_op) == (runner.close_op, runner.cancel_op)
    assert read.queue_closed_exception_types == (tf.errors.OutOfRangeError,)
    with pytest.raises(ValueError, match="queue_runner_def and queue are mutually exclusive"):
        tf.train.QueueRunner(queue, queue_runner_def=message)
    with pytest.raises(TypeError, match="must be a QueueRunnerDef"):
        tf.train.QueueRunner(queue_runner_def=3)


def test_messages_inside_a_scope() -> None:
    with tf.name_scope("sc"):
        queue = tf.FIFOQueue(3, ["float32"], shapes=[[]], name="q")
        types = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
        runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)], queue_closed_exception_types=types)
    assert runner.to_proto().queue_name == "sc/q"
    assert runner.to_proto("other") is None
    message = runner.to_proto("sc")
    assert (message.queue_name, list(message.enqueue_op_name)) == ("q", ["q_enqueue"])
    assert list(message.queue_closed_exception_types) == [11, 1]
    read = tf.train.QueueRunner.from_proto(message, import_scope="sc")
    assert read.name == "sc/q"
    assert read.queue_closed_exception_types == types


# ---- threads


def test_the_end_of_the_input_closes_the_queue() -> None:
    queue, enqueue, counter = counting_queue(5)
    runner = tf.train.QueueRunner(queue, [enqueue] * 2)
    item, is_closed = queue.dequeue(), queue.is_closed()
    with tf.Session() as session:
        session.run(counter.initializer)
        coord = tf.train.Coordinator()
        threads = runner.create_threads(session, coord=coord, daemon=True, start=True)
        assert sorted(session.run(item) for _ in range(5)) == [0, 1, 2, 3, 4]
        with pytest.raises(tf.errors.OutOfRangeError, match="is closed and has insufficient elements"):
            session.run(item)
        assert not coord.should_stop()
        assert session.run(is_closed)
        coord.request_stop()
        coord.join(threads)
    assert runner.exceptions_raised == []


def test_threads_have_names_and_run_once_a_session() -> None:
    queue = tf.FIFOQueue(3, ["float32"], shapes=[[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)] * 2)
    with tf.Session() as session, tf.Session() as other:
        threads = runner.create_threads(session)
        assert [thread.name for thread in threads] == ["QueueRunnerThread-fifo_queue-fifo_queue_enqueue"] * 2
        assert not any(thread.daemon or thread.is_alive() for thread in threads)
        assert runner.create_threads(session) == []
        coord = tf.train.Coordinator()
        threads = runner.create_threads(other, coord=coord, daemon=True, start=True)
        assert threads[2].name == "QueueRunnerThread-fifo_queue-close_on_stop"
        assert all(thread.daemon and thread.is_alive() for thread in threads)
        coord.request_stop()
        coord.join()


def test_a_stop_cancels_enqueues_that_wait_and_the_runner_can_start_anew() -> None:
    queue = tf.FIFOQueue(3, ["float32"], shapes=[[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)] * 2)
    is_closed = queue.is_closed()
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        for _ in range(2):
            threads = runner.create_threads(session, coord=coord, start=True)
            assert len(threads) == 3
            coord.request_stop()
            coord.join(threads)
        assert session.run(is_closed)
    assert not any(thread.is_alive() for thread in threads)


def test_an_error_reaches_the_coordinator() -> None:
    queue = tf.FIFOQueue(3, ["int32"], shapes=[[]])
    runner = tf.train.QueueRunner(queue, [failing_enqueue(queue)])
    is_closed = queue.is_closed()
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = runner.create_threads(session, coord=coord, start=True)
        with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
            coord.join(threads)
        assert session.run(is_closed)
    assert runner.exceptions_raised == []


def test_without_a_coordinator_an_error_is_kept_and_raised(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    raised = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: raised.append(arguments.exc_value))
    queue = tf.FIFOQueue(3, ["int32"], shapes=[[]])
    runner = tf.train.QueueRunner(queue, [failing_enqueue(queue)])
    is_closed = queue.is_closed()
    with tf.Session() as session, caplog.at_level(logging.ERROR, logger="tensorflow"):
        for thread in runner.create_threads(session, start=True):
            thread.join()
        assert not session.run(is_closed)
    assert [type(error) for error in runner.exceptions_raised] == [tf.errors.InvalidArgumentError]
    assert raised == runner.exceptions_raised
    assert caplog.messages[0].startswith("Exception in QueueRunner: ")


def test_other_errors_may_mean_the_end() -> None:
    queue = tf.FIFOQueue(3, ["int32"], shapes=[[]])
    types = (tf.errors.InvalidArgumentError,)
    runner = tf.train.QueueRunner(queue, [failing_enqueue(queue)], queue_closed_exception_types=types)
    item = queue.dequeue()
    with tf.Session() as session:
        threads = runner.create_threads(session, start=True)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(item)
        for thread in threads:
            thread.join()
    assert runner.exceptions_raised == []


def test_closing_the_session_ends_the_threads() -> None:
    queue = tf.FIFOQueue(3, ["float32"], shapes=[[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)] * 3)
    item = queue.dequeue()
    session = tf.Session()
    coord = tf.train.Coordinator()
    threads = runner.create_threads(session, coord=coord, daemon=True, start=True)
    session.run(item)
    session.close()
    with pytest.raises((tf.errors.CancelledError, RuntimeError)):
        coord.join(threads)
    assert not any(thread.is_alive() for thread in threads)


# ---- start_queue_runners


@pytest.mark.parametrize("devices", [1, 2])
def test_the_time_limit_of_the_session_holds_for_enqueues(devices: int) -> None:
    with tf.device(f"/cpu:{devices - 1}"):
        queue = tf.FIFOQueue(2, ["float32"], shapes=[[]])
    enqueue = queue.enqueue(1.0)
    coordinator = tf.train.Coordinator()
    config = tf.ConfigProto(device_count={"CPU": devices}, operation_timeout_in_ms=30)
    with tf.Session(config=config) as session:
        runner = tf.train.QueueRunner(queue, [enqueue, enqueue])
        threads = runner.create_threads(session, coordinator, start=True)
        with pytest.raises(tf.errors.DeadlineExceededError):
            coordinator.join(threads)
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_start_queue_runners_starts_those_of_the_collection(graph: tf.Graph) -> None:
    queue = tf.FIFOQueue(3, ["float32"], shapes=[[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)])
    tf.train.add_queue_runner(runner)
    assert tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS) == [runner]
    tf.train.add_queue_runner(runner, "mine")
    item = queue.dequeue()
    with tf.Session() as session:
        threads = tf.train.start_queue_runners(start=False)
        assert len(threads) == 1
        assert threads[0].daemon
        assert not threads[0].is_alive()
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord, collection="mine")
        assert len(threads) == 2
        assert session.run(item) == 1.0
        coord.request_stop()
        coord.join(threads)


def test_start_queue_runners_needs_a_session() -> None:
    with pytest.raises(ValueError, match="No default session is registered"):
        tf.train.start_queue_runners()
    with pytest.raises(TypeError, match=r"sess must be a `tf\.Session` object\. Given class: <class 'int'>"):
        tf.train.start_queue_runners(sess=3)


def test_a_session_that_starts_runners_itself_is_left_alone() -> None:
    class MonitoredSession:
        """Like the class of this name, it has started them."""

    assert tf.train.start_queue_runners(MonitoredSession()) == []


def test_no_runners_are_worth_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with tf.Session() as session, caplog.at_level(logging.WARNING, logger="tensorflow"):
        assert tf.train.start_queue_runners(session, collection="none") == []
    assert "when no queue runners were defined" in caplog.messages[0]
