"""Failures, deadlines and closing: they reach every kernel, and leave a usable session and nothing else."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.native.codegen import making
from stepping import Running, own_threads, refused, runtime_object, until

pytestmark = pytest.mark.usefixtures("graph")

WRONG = tf.errors.InvalidArgumentError
LATE = tf.errors.DeadlineExceededError


def two_devices(**options: Any) -> tf.Session:
    return tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}, **options))


def fails(x: Any, name: str = "failing") -> Any:
    """`x`, or an error where it is infinite or not a number."""
    return tf.check_numerics(x, "bad value", name=name)


class Program:
    """A step, `fetch`, that fails if `switch` is fed 0; else it gives `value`."""

    def __init__(self, fetch: Any, switch: Any, value: Any, session: Callable[[], tf.Session]) -> None:
        self.fetch, self.switch, self.value, self.session = fetch, switch, value, session


def in_a_loop() -> Program:
    x = tf.placeholder(tf.float32, [])
    out = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y + fails(1.0 / x)), [0, 0.0])[1]
    return Program(out, x, 5.0, tf.Session)


def in_a_loop_of_the_executor() -> Program:
    x = tf.placeholder(tf.float32, [])
    queue = tf.FIFOQueue(10, [tf.float32])

    def body(i: Any, y: Any) -> Any:
        with tf.control_dependencies([fails(1.0 / x)]):
            enqueue = queue.enqueue(1.0)
        with tf.control_dependencies([enqueue]):
            taken = queue.dequeue()
        taken.set_shape([])
        return i + 1, y + taken

    return Program(tf.while_loop(lambda i, y: i < 5, body, [0, 0.0])[1], x, 5.0, tf.Session)


def in_a_partition() -> Program:
    x = tf.placeholder(tf.float32, [])
    with tf.device("/cpu:1"):
        there = fails(1.0 / x) + 1.0
    with tf.device("/cpu:0"):
        back = there * 2.0
    return Program(back, x, 4.0, two_devices)


def in_a_distributed_loop() -> Program:
    x = tf.placeholder(tf.float32, [])

    def body(i: Any, y: Any) -> Any:
        with tf.device("/cpu:1"):
            return i + 1, y + fails(1.0 / x)

    with tf.device("/cpu:0"):
        out = tf.while_loop(lambda i, y: i < 5, body, [0, 0.0])[1] * 1.0
    return Program(out, x, 5.0, two_devices)


def beside_a_blocked_dequeue() -> Program:
    x = tf.placeholder(tf.float32, [])
    queue = tf.FIFOQueue(10, [tf.float32], shapes=[[]])
    good = fails(1.0 / x)
    with tf.control_dependencies([good]):
        enqueue = queue.enqueue(3.0)
    with tf.control_dependencies([enqueue]):
        enqueued = tf.constant(1.0)
    return Program(queue.dequeue() + enqueued, x, 4.0, tf.Session)


PROGRAMS = [
    in_a_loop, in_a_loop_of_the_executor, in_a_partition, in_a_distributed_loop, beside_a_blocked_dequeue,
]  # fmt: skip


# ---- a kernel that raises


@pytest.mark.parametrize("make", PROGRAMS)
def test_a_kernel_that_raises_ends_its_step_alone(make: Callable[[], Program]) -> None:
    program = make()
    with program.session() as session:
        for _ in range(3):
            with pytest.raises(WRONG) as caught:
                session.run(program.fetch, {program.switch: 0.0})
            assert "bad value" in str(caught.value) and "failing" in caught.value.op.name
            assert session.run(program.fetch, {program.switch: 1.0}) == program.value


def test_a_python_function_that_raises_in_a_loop() -> None:
    def check(i: Any) -> Any:
        if i == 3:
            raise ValueError("three")
        return i

    v = tf.Variable(0)

    def body(i: Any) -> Any:
        checked = tf.py_func(check, [i], tf.int32)
        checked.set_shape([])
        with tf.control_dependencies([v.assign_add(1 + 0 * checked)]):
            return i + 1

    out = tf.while_loop(lambda i: i < 6, body, [tf.constant(0)])
    with tf.Session() as session:
        session.run(v.initializer)
        refused(session, out, WRONG, "three")
        assert session.run(v) == 3


# ---- deadlines


def endless_loop() -> Any:
    return tf.while_loop(lambda i: i >= 0, lambda i: i * 1, [tf.constant(0)])


def endless_loop_of_the_executor() -> Any:
    queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]])

    def body(i: Any) -> Any:
        with tf.control_dependencies([queue.enqueue(i)]):
            return queue.dequeue()

    return tf.while_loop(lambda i: i >= 0, body, [tf.constant(0)])


def blocked_dequeue() -> Any:
    return tf.FIFOQueue(10, [tf.int32], shapes=[[]]).dequeue()


def blocked_on_another_device() -> Any:
    with tf.device("/cpu:1"):
        there = tf.identity(tf.constant(1)) + tf.placeholder_with_default(1, [])
    with tf.device("/cpu:0"):
        return blocked_dequeue() + there


def blocked_in_a_loop() -> Any:
    queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]])
    return tf.while_loop(lambda i: i >= 0, lambda i: i + queue.dequeue(), [tf.constant(0)])


ENDLESS = [
    endless_loop, endless_loop_of_the_executor, blocked_dequeue, blocked_on_another_device, blocked_in_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("make", ENDLESS)
def test_a_deadline_ends_a_step(make: Callable[[], Any]) -> None:
    fetch, one = make(), tf.constant(1) + tf.placeholder_with_default(1, [])
    with two_devices() as session:
        for _ in range(2):
            late = Running(session, fetch, options=tf.RunOptions(timeout_in_ms=30)).ended()
            assert isinstance(late, LATE)
            assert session.run(one) == 2
    with two_devices(operation_timeout_in_ms=30) as session:
        assert isinstance(Running(session, fetch).ended(), LATE)


@pytest.mark.parametrize("make", ENDLESS[1:])
def test_closing_the_session_ends_steps(make: Callable[[], Any]) -> None:
    fetch = make()
    session = two_devices()
    steps = [Running(session, fetch) for _ in range(3)]
    until(lambda: len(session.steps) == 3)
    session.close()
    assert [type(step.ended()) for step in steps] == [tf.errors.CancelledError] * 3


def test_closing_the_session_ends_a_loop_that_waits_for_nothing() -> None:
    started = threading.Event()

    def count(i: Any) -> Any:
        started.set()
        return i

    def body(i: Any) -> Any:
        counted = tf.py_func(count, [i], tf.int32)
        counted.set_shape([])
        return counted

    session = tf.Session()
    step = Running(session, tf.while_loop(lambda i: i >= 0, body, [tf.constant(0)]))
    assert started.wait(30)
    session.close()
    assert type(step.ended()) is tf.errors.CancelledError


def endless_after(started: threading.Event) -> Any:
    """A loop of machine code that begins after the event and never ends."""
    began = tf.py_func(lambda: started.set() or np.float32(1), [], tf.float32)
    began.set_shape([])
    return tf.while_loop(lambda i: i >= 0.0, lambda i: (i + 1.0) * 0.5, [began])


@pytest.mark.both_ways
@pytest.mark.parametrize("timeout_ms", [0, 60_000])
def test_closing_the_session_ends_a_loop_of_numbers(timeout_ms: int) -> None:
    started = threading.Event()
    session = tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=timeout_ms))
    step = Running(session, endless_after(started))
    assert started.wait(30)
    session.close()
    assert type(step.ended()) is tf.errors.CancelledError


@pytest.mark.both_ways
def test_a_loop_of_numbers_ends_in_time() -> None:
    out = endless_after(threading.Event())
    with tf.Session() as session:
        with pytest.raises(LATE) as caught:
            session.run(out, options=tf.RunOptions(timeout_in_ms=300))
        assert "while" in caught.value.op.name


# ---- a hundred threads


@pytest.mark.parametrize("many", [False, True])
def test_a_hundred_wait_and_the_session_closes(many: bool) -> None:
    queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]])
    fetch = queue.dequeue_many(5) if many else queue.dequeue()
    session = tf.Session()
    before = own_threads()
    steps = [Running(session, fetch) for _ in range(100)]
    until(lambda: runtime_object(session, queue.queue_ref).waiting[1] == 100)
    assert len(own_threads() - before) == 100  # the callers' own
    waiting = runtime_object(session, queue.queue_ref)
    session.close()
    assert {type(step.ended()) for step in steps} == {tf.errors.CancelledError}
    assert waiting.waiting == (0, 0)


@pytest.mark.parametrize("cancel", [False, True])
def test_a_hundred_wait_and_the_queue_closes(cancel: bool) -> None:
    queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]])
    with tf.Session() as session:
        steps = [Running(session, queue.dequeue()) for _ in range(100)]
        until(lambda: runtime_object(session, queue.queue_ref).waiting[1] == 100)
        session.run(queue.close(cancel_pending_enqueues=cancel))
        assert {type(step.ended()) for step in steps} == {tf.errors.OutOfRangeError}


def test_a_hundred_wait_for_room_and_the_queue_closes() -> None:
    queue = tf.FIFOQueue(1, [tf.int32], shapes=[[]])
    enqueue = queue.enqueue(1)
    with tf.Session() as session:
        session.run(enqueue)
        steps = [Running(session, enqueue) for _ in range(100)]
        until(lambda: runtime_object(session, queue.queue_ref).waiting[0] == 100)
        session.run(queue.close(cancel_pending_enqueues=True))
        assert {type(step.ended()) for step in steps} == {tf.errors.CancelledError}
        assert session.run(queue.size()) == 1


# ---- nothing is left behind


def possessions() -> tuple[int, int, int]:
    """Threads, tensors and open files of this process, when no machine code is being made."""
    making.wait_until_made()
    gc.collect()
    tensors = sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())
    return len(own_threads()), tensors, len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts files in /proc")
def test_ten_thousand_failing_steps_leave_nothing() -> None:
    data = np.zeros((64,), np.float32)
    runs = [(make(), count) for make, count in zip(PROGRAMS, (4000, 500, 500, 250, 750))]
    x = tf.placeholder(tf.float32, [64])
    plain = Program(fails(1.0 / x), x, 1.0, tf.Session)
    with tf.Session() as session, two_devices() as both:

        def run(times: int, program: Program, value: Any) -> None:
            chosen = both if program.session is two_devices else session
            for _ in range(times):
                try:
                    chosen.run(program.fetch, {program.switch: value})
                except WRONG:
                    continue
                raise AssertionError("the step did not fail")

        def run_all(part: float) -> None:
            run(int(4000 * part), plain, data)
            for program, count in runs:
                run(int(count * part), program, 0.0)

        run_all(0.02)  # plans, and the threads that are kept
        before = possessions()
        run_all(1.0)
        threads, tensors, files = possessions()
        assert tensors <= before[1]  # a thread may have held a last one when they were counted before
        # Every one of 250 steps or more that left something would show: a few may be those of other threads,
        # which read a file just now or are on their way to the idle ones.
        assert files <= before[2] + 5
        assert threads <= before[0] + 2
        for program, _ in runs:
            chosen = both if program.session is two_devices else session
            assert chosen.run(program.fetch, {program.switch: 1.0}) == program.value


# ---- state


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("failing", range(5))
def test_the_state_after_a_failure_is_a_prefix_of_the_updates(failing: int, devices: int) -> None:
    variables = []
    for i in range(5):
        with tf.device(f"/cpu:{i % devices}"):
            variables.append(tf.Variable(0.0, name=f"v{i}"))
    x = tf.placeholder(tf.float32, [])
    last: Any = tf.no_op()
    for i, variable in enumerate(variables):
        with tf.control_dependencies([last]), tf.device(variable.device):
            value = fails(1.0 / x) if i == failing else tf.constant(1.0) + x * 0.0
            last = variable.assign_add(value)
    with two_devices() as session:
        session.run(tf.global_variables_initializer())
        refused(session, last, WRONG, "bad value", {x: 0.0})
        assert session.run(variables) == [1.0] * failing + [0.0] * (5 - failing)
        session.run(last.op, {x: 1.0})
        assert session.run(variables) == [2.0] * failing + [1.0] * (5 - failing)


def test_a_batch_that_is_cut_short_stays_in_the_queue() -> None:
    queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]])
    x = tf.placeholder(tf.float32, [])
    both = tf.group(queue.dequeue_many(5)[0], fails(1.0 / x))
    with tf.Session() as session:
        session.run(queue.enqueue_many([[1, 2, 3]]))
        for _ in range(3):
            refused(session, both, WRONG, "bad value", {x: 0.0})
            late = Running(session, queue.dequeue_many(4), options=tf.RunOptions(timeout_in_ms=20)).ended()
            assert isinstance(late, LATE)
        assert session.run(queue.dequeue_many(3)).tolist() == [1, 2, 3]
