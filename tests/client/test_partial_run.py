"""Partial runs: feeds and fetches in parts, each node once, what is refused, what ends the run."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.client import planning
from stepping import Running, until

WRONG = tf.errors.InvalidArgumentError


class Graph:
    """Three feeds, a sum of two of them, and its product with the third."""

    def __init__(self) -> None:
        self.a, self.b, self.c = (tf.placeholder(tf.float32, [], name) for name in "abc")
        self.sum = tf.add(self.a, self.b, name="r1")
        self.product = tf.multiply(self.sum, self.c, name="r2")

    def setup(self, session: Any, *more: Any) -> str:
        return session.partial_run_setup([self.sum, self.product, *more], [self.a, self.b, self.c])  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def g() -> Any:
    with tf.Graph().as_default():
        yield Graph()


def refused(words: str, session: Any, *arguments: Any, kind: Any = WRONG) -> None:
    with pytest.raises(kind) as caught:
        session.partial_run(*arguments)
    assert words in str(caught.value)


def partial_threads() -> int:
    return sum(thread.name == "flowstone partial run" for thread in threading.enumerate())


def test_in_two_parts(g: Graph) -> None:
    with tf.Session() as session:
        handle = g.setup(session)
        assert isinstance(handle, str)
        assert session.partial_run(handle, g.sum, {g.a: 1, g.b: 2}) == 3.0
        assert session.partial_run(handle, g.product, {g.c: 10}) == 30.0
        refused("Must run 'setup' before performing partial runs!", session, handle, g.product, {g.c: 10})
        until(lambda: not partial_threads())


def test_any_parts_and_forms(g: Graph) -> None:
    with tf.Session() as session:
        handle = g.setup(session)
        assert session.partial_run(handle, [], {g.a: 1}) == []
        assert session.partial_run(handle, [g.sum, g.sum], {g.b: 1}) == [2.0, 2.0]
        assert session.partial_run(handle, {"x": [g.product]}, {g.c: 5}) == {"x": [10.0]}
        handle = g.setup(session)
        assert session.partial_run(handle, (g.sum, g.product), {"a:0": 1, "b:0": 2, "c:0": 3}) == (3.0, 9.0)
        handle = session.partial_run_setup(["r1:0"], ["a:0", "b:0"])
        assert session.partial_run(handle, "r1:0", {"a:0": 1, "b:0": 2}) == 3.0


def test_two_at_a_time(g: Graph) -> None:
    with tf.Session() as session:
        first, second = g.setup(session), g.setup(session)
        assert first != second
        assert session.partial_run(first, g.sum, {g.a: 1, g.b: 1}) == 2.0
        assert session.partial_run(second, g.sum, {g.a: 2, g.b: 2}) == 4.0
        assert session.partial_run(second, g.product, {g.c: 2}) == 8.0
        assert session.partial_run(first, g.product, {g.c: 3}) == 6.0


def test_fed_in_the_middle(g: Graph) -> None:
    with tf.Session() as session:
        handle = session.partial_run_setup([g.product], [g.sum, g.c])
        assert session.partial_run(handle, g.product, {g.sum: 5, g.c: 2}) == 10.0


def test_what_is_refused_changes_nothing(g: Graph) -> None:
    d = tf.placeholder(tf.float32, [], "d")
    other = d + 1.0
    with tf.Session() as session:
        handle = g.setup(session)
        refused(
            "Fetch c:0 can't be computed from the feeds that have been fed so far.",
            session,
            handle,
            g.product,
            {g.a: 1, g.b: 2},
        )
        refused("can't be computed", session, handle, g.sum)
        refused(f"The fetch {other.name} was not specified in partial_run_setup.", session, handle, other)
        refused(
            "The feed d:0 was not specified in partial_run_setup.",
            session,
            handle,
            g.sum,
            {g.a: 1, g.b: 2, d: 3},
        )
        refused("which has shape '()'", session, handle, g.sum, {g.a: [1.0, 2.0], g.b: 2}, kind=ValueError)
        assert session.partial_run(handle, g.sum, {g.a: 1, g.b: 2}) == 3.0
        refused("The fetch r1:0 has already been fetched.", session, handle, g.sum)
        refused("The feed a:0 has already been fed.", session, handle, g.product, {g.a: 1, g.c: 3})
        refused(
            "requires empty `target_list`", session, handle, [g.product, g.c.op], {g.c: 3}, kind=RuntimeError
        )
        assert session.partial_run(handle, g.product, {g.c: 3}) == 9.0
        refused("Must run 'setup'", session, "foo", g.sum)


def test_what_setup_refuses(g: Graph) -> None:
    with tf.Session() as session:
        for kind, words, fetches, feeds in (
            (WRONG, "Must specify at least one target to fetch or execute.", [], [g.a]),
            (WRONG, "r1:0 is both fed and fetched.", [g.sum], [g.a, g.b, g.sum]),
            (TypeError, "Cannot be None", None, [g.a]),
            (TypeError, "Cannot interpret feed_dict key as Tensor", [g.sum], [g.sum.op]),
            (ValueError, "refers to an Operation not in the graph", ["zzz"], [g.a]),
        ):
            with pytest.raises(kind) as caught:
                session.partial_run_setup(fetches, feeds)
            assert words in str(caught.value)
    with pytest.raises(RuntimeError, match="closed"):
        g.setup(session)


def test_each_node_runs_once(g: Graph) -> None:
    calls: list[float] = []
    v = tf.Variable(0.0)
    counted = tf.py_func(lambda x: calls.append(x) or x, [g.a * 2.0], tf.float32)
    counted.set_shape([])
    random = tf.random_uniform([])
    same, added, late = tf.identity(random), v.assign_add(1.0), counted + g.b
    with tf.Session() as session:
        session.run(v.initializer)
        handle = session.partial_run_setup([random, same, added, counted, late], [g.a, g.b])
        until(lambda: session.run(v) == 1.0)  # what needs no feed has run without being asked for
        first = session.partial_run(handle, [random, counted], {g.a: 3})
        assert session.partial_run(handle, same) == first[0]
        assert session.partial_run(handle, [added, late], {g.b: 1}) == [1.0, 7.0]
        assert calls == [6.0] and session.run(v) == 1.0


def test_targets_run_once_their_feeds_are_there(g: Graph) -> None:
    v = tf.Variable(0.0)
    with tf.control_dependencies([g.sum]):
        add = v.assign_add(g.c)
    with tf.Session() as session:
        session.run(v.initializer)
        handle = session.partial_run_setup([g.sum, add.op], [g.a, g.b, g.c])
        session.partial_run(handle, g.sum, {g.a: 1, g.b: 2})
        assert session.run(v) == 0.0
        session.partial_run(handle, [], {g.c: 5})
        assert session.run(v) == 5.0  # the last call waits for all that is left


def test_control_flow_strings_and_copies(g: Graph) -> None:
    flag, text = tf.placeholder(tf.bool, []), tf.placeholder(tf.string, [None])
    chosen = tf.cond(flag, lambda: g.a + 1.0, lambda: g.b * 2.0)
    looped = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * g.c), [0, g.a])[1]
    joined = tf.concat([text, text], 0)
    x = tf.placeholder(tf.float32, [2])
    doubled, kept = x * 2.0, tf.identity(x)
    array = np.array([1.0, 2.0], np.float32)
    with tf.Session() as session:
        handle = session.partial_run_setup(
            [chosen, looped, joined, doubled, kept], [flag, text, g.a, g.b, g.c, x]
        )
        session.partial_run(handle, [], {x: array, flag: False})
        array[:] = 0.0
        assert session.partial_run(handle, chosen, {g.b: 4, g.a: 2}) == 8.0
        assert session.partial_run(handle, joined, {text: ["a", "b"]}).tolist() == [b"a", b"b"] * 2
        assert session.partial_run(handle, looped, {g.c: 3}) == 54.0
        assert [v.tolist() for v in session.partial_run(handle, [doubled, kept])] == [[2.0, 4.0], [1.0, 2.0]]


def test_on_two_devices(g: Graph) -> None:
    with tf.device("/cpu:1"):
        there = g.a * 2.0
        v = tf.Variable(1.0)
    back = there + g.b
    assigned = v.assign_add(g.b)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        session.run(v.initializer)
        handle = session.partial_run_setup([there, back, assigned], [g.a, g.b])
        assert session.partial_run(handle, there, {g.a: 3}) == 6.0
        assert session.partial_run(handle, [back, assigned], {g.b: 1}) == [7.0, 2.0]


def test_a_failure_ends_the_run(g: Graph) -> None:
    bad = tf.check_numerics(1.0 / g.a, "bad")
    with tf.Session() as session:
        handle = g.setup(session, bad)
        refused("bad", session, handle, bad, {g.a: 0})
        refused("Must run 'setup'", session, handle, g.sum, {g.b: 1})
        lacking = tf.placeholder(tf.float32, name="lacking")
        handle = g.setup(session, lacking * 2.0)
        refused(
            "You must feed a value for placeholder tensor 'lacking'", session, handle, g.sum, {g.a: 1, g.b: 1}
        )
        until(lambda: not partial_threads())


def test_waits_are_ended_by_deadlines_and_by_closing(g: Graph) -> None:
    gate = tf.FIFOQueue(1, [tf.float32])
    passed = gate.dequeue()
    session = tf.Session()
    handle = g.setup(session, passed)
    assert session.partial_run(handle, g.sum, {g.a: 1, g.b: 1}) == 2.0
    session.run(gate.enqueue(7.0))
    assert session.partial_run(handle, passed) == 7.0
    handle = g.setup(session, passed)

    class Waiting(Running):
        def _run(self, session: Any, fetches: Any, feeds: Any, options: Any) -> None:
            try:
                self.result = session.partial_run(handle, fetches)
            except Exception as error:
                self.result = error

    waiting = Waiting(session, passed)
    time.sleep(0.05)
    session.close()
    assert isinstance(waiting.ended(), tf.errors.CancelledError)
    refused("closed", session, handle, g.sum, kind=RuntimeError)
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=30)) as timed:
        handle = g.setup(timed, passed)
        with pytest.raises(tf.errors.DeadlineExceededError):
            timed.partial_run(handle, passed)
        refused("Must run 'setup'", timed, handle, g.sum)
    until(lambda: not partial_threads())


def test_a_time_limit_holds_for_what_is_left(g: Graph) -> None:
    gate = tf.FIFOQueue(1, [tf.float32])
    with tf.control_dependencies([gate.dequeue()]):
        late = tf.identity(g.c)
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=30)) as session:
        handle = session.partial_run_setup([g.sum, late.op], [g.a, g.b, g.c])
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.partial_run(handle, g.sum, {g.a: 1, g.b: 2, g.c: 3})
        refused("Must run 'setup'", session, handle, g.sum)
    until(lambda: not partial_threads())


SIZE = 12_347  # of the tensors that are to be released


def living_tensors() -> int:
    found = [item for item in gc.get_objects() if isinstance(item, torch.Tensor)]
    return sum(SIZE in tensor.shape for tensor in found)


@pytest.fixture
def abandoned() -> Any:
    """A session and the handle of a run with a value that nobody has taken, and one that waits."""
    until(lambda: not partial_threads() and not living_tensors())
    x, y = tf.placeholder(tf.float32, [SIZE]), tf.placeholder(tf.float32, [SIZE])
    doubled, both = x * 2.0, (x - 1.0) * y
    session = tf.Session()
    handle = session.partial_run_setup([doubled, both], [x, y])
    session.partial_run(handle, [], {x: np.ones(SIZE, np.float32)})
    until(lambda: living_tensors() >= 2)
    assert partial_threads() == 1
    return [session, handle]


def nothing_is_left() -> bool:
    return not partial_threads() and not living_tensors()


def test_a_forgotten_handle_ends_the_run(abandoned: Any) -> None:
    session, handle = abandoned
    abandoned.clear()
    text = str(handle)
    del handle
    until(nothing_is_left)
    refused("Must run 'setup'", session, text, [])


def test_a_forgotten_session_ends_the_run(abandoned: Any) -> None:
    handle = abandoned.pop()
    abandoned.clear()
    gc.collect()
    until(nothing_is_left)
    assert isinstance(handle, str)


def test_a_closed_session_keeps_nothing_of_the_run(abandoned: Any) -> None:
    session, handle = abandoned
    session.close()
    until(nothing_is_left)
    refused("closed", session, handle, [], kind=RuntimeError)


def test_the_same_elements_are_planned_once(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[Any] = []
    plan = planning.placed_subgraph
    monkeypatch.setattr(planning, "placed_subgraph", lambda *a, **k: planned.append(a) or plan(*a, **k))
    with tf.Session() as session:
        for step in range(3):
            handle = g.setup(session)
            assert session.partial_run(handle, g.sum, {g.a: step, g.b: 2}) == step + 2.0
            assert session.partial_run(handle, g.product, {g.c: 10}) == 10 * (step + 2.0)
        assert len(planned) == 1
        session.partial_run(session.partial_run_setup([g.sum], [g.a, g.b]), g.sum, {g.a: 1, g.b: 2})
        assert len(planned) == 2
