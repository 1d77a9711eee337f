"""Barriers: what is put together, in which order it comes out, who waits, what closing means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.queues.barriers import Barrier
from stepping import Running, refused, runtime_object, until

pytestmark = pytest.mark.usefixtures("graph")

FIRST = -(2**63)


def sizes(session: Any, barrier: Barrier) -> list[int]:
    return [int(n) for n in session.run([barrier.ready_size(), barrier.incomplete_size()])]


def pairs(taken: Any) -> list[tuple[Any, ...]]:
    return [(key.decode(), *[np.asarray(v).tolist() for v in row]) for key, *row in zip(taken[1], *taken[2])]


def test_nodes_and_shapes_are_tensorflows(graph: Any) -> None:
    b = Barrier((tf.float32, tf.float32), shapes=((), (2,)), name="B")
    b.insert_many(0, ["a", "b"], [1.0, 2.0])
    taken = b.take_many(2)
    assert [str(x.shape) for x in (taken.indices, taken.keys, *taken.values)] == [
        "(2,)",
        "(2,)",
        "(2,)",
        "(2, 2)",
    ]
    small = b.take_many(1, allow_small_batch=True, name="tt")
    assert [str(x.shape) for x in (small.indices, *small.values)] == ["(?,)", "(?,)", "(?, 2)"]
    b.ready_size(), b.incomplete_size(), b.close()
    assert [(o.name, o.type) for o in graph.get_operations()] == [
        ("B", "Barrier"),
        ("B_BarrierInsertMany/keys", "Const"),
        ("B_BarrierInsertMany/values", "Const"),
        ("B_BarrierInsertMany", "BarrierInsertMany"),
        ("B_BarrierTakeMany/num_elements", "Const"),
        ("B_BarrierTakeMany", "BarrierTakeMany"),
        ("tt/num_elements", "Const"),
        ("tt", "BarrierTakeMany"),
        ("B_BarrierReadySize", "BarrierReadySize"),
        ("B_BarrierIncompleteSize", "BarrierIncompleteSize"),
        ("B_BarrierClose", "BarrierClose"),
    ]
    assert b.name == "B" and b.barrier_ref.dtype == tf.string._as_ref
    assert b.barrier_ref.op.get_attr("capacity") == -1


def test_mistakes_while_building() -> None:
    with pytest.raises(ValueError, match="must be fully defined"):
        Barrier((tf.float32,), shapes=((None,),))
    with pytest.raises(ValueError, match=r"Empty tensors are not supported.*\(0,\).*index 0"):
        Barrier((tf.float32,), shapes=((0,),))
    with pytest.raises(ValueError, match=r"component_types.*at least minimum 1, but it is 0"):
        Barrier(())
    assert str(Barrier((tf.float32,)).take_many(1).values[0].shape) == "<unknown>"


def test_elements_come_out_complete_in_the_order_of_their_keys() -> None:
    b = Barrier((tf.float32, tf.string), shapes=((), (2,)))
    words = tf.placeholder(tf.string)
    keys = tf.placeholder(tf.string)
    second = b.insert_many(1, keys, words)
    with tf.Session() as session:
        session.run(b.insert_many(0, ["a", "b"], [1.0, 2.0]))
        session.run(b.insert_many(0, ["c"], [3.0]))
        assert sizes(session, b) == [0, 3]
        session.run(second, {keys: ["c", "b"], words: [["c", "C"], ["b", "B"]]})
        assert sizes(session, b) == [2, 1]
        taken = session.run(b.take_many(2))
        assert taken.indices.tolist() == [FIRST, FIRST + 1]
        assert pairs(taken) == [("b", 2.0, [b"b", b"B"]), ("c", 3.0, [b"c", b"C"])]
        session.run(b.insert_many(0, ["b"], [7.0]))  # a key may come again once it was taken
        assert sizes(session, b) == [0, 2]
        empty = session.run(b.take_many(0))
        assert [x.shape for x in (empty.indices, empty.keys, *empty.values)] == [(0,), (0,), (0,), (0, 2)]


def test_takers_wait_for_the_last_component() -> None:
    b = Barrier((tf.int32, tf.int32))
    with tf.Session() as session:
        waiting = Running(session, b.take_many(2))
        until(lambda: runtime_object(session, b.barrier_ref)._ready.waiting[1])
        session.run(b.insert_many(0, ["x", "y"], [1, 2]))
        session.run(b.insert_many(1, ["x"], [3]))
        assert waiting.result == "waiting"
        session.run(b.insert_many(1, ["y"], [4]))
        assert pairs(waiting.ended()) == [("x", 1, 3), ("y", 2, 4)]


def test_values_are_copied_when_inserted() -> None:
    b = Barrier((tf.float32, tf.float32))
    x = tf.placeholder(tf.float32, [1])
    v = tf.Variable([5.0])
    array = np.array([1.0], np.float32)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(b.insert_many(0, ["k"], x), {x: array})
        array[0] = 99.0
        session.run(b.insert_many(1, ["k"], v))
        session.run(v.assign([6.0]))
        assert pairs(session.run(b.take_many(1))) == [("k", 1.0, 5.0)]


def test_refused_insertions_leave_nothing() -> None:
    b = Barrier((tf.float32, tf.float32), shapes=((), (2,)), name="B")
    keys, values = tf.placeholder(tf.string), tf.placeholder(tf.float32)
    insert = [b.insert_many(i, keys, values) for i in (0, 1)]
    wrong = tf.errors.InvalidArgumentError
    with tf.Session() as session:
        session.run(insert[0], {keys: ["a"], values: [1.0]})
        for index, key, value, words in (
            (0, ["a"], [1.0], "Key a already has a value for component 0 in barrier"),
            (0, ["new", "a"], [1.0, 2.0], "Key a already has a value for component 0"),
            (0, ["z", "z"], [1.0, 2.0], "Key z already has a value for component 0"),
            (1, ["a"], [[1.0, 2.0, 3.0]], "Shape mismatch in tuple component 1. Expected [2], got [3]"),
            (1, ["a"], [[1.0, 2.0], [3.0, 4.0]], "1 keys and values of shape [2,2]"),
            (1, ["a"], 1.0, "values of shape []"),
        ):
            refused(session, insert[index], wrong, words, {keys: key, values: value})
            assert sizes(session, b) == [0, 1]
        refused(session, b.insert_many(7, ["a"], [1.0]), wrong, "The component ID is out of range 7 >")
        refused(session, b.insert_many(-1, ["a"], [1.0]), wrong, "The component ID is out of range -1 >")
        refused(
            session,
            b.insert_many(0, ["q"], [1]),
            wrong,
            "Signature mismatch, have: string_ref, string, int32->",
        )
        n = tf.placeholder(tf.int32)
        refused(session, b.take_many(n), wrong, "requested -1 < 0", {n: -1})
        refused(session, b.take_many(n), wrong, "must be a scalar", {n: [1]})


def test_a_closed_barrier_completes_what_it_knows() -> None:
    b = Barrier((tf.int32, tf.int32), name="B")
    with tf.Session() as session:
        session.run(b.insert_many(0, ["a", "b", "c"], [1, 2, 3]))
        session.run(b.insert_many(1, ["a"], [1]))
        all_three = Running(session, b.take_many(3))
        until(lambda: runtime_object(session, b.barrier_ref)._ready.waiting[1])
        session.run(b.close())
        refused(session, b.close(), tf.errors.CancelledError, "B' is already closed.")
        refused(
            session, b.insert_many(1, ["new"], [3]), tf.errors.CancelledError,
            "is closed, but attempted to insert a brand new key: new.",
        )  # fmt: skip
        assert all_three.result == "waiting"
        refused(session, b.take_many(9), tf.errors.OutOfRangeError, "closed and has insufficient elements")
        session.run(b.insert_many(1, ["c", "b"], [30, 20]))
        assert sorted(pairs(all_three.ended())) == [("a", 1, 1), ("b", 2, 20), ("c", 3, 30)]
        refused(
            session, b.take_many(1, allow_small_batch=True), tf.errors.OutOfRangeError,
            "B' is closed and has insufficient elements (requested 0, total size 0)",
        )  # fmt: skip


def test_small_batches_of_a_closed_barrier() -> None:
    b = Barrier((tf.int32,))
    with tf.Session() as session:
        session.run(b.insert_many(0, ["a", "b", "c"], [1, 2, 3]))
        session.run(b.close())
        small = b.take_many(2, allow_small_batch=True)
        assert [len(session.run(small).keys) for _ in range(2)] == [2, 1]


def test_closing_with_cancelling_drops_incomplete_elements() -> None:
    b = Barrier((tf.int32, tf.int32), name="B")
    with tf.Session() as session:
        session.run(b.insert_many(0, ["a"], [1]))
        waiting = Running(session, b.take_many(1))
        until(lambda: runtime_object(session, b.barrier_ref)._ready.waiting[1])
        session.run(b.close())
        assert waiting.result == "waiting"
        session.run(b.close(cancel_pending_enqueues=True))
        assert isinstance(waiting.ended(), tf.errors.OutOfRangeError)
        assert sizes(session, b) == [0, 0]
        refused(
            session, b.insert_many(1, ["a"], [1]), tf.errors.CancelledError, "is closed.  Pending enqueues"
        )
        refused(session, b.close(cancel_pending_enqueues=True), tf.errors.CancelledError, "already closed")


def test_deadlines_and_closing_the_session_end_takes() -> None:
    b = Barrier((tf.int32,))
    session = tf.Session()
    session.run(b.insert_many(0, ["a"], [1]))
    late = Running(session, b.take_many(2), options=tf.RunOptions(timeout_in_ms=30)).ended()
    assert isinstance(late, tf.errors.DeadlineExceededError)
    assert sizes(session, b) == [1, 0]  # what it had taken was put back
    waiting = Running(session, b.take_many(2))
    until(lambda: runtime_object(session, b.barrier_ref)._ready.waiting[1])
    session.close()
    assert isinstance(waiting.ended(), tf.errors.CancelledError)


def test_sharing_by_name() -> None:
    one, other = (Barrier((tf.float32,), shapes=((),), shared_name="S") for _ in range(2))
    with tf.Session() as session:
        session.run(one.insert_many(0, ["a"], [1.0]))
        assert pairs(session.run(other.take_many(1))) == [("a", 1.0)]
        wrong = tf.errors.InvalidArgumentError
        for types, shape, words in (
            (tf.int32, (), "has component types float but requested component types were int32"),
            (tf.float32, (1,), "has component shapes [[]] but requested component shapes were [[1]]"),
        ):
            refused(session, Barrier((types,), shapes=(shape,), shared_name="S").ready_size(), wrong, words)
        alien = F.BarrierTakeMany(one.barrier_ref, 1, component_types=[tf.int32])
        refused(session, alien, wrong, "Signature mismatch, have: string_ref, int32->int64, string, int32")
        refused(session, F.Barrier(component_types=[tf.int32]), wrong, "shapes must be specified")


def test_many_threads_lose_nothing() -> None:
    b = Barrier((tf.int64, tf.int64, tf.string))
    keys, values, text = tf.placeholder(tf.string), tf.placeholder(tf.int64), tf.placeholder(tf.string)
    inserts = [b.insert_many(0, keys, values), b.insert_many(1, keys, values), b.insert_many(2, keys, text)]
    names = [f"k{i}" for i in range(120)]
    with tf.Session() as session:
        takers = [Running(session, b.take_many(10)) for _ in range(12)]
        steps = []
        for component in range(3):
            order = np.random.default_rng(component).permutation(120)
            for rows in order.reshape(12, 10):
                given = {keys: [names[i] for i in rows]}
                given |= {text: [names[i] for i in rows]} if component == 2 else {values: rows + component}
                steps.append(Running(session, [inserts[component]], given))
        assert [step.ended() for step in steps] == [[None]] * 36
        taken = [pair for taker in takers for pair in pairs(taker.ended())]
        assert sorted(taken) == sorted((k, i, i + 1, k.encode()) for i, k in enumerate(names))
        assert sizes(session, b) == [0, 0]
