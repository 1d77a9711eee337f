"""Staging areas: what comes out when, who waits for room or for a tuple, what a mistake leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.queues.staging_areas import MapStagingArea, StagingArea
from stepping import Running, refused, until

pytestmark = pytest.mark.usefixtures("graph")


def key(value: int) -> Any:
    return tf.constant(value, tf.int64)


def waits(session: Any, fetches: Any, feeds: Any = None) -> None:
    late = Running(session, fetches, feeds, tf.RunOptions(timeout_in_ms=30)).ended()
    assert isinstance(late, tf.errors.DeadlineExceededError)


# ---- the graph


def test_nodes_are_tensorflows(graph: Any) -> None:
    a = StagingArea([tf.float32, tf.int32], shapes=[[2], []], names=["x", "y"], capacity=2)
    put = a.put({"x": tf.constant([1.0, 2.0]), "y": tf.constant(3)})
    got, seen = a.get(), a.peek(0)
    a.size(), a.clear()
    assert {name: str(x.shape) for name, x in got.items()} == {"x": "(2,)", "y": "()"}
    assert seen["x"].name == "StagingArea_peek:0"
    m = MapStagingArea([tf.float32, tf.int32], ordered=True)
    m.put(key(1), [tf.constant([1.0, 2.0]), tf.constant(3)], [0, 1])
    m.get(key(1)), m.get(), m.peek(key(1)), m.size(), m.incomplete_size(), m.clear()
    assert [(o.name, o.type) for o in graph.get_operations() if o.type not in ("Const", "NoOp")] == [
        ("StagingArea_put", "Stage"),
        ("StagingArea_get", "Unstage"),
        ("StagingArea_peek", "StagePeek"),
        ("StagingArea_size", "StageSize"),
        ("StagingArea_clear", "StageClear"),
        ("MapStagingArea_put", "OrderedMapStage"),
        ("MapStagingArea_get", "OrderedMapUnstage"),
        ("MapStagingArea_get_nokey", "OrderedMapUnstageNoKey"),
        ("MapStagingArea_pop", "OrderedMapPeek"),
        ("MapStagingArea_size", "OrderedMapSize"),
        ("MapStagingArea_incomplete_size", "OrderedMapIncompleteSize"),
        ("MapStagingArea_clear", "OrderedMapClear"),
    ]
    names = [o.name for o in graph.get_operations() if o.type == "NoOp"]
    assert names == [
        *("StagingArea_root/NoOp", "NoOp", "NoOp_1"),
        *("MapStagingArea_root/NoOp", "NoOp_2", "NoOp_3", "NoOp_4"),
    ]
    assert put.colocation_groups() == [b"loc:@StagingArea_root/NoOp"]
    assert (put.get_attr("shared_name"), put.get_attr("capacity")) == (b"StagingArea", 2)


def test_mistakes_while_building() -> None:
    named = MapStagingArea([tf.float32, tf.int32], names=["a", "b"])
    plain = MapStagingArea([tf.float32, tf.int32], shapes=[[2], []])
    one = StagingArea([tf.float32])
    for message, mistake in (
        ("shapes must be the same length as dtypes", lambda: StagingArea([tf.float32], shapes=[[1], [2]])),
        ("names must be the same length as dtypes", lambda: StagingArea([tf.float32], names=["a", "b"])),
        ("shared_name must be a string", lambda: StagingArea([tf.float32], shared_name=3)),
        ("Unexpected number of inputs 2 vs 1", lambda: one.put([1.0, 2.0])),
        ("must have names to enqueue a dictionary", lambda: one.put({"x": 1.0})),
        ("You must enqueue a dictionary", lambda: StagingArea([tf.float32], names=["x"]).put([1.0])),
        (r"Dictionary: \['zz'\]Queue: \['a', 'b'\]", lambda: named.put(1, {"zz": 1.0})),
        ("Indices must be supplied", lambda: plain.put(1, [[1.0, 2.0]])),
        ("Named index not in Staging Area names", lambda: named.get(1, indices=["q"])),
        ("no names", lambda: plain.get(1, indices=["q"])),
        ("are incompatible", lambda: plain.put(1, [[1.0, 2.0, 3.0]], [0])),
    ):
        with pytest.raises(ValueError, match=message):
            mistake()
    with pytest.raises(TypeError, match="Mixed types in indices"):
        named.get(1, indices=["a", 1])
    with pytest.raises((TypeError, ValueError), match="float32"):
        one.put([tf.constant(1)])


# ---- in order


def test_first_in_first_out_with_room_for_two() -> None:
    a = StagingArea([tf.float32, tf.string], capacity=2)
    x = tf.placeholder(tf.float32)
    put, got, size = a.put([x, tf.constant(["s"])]), a.get(), a.size()
    with tf.Session() as session:
        session.run(put, {x: 1.0})
        session.run(put, {x: 2.0})
        third = Running(session, put, {x: 3.0})
        waits(session, put, {x: 4.0})
        assert (third.result, session.run(size)) == ("waiting", 2)
        assert session.run(a.peek(1))[0] == 2.0
        assert session.run(got) == [1.0, np.array([b"s"], object)]
        third.ended()
        assert [session.run(got)[0] for _ in range(2)] == [2.0, 3.0]
        taker, looker = Running(session, got), Running(session, a.peek(0))
        session.run(put, {x: 5.0})
        session.run(put, {x: 6.0})
        assert taker.ended()[0] == 5.0 and looker.ended()[0] in (5.0, 6.0)


def test_clearing_makes_room() -> None:
    a = StagingArea([tf.int32], capacity=1)
    put = a.put([7])
    with tf.Session() as session:
        session.run(put)
        waiting = Running(session, put)
        waits(session, a.peek(1))
        session.run(a.clear())
        waiting.ended()
        assert session.run(a.size()) == 1
        waits(session, a.peek(-1))


def test_memory_limit() -> None:
    a = StagingArea([tf.float32], memory_limit=100)
    x = tf.placeholder(tf.float32, [None])
    put = a.put([x])
    with tf.Session() as session:
        session.run(put, {x: np.zeros(10)})
        session.run(put, {x: np.zeros(15)})
        waiting = Running(session, put, {x: np.zeros(1)})
        waits(session, put, {x: np.zeros(1)})
        assert len(session.run(a.get())[0]) == 10
        waiting.ended()
        refused(
            session, put, tf.errors.ResourceExhaustedError,
            "combined size of '104' bytes into Staging Area with a memory limit of '100'", {x: np.zeros(26)},
        )  # fmt: skip
        text = StagingArea([tf.string], memory_limit=100)
        refused(session, text.put([["a" * 200]]), tf.errors.ResourceExhaustedError, "size of '224' bytes")
    m = MapStagingArea([tf.float32], memory_limit=100)
    with tf.Session() as session:
        session.run(m.put(2, [tf.zeros([20])], [0]))
        put = m.put(1, [x], [0])
        waits(session, put, {x: np.zeros(6)})
        session.run(put, {x: np.zeros(5)})
        refused(session, put, tf.errors.ResourceExhaustedError, "'104' bytes", {x: np.zeros(26)})


def test_what_is_staged_is_nobody_elses_memory() -> None:
    a = StagingArea([tf.float32, tf.float32, tf.float32])
    x, v = tf.placeholder(tf.float32, [2]), tf.Variable([1.0, 1.0])
    doubled = x * 2.0
    put = a.put([x, v, doubled])
    looked, got = a.peek(0), a.get()
    changed = [y + 1.0 for y in a.peek(0)]
    array = np.array([1.0, 2.0], np.float32)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run([put, doubled], {x: array})[1][:] = -1.0
        array[:] = -1.0
        session.run(v.assign([5.0, 5.0]))
        session.run(changed)
        for value in session.run(looked):
            value[:] = -1.0
        assert [value.tolist() for value in session.run(got)] == [[1.0, 2.0], [1.0, 1.0], [2.0, 4.0]]


def test_ends_with_its_step_and_session() -> None:
    a, m = StagingArea([tf.float32]), MapStagingArea([tf.float32])
    session = tf.Session()
    blocked = [
        Running(session, fetch) for fetch in (a.get(), a.peek(0), m.get(), m.get(key(3)), m.peek(key(3)))
    ]
    find = session._target.resources.look_up_or_create
    until(lambda: len(find("", ("staging area", a.name), None).waiting) == 2)
    until(lambda: len(find("", ("staging map", m.name), None).waiting) == 3)
    session.close()
    assert [type(running.ended()) for running in blocked] == [tf.errors.CancelledError] * 5


def test_areas_meet_by_name() -> None:
    refuse = tf.errors.InternalError
    with tf.Session() as session:
        session.run(F.Stage([tf.constant(1.0)], shared_name="tt"))
        refused(
            session, F.Unstage(dtypes=[tf.int32], shared_name="tt"), refuse,
            "Output 0 of type float does not match declared output type int32",
        )  # fmt: skip
        assert session.run(F.StageSize(dtypes=[tf.float32], shared_name="tt")) == 1
        assert session.run(F.Unstage(dtypes=[tf.float32], shared_name="tt")) == [1.0]
        session.run(F.Stage([tf.constant(1.0)], name="foo"))
        waits(session, F.Unstage(dtypes=[tf.float32], name="foo_1"))
    assert StagingArea([tf.float32], shared_name="mine").name == "mine"


# ---- by key


@pytest.mark.parametrize("ordered", [True, False])
def test_by_key_and_without(ordered: bool) -> None:
    m = MapStagingArea([tf.float32, tf.int32], ordered=ordered, capacity=3)
    with tf.Session() as session:
        for k in (5, 2, 9):
            session.run(m.put(key(k), [tf.constant(float(k)), tf.constant(k)], [0, 1]))
        fourth = Running(session, m.put(key(7), [tf.constant(7.0), tf.constant(7)], [0, 1]))
        waits(session, m.put(key(8), [tf.constant(7.0), tf.constant(7)], [0, 1]))
        assert session.run(m.peek(key(9))) == [9.0, 9]
        first = session.run(m.get())
        assert first == ((2, [2.0, 2]) if ordered else (5, [5.0, 5]))
        fourth.ended()
        assert session.run(m.get(key(9))) == (9, [9.0, 9])
        rest = [int(session.run(m.get())[0]) for _ in range(2)]
        assert rest == ([5, 7] if ordered else [2, 7])
        taker = Running(session, m.get(key(1)))
        any_taker = Running(session, m.get())
        session.run(m.put(key(4), [tf.constant(4.0), tf.constant(4)], [0, 1]))
        assert any_taker.ended() == (4, [4.0, 4]) and taker.result == "waiting"
        session.run(m.put(key(1), [tf.constant(1.0), tf.constant(1)], [0, 1]))
        assert taker.ended() == (1, [1.0, 1])


def test_tuples_come_and_go_in_parts() -> None:
    m = MapStagingArea([tf.float32, tf.int32], names=["a", "b"], capacity=1)
    sizes = [m.size(), m.incomplete_size()]
    with tf.Session() as session:
        session.run(m.put(key(1), {"a": tf.constant(1.0)}))
        session.run(m.put(key(2), {"b": tf.constant(2)}))
        assert session.run(sizes) == [0, 2]  # what is incomplete needs no room
        again = "The tensor for index '0' for key '1' was already initialized '2'"
        refused(session, m.put(key(1), {"a": tf.constant(1.0)}), tf.errors.InvalidArgumentError, again)
        waiting = Running(session, m.get(key(1)))
        session.run(m.put(key(1), {"b": tf.constant(3)}))
        assert waiting.ended() == (1, {"a": 1.0, "b": 3})
        session.run(m.put(key(5), {"a": tf.constant(1.0), "b": tf.constant(2)}))
        assert session.run(m.get(key(5), indices=["b"])[1]) == {"b": 2}
        gone = "Tensor at index '1' for key '5' has already been removed."
        for fetch in (m.peek(key(5)), m.get(key(5)), m.get()):
            refused(session, fetch, tf.errors.InvalidArgumentError, gone)
        assert session.run(sizes) == [1, 1]
        assert session.run(m.get(key(5), indices=[0])[1]) == {"a": 1.0}
        assert session.run(sizes) == [0, 1]
        session.run(m.clear())
        assert session.run(sizes) == [0, 0]


def test_a_whole_tuple_does_not_replace_another() -> None:
    m = MapStagingArea([tf.float32])
    with tf.Session() as session:
        session.run(m.put(key(1), [tf.constant(1.0)], [0]))
        session.run(m.put(key(1), [tf.constant(2.0)], [0]))
        assert session.run(m.get()) == (1, [1.0])


def test_mistakes_in_steps() -> None:
    wrong = tf.errors.InvalidArgumentError

    def put(key: Any, indices: Any, values: Any) -> Any:
        return F.MapStage(
            tf.constant(key, tf.int64), indices, values, dtypes=[tf.float32, tf.int32], shared_name="q"
        )

    one, two = tf.constant(1.0), tf.constant(2)
    with tf.Session() as session:
        refused(session, put(1, [1, 0], [two, one]), wrong, "Indices are not strictly ordered")
        refused(session, put(1, [7], [one]), wrong, "Index '7' is outside of the 2 components")
        refused(
            session, put([1, 2], [0], [one]), wrong, "key must be an int64 scalar, got tensor with shape: [2]"
        )
        refused(session, put(1, [0], [two]), wrong, "Component 0 is of type float, not int32")
        refused(session, put(1, [0], [one, two]), wrong, "1 indices for 2 tensors")
        assert session.run(F.MapIncompleteSize(dtypes=[tf.float32], shared_name="q")) == 0


def test_pipelining_a_step_ahead() -> None:
    """The idiom: each step takes what the one before put aside, and puts the next aside."""
    a = StagingArea([tf.int32], shapes=[[]])
    count = tf.Variable(0)
    put = a.put([count.assign_add(1)])
    (got,) = a.get()
    with tf.Session() as session:
        session.run(count.initializer)
        session.run(put)
        assert [int(session.run([got, put])[0]) for _ in range(5)] == [1, 2, 3, 4, 5]
        until(lambda: session.run(a.size()) == 1)
