"""Mutexes and critical sections: one at a time, in order, and free again whatever happens to a step."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from stepping import Running, refused, runtime_object, until

pytestmark = pytest.mark.usefixtures("graph")


def waiters(session: Any, handle: Any) -> int:
    return len(runtime_object(session, handle).waiting)


# ---- TensorFlow's form


def test_a_lock_is_free_when_consumed() -> None:
    mutex = F.MutexV2(name="M")
    gate = tf.FIFOQueue(1, [tf.float32])
    lock = F.MutexLock(mutex)
    with tf.control_dependencies([lock]):
        passed = gate.dequeue()
    with tf.control_dependencies([passed]):
        first = F.ConsumeMutexLock(lock)
    other = F.MutexLock(mutex)
    second = F.ConsumeMutexLock(other)
    with tf.Session() as session:
        holder = Running(session, first)
        until(lambda: runtime_object(session, mutex).is_locked)
        waiting = Running(session, second)
        until(lambda: waiters(session, mutex) == 1)
        late = Running(session, second, options=tf.RunOptions(timeout_in_ms=30)).ended()
        assert isinstance(late, tf.errors.DeadlineExceededError)
        session.run(gate.enqueue(1.0))
        assert (holder.ended(), waiting.ended()) == (None, None)
        assert not runtime_object(session, mutex).is_locked


def test_a_lock_is_free_when_nobody_holds_it() -> None:
    mutex = F.MutexV2()
    lock = F.MutexLock(mutex)
    with tf.control_dependencies([lock]):
        failing = tf.Assert(False, ["no"])
    with tf.control_dependencies([failing]):
        never = F.ConsumeMutexLock(lock)
    with tf.Session() as session:
        session.run(lock.op)
        assert not runtime_object(session, mutex).is_locked
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            session.run(never)
        assert not runtime_object(session, mutex).is_locked
        assert "no" in str(error.value)  # the exception, with its frames, is still held here


def test_consuming_twice_does_nothing() -> None:
    lock = F.MutexLock(F.MutexV2())
    with tf.control_dependencies([F.ConsumeMutexLock(lock)]):
        again = F.ConsumeMutexLock(tf.identity(lock))
    with tf.Session() as session:
        assert session.run([again, again]) == [None, None]


def test_waiting_ends_with_the_session() -> None:
    mutex = F.MutexV2()
    gate = tf.FIFOQueue(1, [tf.float32])
    lock = F.MutexLock(mutex)
    with tf.control_dependencies([lock]):
        passed = gate.dequeue()
    with tf.control_dependencies([passed]):
        held = F.ConsumeMutexLock(lock)
    session = tf.Session()
    steps = [Running(session, held) for _ in range(5)]
    until(lambda: waiters(session, mutex) == 4)
    session.close()
    assert [type(step.ended()) for step in steps] == [tf.errors.CancelledError] * 5


# ---- the white paper's form


def test_acquire_and_release() -> None:
    mutex = F.MutexV2(shared_name="m")
    count = tf.Variable(0)
    acquired = F.MutexAcquire(mutex)
    with tf.control_dependencies([acquired]):
        read = count + 0
    with tf.control_dependencies([read]):
        slow = tf.py_func(lambda x: x, [read], tf.int32)
    stored = count.assign(slow + 1)
    with tf.control_dependencies([stored]):
        released = F.MutexRelease(F.MutexV2(shared_name="m"))
    with tf.Session() as session:
        session.run(count.initializer)
        for step in [Running(session, released) for _ in range(20)]:
            assert step.ended() is None
        assert session.run(count) == 20
        alone = F.MutexRelease(mutex)
        refused(session, alone, tf.errors.FailedPreconditionError, "this step has not acquired the mutex 'm'")


def test_a_step_gives_back_what_it_acquired() -> None:
    mutex = F.MutexV2()
    acquired = F.MutexAcquire(mutex)
    with tf.control_dependencies([acquired]):
        failing = tf.Assert(False, ["no"])
    with tf.Session() as session:
        for _ in range(3):
            session.run(acquired)
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(failing)
        assert not runtime_object(session, mutex).is_locked


# ---- critical sections


def test_nodes_of_a_section(graph: Any) -> None:
    section = tf.CriticalSection(name="nm")
    x = tf.placeholder(tf.float32, name="x")

    def piece() -> Any:
        return tf.identity(x + 1.0, name="b") * tf.constant(2.0)

    before = len(graph.get_operations())
    result = section.execute(piece, name="EX")
    assert section.name == "nm" and result.name == "EX/Identity_1:0"
    assert graph.get_operation_by_name("nm").get_attr("shared_name") == b"nm/"
    found = {
        o.name: (o.type, [t.op.name for t in o.inputs], sorted(c.name for c in o.control_inputs))
        for o in graph.get_operations()[before:]
    }
    for name, expected in {
        "EX/MutexLock": ("MutexLock", ["nm"], ["EX/group_deps"]),
        "EX/add/y": ("Const", [], ["EX/MutexLock"]),
        "EX/b": ("Identity", ["EX/add"], []),
        "EX/group_deps": ("NoOp", [], ["x"]),
        "EX/Identity": ("Identity", ["EX/mul"], []),
        "EX/ConsumeMutexLock": ("ConsumeMutexLock", ["EX/MutexLock"], ["EX/Identity"]),
        "EX/tuple/group_deps": ("NoOp", [], ["EX/Identity", "EX/mul"]),
        "EX/tuple/control_dependency": ("Identity", ["EX/mul"], ["EX/Identity", "EX/tuple/group_deps"]),
        "EX/Identity_1": ("Identity", ["EX/tuple/control_dependency"], ["EX/ConsumeMutexLock"]),
    }.items():
        assert found[name] == expected, name
    assert tf.CriticalSection(name="q/r").name == "q/r"
    assert len(graph.get_collection("critical_sections")) == 2


def test_updates_of_concurrent_steps_are_not_lost() -> None:
    section = tf.CriticalSection()
    v = tf.get_variable("v", [], tf.int32, initializer=tf.zeros_initializer(), use_resource=True)

    def add_slowly() -> Any:
        value = v.read_value()
        return v.assign(tf.py_func(lambda x: x, [value], tf.int32) + 1).op

    done = section.execute(add_slowly)
    with tf.Session() as session:
        session.run(v.initializer)
        for step in [Running(session, done) for _ in range(20)]:
            assert step.ended() is None
        assert session.run(v) == 20


def test_results_are_those_within_the_section() -> None:
    section = tf.CriticalSection()
    v = tf.get_variable("v", [], tf.int32, initializer=tf.zeros_initializer(), use_resource=True)
    results = [section.execute(lambda: v.assign_add(1)) for _ in range(5)]
    with tf.Session() as session:
        session.run(v.initializer)
        assert sorted(session.run(results)) == [1, 2, 3, 4, 5]


def test_inputs_come_before_the_lock() -> None:
    section = tf.CriticalSection()
    slow, quick = tf.FIFOQueue(1, [tf.float32]), tf.constant(1.0)
    blocked = section.execute(lambda: slow.dequeue() + quick)
    outside = slow.dequeue()
    waiting_outside = section.execute(lambda: outside * 2.0)
    other = section.execute(lambda: quick * 3.0)
    with tf.Session() as session:
        step = Running(session, waiting_outside)
        until(lambda: runtime_object(session, slow.queue_ref).waiting[1] == 1)
        assert session.run(other) == 3.0  # the section is free: the other step still waits for its input
        session.run(slow.enqueue(4.0))
        assert step.ended() == 8.0
        step = Running(session, blocked)
        until(lambda: runtime_object(session, slow.queue_ref).waiting[1] == 1)
        late = Running(session, other, options=tf.RunOptions(timeout_in_ms=30)).ended()
        assert isinstance(late, tf.errors.DeadlineExceededError)
        session.run(slow.enqueue(1.0))
        assert step.ended() == 2.0 and session.run(other) == 3.0


def test_a_failing_piece_frees_the_section() -> None:
    section = tf.CriticalSection()
    x = tf.placeholder(tf.float32)
    checked = section.execute(lambda: tf.check_numerics(1.0 / x, "bad"))
    with tf.Session() as session:
        for _ in range(3):
            refused(session, checked, tf.errors.InvalidArgumentError, "bad", {x: 0.0})
            assert session.run(checked, {x: 2.0}) == 0.5


def test_results_keep_their_form() -> None:
    section = tf.CriticalSection()
    v = tf.Variable(1.0)
    nested = section.execute(lambda: {"a": [tf.constant(1.0), 3], "b": (v.assign_add(1.0),)})
    operation = section.execute(lambda: tf.no_op())
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(nested) == {"a": [1.0, 3], "b": (2.0,)}
        assert isinstance(operation, tf.Operation) and session.run(operation) is None


def test_in_loops_and_branches() -> None:
    section = tf.CriticalSection()
    v = tf.get_variable("v", [], tf.int32, initializer=tf.zeros_initializer(), use_resource=True)

    def body(i: Any) -> Any:
        with tf.control_dependencies([section.execute(lambda: v.assign_add(i))]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 5, body, [tf.constant(0)])
    flag = tf.placeholder(tf.bool)
    branch = tf.cond(flag, lambda: section.execute(lambda: v.assign_add(100) + 0), lambda: tf.constant(-1))
    with tf.Session() as session:
        session.run(v.initializer)
        assert (session.run(loop), session.run(v)) == (5, 10)
        assert [int(session.run(branch, {flag: taken})) for taken in (False, True)] == [-1, 110]


def test_on_two_devices() -> None:
    section = tf.CriticalSection()
    with tf.device("/cpu:1"):
        v = tf.get_variable("v", [], tf.int32, initializer=tf.zeros_initializer(), use_resource=True)

        def add_slowly() -> Any:
            return v.assign(tf.py_func(lambda x: x, [v.read_value()], tf.int32) + 1).op

        done = section.execute(add_slowly)
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Session(config=config) as session:
        session.run(v.initializer)
        for step in [Running(session, done) for _ in range(10)]:
            assert step.ended() is None
        assert session.run(v) == 10


def test_mistakes_while_building() -> None:
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer(), use_resource=True)
    one, other = tf.CriticalSection(), tf.CriticalSection(shared_name="zz")
    one.execute(lambda: v.assign_add(1.0))
    with pytest.raises(ValueError, match="requested exclusive resource access of this resource"):
        other.execute(lambda: v.read_value())
    with pytest.raises(ValueError, match="requested exclusive resource access of this resource"):
        other.execute(lambda: v.read_value(), exclusive_resource_access=False)
    with pytest.raises(ValueError, match="in which we are already running"):
        one.execute(lambda: one.execute(lambda: tf.constant(1.0)))
    with pytest.raises(ValueError, match="None values not supported"):
        one.execute(lambda: None)
    with pytest.raises(ValueError, match="mutually exclusive"):
        tf.CriticalSection("a", critical_section_def=3)
    with pytest.raises(TypeError, match="not callable"):
        one.execute(3)
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer(), use_resource=True)
    for section in (one, other):
        section.execute(lambda: w.read_value(), exclusive_resource_access=False)
