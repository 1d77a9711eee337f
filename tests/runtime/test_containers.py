"""Containers: whose state it is, who shares it, and what a reset drops (white paper 4.7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.queues.barriers import Barrier
from stepping import Running, refused, runtime_object, until


@pytest.fixture(autouse=True)
def common_target() -> Iterator[None]:
    """Nothing in the common target's containers, before and after."""
    tf.Session.reset("local")
    yield
    tf.Session.reset("local")


class Program:
    """A graph of its own with one resource of each kind, in one container, under the same names."""

    def __init__(self, container: str = "") -> None:
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.container(container):
            self.variable = tf.Variable(1.0, name="v")
            self.handle = tf.get_variable("r", initializer=2.0, use_resource=True)
            self.queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]], shared_name="q")
            self.accumulator = tf.ConditionalAccumulator(tf.float32, shape=[], shared_name="a")
            self.barrier = Barrier([tf.int32], shared_name="b")
            self.mutex = F.MutexV2(shared_name="m")
            stage = {"dtypes": [tf.int32], "shared_name": "s"}
            self.init = tf.global_variables_initializer()
            self.fill = [
                self.queue.enqueue(7),
                self.accumulator.apply_grad(3.0),
                self.barrier.insert_many(0, ["k"], [5]),
                F.Stage([tf.constant(9)], shared_name="s"),
            ]
            self.sizes = [
                self.queue.size(), self.accumulator.num_accumulated(), self.barrier.ready_size(),
                F.StageSize(**stage),
            ]  # fmt: skip
            self.dequeue = self.queue.dequeue()
            lock = F.MutexLock(self.mutex)
            with tf.control_dependencies([lock]):
                held = self.queue.dequeue()
            with tf.control_dependencies([held]):
                self.locked = F.ConsumeMutexLock(lock)

    def session(self, target: str = "") -> tf.Session:
        return tf.Session(target, graph=self.graph)


def state(session: tf.Session, program: Program) -> list[Any]:
    """The values of the variables, None where there is none, and the sizes of what holds elements."""
    values: list[Any] = []
    for variable in (program.variable, program.handle):
        try:
            values.append(float(session.run(variable)))
        except tf.errors.FailedPreconditionError:
            values.append(None)
    return [*values, *map(int, session.run(program.sizes))]


EMPTY = [None, None, 0, 0, 0, 0]
FULL = [1.0, 2.0, 1, 1, 1, 1]


def test_operations_say_their_container() -> None:
    with tf.Graph().as_default() as graph:
        with tf.container("outer"):
            tf.Variable(1.0, name="v")
            with tf.container("inner"):
                tf.FIFOQueue(3, [tf.float32], name="q")
            F.Stage([tf.constant(1.0)], name="s")
            tf.get_variable("r", [], use_resource=True)
            tf.ConditionalAccumulator(tf.float32, name="a")
            F.MutexV2(name="m")
        tf.Variable(2.0, name="w")
        expected = {
            "v": "outer",
            "q": "inner",
            "s": "outer",
            "r": "outer",
            "a": "outer",
            "m": "outer",
            "w": "",
        }
        found = {name: graph.get_operation_by_name(name).get_attr("container") for name in expected}
    assert found == {name: container.encode() for name, container in expected.items()}


def test_sessions_on_the_default_target_are_isolated() -> None:
    program = Program()
    one, other = program.session(), program.session()
    one.run(program.init)
    one.run(program.fill)
    assert (state(one, program), state(other, program)) == (FULL, EMPTY)
    tf.Session.reset("")
    assert state(one, program) == FULL


@pytest.mark.parametrize("container", ["", "experiment"])
def test_sessions_and_graphs_on_a_common_target_share(container: str) -> None:
    program, again = Program(container), Program(container)
    one, other, last = program.session("local"), again.session("local"), again.session("local")
    one.run(program.init)
    one.run(program.fill)
    assert [state(other, again), state(last, again)] == [FULL, FULL]
    assert other.run(again.dequeue) == 7
    assert state(one, program) == [1.0, 2.0, 0, 1, 1, 1]
    waiting = Running(one, program.dequeue)
    until(lambda: runtime_object(one, program.queue.queue_ref).waiting[1])
    last.run(again.fill[0])
    assert waiting.ended() == 7


def test_what_is_shared_outlives_sessions() -> None:
    program = Program()
    with program.session("local") as session:
        session.run(program.init)
        session.run(program.fill)
    assert state(program.session("local"), program) == FULL


def test_a_name_means_another_thing_in_another_container() -> None:
    here, there, default = Program("here"), Program("there"), Program()
    sessions = [program.session("local") for program in (here, there, default)]
    sessions[0].run(here.init)
    sessions[0].run(here.fill)
    assert [state(s, p) for s, p in zip(sessions, (here, there, default))] == [FULL, EMPTY, EMPTY]


def test_a_mutex_excludes_the_steps_of_all_sessions() -> None:
    program, again = Program(), Program()
    one, other = program.session("local"), again.session("local")
    holder = Running(one, program.locked)
    until(lambda: runtime_object(one, program.mutex).is_locked)
    waiting = Running(other, again.locked)
    until(lambda: len(runtime_object(other, again.mutex).waiting) == 1)
    one.run(program.fill[0])
    other.run(again.fill[0])
    assert (holder.ended(), waiting.ended()) == (None, None)


def test_a_reset_drops_the_named_containers() -> None:
    kept, dropped = Program("kept"), Program("dropped")
    for program in (kept, dropped):
        session = program.session("local")
        session.run(program.init)
        session.run(program.fill)
    tf.Session.reset("local", ["dropped"])
    assert state(kept.session("local"), kept) == FULL
    session = dropped.session("local")
    assert state(session, dropped) == EMPTY
    session.run(dropped.init)
    session.run(dropped.fill)
    assert state(session, dropped) == FULL
    tf.Session.reset("local")
    assert [state(p.session("local"), p) for p in (kept, dropped)] == [EMPTY, EMPTY]


def test_a_reset_ends_sessions_and_what_waits_in_them() -> None:
    program = Program("ended")
    session = program.session("local")
    with program.graph.as_default():
        fetches = [
            program.dequeue, program.accumulator.take_grad(1), program.barrier.take_many(1),
            F.Unstage(dtypes=[tf.int32], shared_name="s", container="ended"),
        ]  # fmt: skip
    steps = [Running(session, fetch) for fetch in fetches]
    waiting = [
        lambda: runtime_object(session, program.queue.queue_ref).waiting[1],
        lambda: len(runtime_object(session, program.accumulator.accumulator_ref).waiting),
    ]
    for condition in waiting:
        until(condition)
    tf.Session.reset("local", ["ended"])
    assert all(isinstance(step.ended(), (tf.errors.CancelledError, tf.errors.AbortedError)) for step in steps)
    with pytest.raises((tf.errors.CancelledError, tf.errors.AbortedError)):
        session.run(program.sizes)
    assert state(program.session("local"), program) == EMPTY


def test_stacks_belong_to_their_step() -> None:
    with tf.Graph().as_default() as graph:
        stack = F.StackV2(tf.constant(10), elem_type=tf.float32, stack_name="mine")
        pushed = F.StackPushV2(stack, tf.constant(1.0))
        with tf.control_dependencies([pushed]):
            popped = F.StackPopV2(stack, elem_type=tf.float32)
        alone = F.StackPopV2(stack, elem_type=tf.float32)
    with tf.Session("local", graph=graph) as session:
        assert session.run(popped) == 1.0
        session.run(pushed)
        refused(session, alone, tf.errors.InvalidArgumentError, "is empty when calling Pop()")
