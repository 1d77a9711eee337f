"""Queues: names and errors of the oracle, what waits and is woken, what nobody may lose."""

from __future__ import annotations

import threading
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.queues.queue_state import Queue
from flowstone.ops.queues.queue_storage import (
    SINGLE,
    BlockStorage,
    HeapStorage,
    SlotStorage,
    join,
    join_padded,
)
from flowstone.ops.randomness.philox import State
from flowstone.ops.randomness.random_words import RandomWords
from stepping import Running, refused, runtime_object, until

pytestmark = pytest.mark.usefixtures("graph")


# ---- the graph


def test_ops_and_names_are_tensorflows(graph: Any) -> None:
    q = tf.FIFOQueue(10, [tf.float32, tf.int32], shapes=[[2], []], names=["a", "b"])
    q.enqueue({"a": [1.0, 2.0], "b": 3})
    q.enqueue_many({"a": [[1.0, 2.0]], "b": [3]})
    shapes = {}
    for result in (q.dequeue(), q.dequeue_many(3), q.dequeue_up_to(3)):
        shapes.update({x.op.name: str(x.shape) for x in [result["a"]]})
    q.close()
    q.size()
    q.is_closed()
    assert shapes == {
        "fifo_queue_Dequeue": "(2,)",
        "fifo_queue_DequeueMany": "(3, 2)",
        "fifo_queue_DequeueUpTo": "(?, 2)",
    }
    assert [(o.name, o.type) for o in graph.get_operations()] == [
        ("fifo_queue", "FIFOQueueV2"),
        ("fifo_queue_enqueue/component_0", "Const"),
        ("fifo_queue_enqueue/component_1", "Const"),
        ("fifo_queue_enqueue", "QueueEnqueueV2"),
        ("fifo_queue_EnqueueMany/component_0", "Const"),
        ("fifo_queue_EnqueueMany/component_1", "Const"),
        ("fifo_queue_EnqueueMany", "QueueEnqueueManyV2"),
        ("fifo_queue_Dequeue", "QueueDequeueV2"),
        ("fifo_queue_DequeueMany/n", "Const"),
        ("fifo_queue_DequeueMany", "QueueDequeueManyV2"),
        ("fifo_queue_DequeueUpTo/n", "Const"),
        ("fifo_queue_DequeueUpTo", "QueueDequeueUpToV2"),
        ("fifo_queue_Close", "QueueCloseV2"),
        ("fifo_queue_Size", "QueueSizeV2"),
        ("fifo_queue_Is_Closed", "QueueIsClosedV2"),
    ]
    assert q.queue_ref.op.device == "/device:CPU:*"


def test_names_within_scopes_and_shapes_of_the_other_kinds() -> None:
    with tf.name_scope("zz"):
        q = tf.PriorityQueue(10, [tf.float32], shapes=[[]])
        assert (q.name, q.enqueue((1, 2.0)).name) == ("zz/priority_queue", "zz/priority_queue_enqueue")
        assert q.size(name="s").name == "zz/s:0"
    assert [x.dtype for x in q.dequeue()] == q.dtypes == [tf.int64, tf.float32]
    assert q.queue_ref.op.get_attr("component_types") == [tf.float32]
    q = tf.PaddingFIFOQueue(10, [tf.float32, tf.int32], [[None], [2]])
    assert [str(x.shape) for x in q.dequeue_up_to(2)] == ["(?, ?)", "(?, 2)"]
    assert str(tf.FIFOQueue(3, tf.float32).dequeue().shape) == "<unknown>"
    assert [str(s) for s in tf.FIFOQueue(3, tf.float32, [3]).shapes] == ["(3,)"]


@pytest.mark.parametrize(
    ("graph_seed", "seed", "shared_name", "expected"),
    [
        (None, None, None, (0, 0)),
        (None, 3, None, (87654321, 3)),
        (7, 3, "nm", (7, 3)),
        (7, None, "nm", (7, 1329967485)),
        (None, None, "nm", (0, 0)),
    ],
)
def test_seeds(graph_seed: Any, seed: Any, shared_name: Any, expected: Any) -> None:
    if graph_seed is not None:
        tf.set_random_seed(graph_seed)
    op = tf.RandomShuffleQueue(3, 1, [tf.float32], seed=seed, shared_name=shared_name).queue_ref.op
    assert (op.get_attr("seed"), op.get_attr("seed2")) == expected


def test_mistakes_while_building() -> None:
    named = tf.FIFOQueue(10, [tf.float32, tf.int32], shapes=[[2], []], names=["a", "b"])
    plain = tf.FIFOQueue(10, [tf.float32])
    for message, mistake in (
        ("Queue shapes must have the same length", lambda: tf.FIFOQueue(10, [tf.float32], shapes=[[1], [2]])),
        ("List of names must have the same length", lambda: tf.FIFOQueue(10, [tf.float32], names=["a", "b"])),
        ("must be fully defined", lambda: tf.FIFOQueue(10, [tf.float32], shapes=[[None]])),
        ("a list of shapes must be provided", lambda: tf.PaddingFIFOQueue(10, [tf.float32], shapes=None)),
        ("You must enqueue a dictionary", lambda: named.enqueue([1.0, 2])),
        ("Keys in dictionary to enqueue do not match", lambda: named.enqueue({"a": [1.0, 2.0]})),
        ("Queue must have names", lambda: plain.enqueue({"a": 1.0})),
        ("are incompatible", lambda: named.enqueue({"a": [1.0, 2.0, 3.0], "b": 3})),
        ("are not compatible", lambda: named.enqueue_many({"a": [[1.0, 2.0]], "b": [3, 4]})),
        ("must have rank at least 1", lambda: plain.enqueue_many(1.0)),
        ("Input 'n' must be >= 0, but is -1", lambda: named.dequeue_many(-1)),
    ):
        with pytest.raises(ValueError, match=message):
            mistake()
    for mistake in (
        lambda: tf.QueueBase.from_list(0, []),
        lambda: tf.QueueBase.from_list(0, [named, plain]),
        lambda: plain.enqueue("x"),
        lambda: tf.PriorityQueue(10, [tf.float32]),
    ):
        with pytest.raises(TypeError):
            mistake()


def test_no_gradient_flows_through_a_queue() -> None:
    assert tf.gradients(tf.FIFOQueue(1, [tf.float32]).dequeue(), [tf.constant(1.0)]) == [None]


# ---- elements in their order


def test_first_in_first_out_over_batches_and_elements() -> None:
    q = tf.FIFOQueue(20, [tf.int32, tf.string], shapes=[[], []])
    x, text = tf.placeholder(tf.int32), tf.placeholder(tf.string)
    put, put_many, n = q.enqueue([x, text]), q.enqueue_many([x, text]), tf.placeholder(tf.int32, [])
    take = q.dequeue_many(n)
    with tf.Session() as s:
        s.run(put_many, {x: [0, 1, 2], text: ["0", "1", "2"]})
        s.run(put, {x: 3, text: "3"})
        s.run(put_many, {x: [4, 5], text: ["4", "5"]})
        s.run(put_many, {x: [], text: []})
        numbers, words = s.run(take, {n: 2})
        assert (numbers.tolist(), words.tolist()) == ([0, 1], [b"0", b"1"])
        numbers, words = s.run(take, {n: 3})
        assert (numbers.tolist(), words.tolist()) == ([2, 3, 4], [b"2", b"3", b"4"])
        assert s.run(q.dequeue()) == [5, b"5"]
        assert s.run(take, {n: 0})[0].shape == (0,)
        assert s.run(q.size()) == 0


def test_the_queue_keeps_its_own_copy() -> None:
    q = tf.FIFOQueue(20, [tf.float32])
    x = tf.placeholder(tf.float32)
    v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=False)
    fed = np.float32([5, 6])
    with tf.Session() as s:
        s.run(v.initializer)
        s.run(q.enqueue(x), {x: fed})
        s.run(q.enqueue(v))
        s.run(v.assign_add([10.0, 10.0]))
        fed += 1
        assert s.run(q.dequeue()).tolist() == [5, 6]
        assert s.run(q.dequeue()).tolist() == [1, 2]


def test_a_padding_queue_fills_up_batches() -> None:
    q = tf.PaddingFIFOQueue(10, [tf.int32, tf.string], shapes=[[None, 2], [None]])
    x, text = tf.placeholder(tf.int32), tf.placeholder(tf.string)
    put, put_many = q.enqueue([x, text]), q.enqueue_many([x, text])
    with tf.Session() as s:
        s.run(put, {x: [[1, 2]], text: ["a"]})
        s.run(put, {x: [[1, 2], [3, 4]], text: []})
        refused(s, put, tf.errors.InvalidArgumentError, "Expected [?,2], got [2]", {x: [1, 2], text: []})
        numbers, words = s.run(q.dequeue_many(2))
        assert numbers.tolist() == [[[1, 2], [0, 0]], [[1, 2], [3, 4]]]
        assert words.tolist() == [[b"a"], [b""]]
        s.run(put_many, {x: np.ones((2, 3, 2)), text: [["a"], ["b"]]})
        refused(
            s, put_many, tf.errors.InvalidArgumentError,
            "Shape mismatch in tuple component 1. Expected [2,?], got [1,1]",
            {x: np.ones((2, 3, 2)), text: [["a"]]},
        )  # fmt: skip
        s.run(q.close())
        refused(
            s, q.dequeue_many(3), tf.errors.OutOfRangeError,
            "is closed and has insufficient elements (requested 3, current size 2)",
        )  # fmt: skip
        assert s.run(q.dequeue_up_to(4))[1].tolist() == [[b"a"], [b"b"]]


def test_a_priority_queue_gives_the_smallest_first_and_equals_in_order() -> None:
    q = tf.PriorityQueue(10, [tf.string], shapes=[[]])
    p = tf.placeholder(tf.int64)
    with tf.Session() as s:
        s.run(q.enqueue_many([[5, 1, 3, 1], ["a", "b", "c", "d"]]))
        priorities, words = s.run(q.dequeue_many(3))
        assert (priorities.tolist(), words.tolist()) == ([1, 1, 3], [b"b", b"d", b"c"])
        assert s.run(q.dequeue()) == [5, b"a"]
        refused(s, q.enqueue([p, "a"]), tf.errors.InvalidArgumentError, "Expected [], got [1]", {p: [1]})


@pytest.mark.parametrize("shapes", [[[]], None], ids=["shapes", "no shapes"])
def test_seeds_give_the_order_of_tensorflow(shapes: Any) -> None:
    tf.set_random_seed(7)
    q = tf.RandomShuffleQueue(30, 0, tf.int32, shapes=shapes, seed=4)
    first, second = (q.enqueue_many([tf.range(*ends)]) for ends in ((0, 12), (12, 16)))
    five, rest = ([q.dequeue()] * count if shapes is None else q.dequeue_many(count) for count in (5, 11))
    with tf.Session() as session:
        session.run(first)
        found = [*session.run(five)] if shapes else [session.run(five[0]) for _ in range(5)]
        session.run(second)
        found += [*session.run(rest)] if shapes else [session.run(rest[0]) for _ in range(11)]
    assert found == [9, 10, 6, 0, 7, 3, 2, 13, 1, 12, 14, 15, 8, 5, 11, 4]


def test_a_shuffling_queue_loses_and_repeats_nothing_and_obeys_its_seed() -> None:
    def order(seed: Any) -> list[int]:
        with tf.Graph().as_default():
            q = tf.RandomShuffleQueue(100, 0, [tf.int32, tf.string], shapes=[[2], []], seed=seed)
            x, text = tf.placeholder(tf.int32), tf.placeholder(tf.string)
            put, take = q.enqueue_many([x, text]), q.dequeue_many(7)
            one = q.dequeue()
            with tf.Session() as s:
                rows = np.arange(40).repeat(2).reshape(40, 2)
                s.run(put, {x: rows[:20], text: [str(i) for i in range(20)]})
                out = [s.run(take) for _ in range(2)]
                s.run(put, {x: rows[20:], text: [str(i) for i in range(20, 40)]})
                out += [s.run(take) for _ in range(3)] + [
                    [part[None] if hasattr(part, "shape") else [part] for part in s.run(one)]
                    for _ in range(5)
                ]
        for numbers, words in out:
            assert [int(w) for w in words] == [int(row[0]) for row in numbers]
        return [int(row[1]) for numbers, _ in out for row in numbers]

    first = order(5)
    assert sorted(first) == list(range(40)) and first[:14] != list(range(14))
    assert order(5) == first != order(6)


def test_a_shuffling_queue_keeps_some_while_it_is_open() -> None:
    q = tf.RandomShuffleQueue(10, 3, [tf.float32], shapes=[[]], seed=5)
    x = tf.placeholder(tf.float32)
    put, one, three, size = q.enqueue_many([x]), q.dequeue(), q.dequeue_many(3), q.size()
    with tf.Session() as s:
        s.run(put, {x: [1, 2, 3, 4]})
        s.run(one)
        first = Running(s, one)
        until(lambda: runtime_object(s, q.queue_ref).waiting == (0, 1))
        second = Running(s, three)
        until(lambda: runtime_object(s, q.queue_ref).waiting == (0, 2))
        s.run(put, {x: [5, 6, 7, 8]})
        first.ended()
        assert second.ended().shape == (3,)
        assert s.run(size) == 3
        s.run(q.close())
        assert s.run(q.dequeue_up_to(5)).shape == (3,)
        refused(s, one, tf.errors.OutOfRangeError, "RandomShuffleQueue '_", None)


def test_elements_of_any_shape() -> None:
    x = tf.placeholder(tf.float32)
    for q in (tf.FIFOQueue(5, [tf.float32]), tf.RandomShuffleQueue(5, 0, [tf.float32])):
        with tf.Session() as s:
            s.run(q.enqueue(x), {x: [1.0]})
            s.run(q.enqueue(x), {x: [[1.0, 2.0]]})
            assert {s.run(q.dequeue()).shape for _ in range(2)} == {(1,), (1, 2)}
            refused(s, q.dequeue_many(2), tf.errors.InvalidArgumentError, "to have specified shapes")


# ---- waiting


def test_a_full_queue_takes_batches_in_parts() -> None:
    q = tf.FIFOQueue(3, [tf.float32], shapes=[[]])
    x = tf.placeholder(tf.float32)
    put, put_many, take, size = q.enqueue(x), q.enqueue_many([x]), q.dequeue(), q.size()
    with tf.Session() as s:
        many = Running(s, put_many, {x: [1, 2, 3, 4, 5]})
        until(lambda: runtime_object(s, q.queue_ref).waiting == (1, 0))
        one = Running(s, put, {x: 6})
        until(lambda: runtime_object(s, q.queue_ref).waiting == (2, 0))
        assert (s.run(take), s.run(size)) == (1, 3)
        assert s.run(q.dequeue_many(2)).tolist() == [2, 3]
        assert (many.ended(), one.ended(), s.run(size)) == (None, None, 3)
        assert s.run(q.dequeue_up_to(2)).tolist() == [4, 5]


def test_a_batch_larger_than_the_queue() -> None:
    q = tf.FIFOQueue(2, [tf.float32], shapes=[[]])
    put = q.enqueue_many([[1.0, 2.0, 3.0, 4.0, 5.0]])
    with tf.Session() as s:
        taken = Running(s, q.dequeue_many(5))
        s.run(put)
        assert taken.ended().tolist() == [1, 2, 3, 4, 5]


def test_closing_gives_back_what_a_batch_had_collected() -> None:
    q = tf.FIFOQueue(3, [tf.float32], shapes=[[]])
    with tf.Session() as s:
        batch = Running(s, q.dequeue_many(2))
        until(lambda: runtime_object(s, q.queue_ref).waiting == (0, 1))
        s.run(q.enqueue(7.0))
        assert s.run(q.size()) == 0
        s.run(q.close())
        assert type(batch.ended()) is tf.errors.OutOfRangeError
        assert s.run([q.size(), q.is_closed()]) == [1, True]
        for fetch in (q.enqueue(1.0), q.enqueue_many([[1.0]])):
            refused(s, fetch, tf.errors.CancelledError, "FIFOQueue '_")
        refused(s, q.close(), tf.errors.CancelledError, "is already closed.")
        s.run(q.close(cancel_pending_enqueues=True))
        assert s.run(q.dequeue()) == 7
        refused(s, q.dequeue(), tf.errors.OutOfRangeError, "(requested 1, current size 0)")
        refused(s, q.dequeue_up_to(2), tf.errors.OutOfRangeError, "(requested 2, current size 0)")


def test_closing_cancels_pending_enqueues() -> None:
    q = tf.FIFOQueue(2, [tf.float32], shapes=[[]])
    with tf.Session() as s:
        pending = [Running(s, q.enqueue_many([[1.0, 2.0, 3.0]]))]
        until(lambda: runtime_object(s, q.queue_ref).waiting == (1, 0))
        pending.append(Running(s, q.enqueue(9.0)))
        until(lambda: runtime_object(s, q.queue_ref).waiting == (2, 0))
        s.run(q.close(cancel_pending_enqueues=True))
        for step in pending:
            assert "Enqueue operation was cancelled" in str(step.ended())
            assert type(step.ended()) is tf.errors.CancelledError
        assert s.run(q.dequeue_up_to(5)).tolist() == [1, 2]


def test_closing_waits_for_the_enqueues_before_it() -> None:
    q = tf.FIFOQueue(2, [tf.float32], shapes=[[]])
    with tf.Session() as s:
        before = Running(s, q.enqueue_many([[1.0, 2.0, 3.0]]))
        until(lambda: runtime_object(s, q.queue_ref).waiting == (1, 0))
        close = Running(s, q.close())
        until(lambda: runtime_object(s, q.queue_ref).waiting == (2, 0))
        after = Running(s, q.enqueue(10.0))
        until(lambda: runtime_object(s, q.queue_ref).waiting == (3, 0))
        assert not s.run(q.is_closed())
        assert s.run(q.dequeue_many(2)).tolist() == [1, 2]
        assert (before.ended(), close.ended()) == (None, None)
        assert type(after.ended()) is tf.errors.CancelledError
        assert s.run(q.dequeue_up_to(5)).tolist() == [3]


def test_a_time_limit_ends_the_wait_and_loses_nothing() -> None:
    q = tf.FIFOQueue(3, [tf.float32], shapes=[[]])
    with tf.Session() as s:
        s.run(q.enqueue_many([[1.0, 2.0]]))
        with pytest.raises(tf.errors.DeadlineExceededError):
            s.run(q.dequeue_many(3), options=tf.RunOptions(timeout_in_ms=100))
        assert s.run(q.size()) == 2
        assert s.run(q.dequeue_many(2)).tolist() == [1, 2]
        assert runtime_object(s, q.queue_ref).waiting == (0, 0)


def test_closing_the_session_ends_every_wait() -> None:
    q = tf.FIFOQueue(3, [tf.float32], shapes=[[]])
    take = q.dequeue()
    s = tf.Session()
    s.run(q.size())
    state = runtime_object(s, q.queue_ref)
    waiting = [Running(s, take) for _ in range(100)]
    until(lambda: state.waiting == (0, 100))
    s.close()
    assert {type(step.ended()) for step in waiting} == {tf.errors.CancelledError}
    assert state.waiting == (0, 0)


def test_many_producers_and_consumers_lose_nothing() -> None:
    q = tf.FIFOQueue(7, [tf.int64], shapes=[[]])
    x = tf.placeholder(tf.int64, [None])
    put, take = q.enqueue_many([x]), q.dequeue_many(4)
    with tf.Session() as s:
        producers = [
            threading.Thread(
                target=lambda i=i: [s.run(put, {x: np.arange(5) + 1000 * i + 5 * j}) for j in range(40)]
            )
            for i in range(4)
        ]
        out: list[int] = []

        def consume() -> None:
            for _ in range(50):
                out.extend(s.run(take).tolist())

        consumers = [threading.Thread(target=consume) for _ in range(4)]
        for thread in producers + consumers:
            thread.start()
        for thread in producers + consumers:
            thread.join(60)
        assert sorted(out) == sorted(1000 * i + j for i in range(4) for j in range(200))
        assert s.run(q.size()) == 0


# ---- sharing, old graphs, lists


def test_a_shared_name_means_one_queue_of_one_kind() -> None:
    def make(**arguments: Any) -> Any:
        return tf.FIFOQueue(**{"capacity": 3, "dtypes": [tf.float32], "shared_name": "sh", **arguments})

    a, b = make(name="A"), make(name="B")
    with tf.Session() as s:
        s.run(a.enqueue(1.0))
        assert s.run(b.size()) == 1
        for other, words in (
            (make(capacity=4), "Shared queue 'sh' has capacity 3 but requested capacity was 4"),
            (make(dtypes=[tf.int32]), "component types float but requested component types were int32"),
            (make(shapes=[[]]), "component shapes [] but requested component shapes were [[]]"),
            (tf.RandomShuffleQueue(3, 1, [tf.float32], shared_name="sh"),
             "Expected FIFOQueue, found RandomShuffleQueueV2"),
        ):  # fmt: skip
            refused(s, other.size(), tf.errors.InvalidArgumentError, words)
        random = [tf.RandomShuffleQueue(3, n, [tf.float32], shared_name="r", seed=1) for n in (1, 2)]
        s.run(random[0].size())
        refused(s, random[1].size(), tf.errors.InvalidArgumentError, "has min_after_dequeue 1 but requested")
        other = tf.RandomShuffleQueue(3, 1, [tf.float32], shared_name="r", seed=2)
        refused(
            s, other.size(), tf.errors.InvalidArgumentError,
            "has random seeds (87654321, 1) but requested seeds are (87654321, 2).",
        )  # fmt: skip
    with tf.Session() as s:
        assert s.run(b.size()) == 0


def test_wrong_arguments_of_a_step() -> None:
    q = tf.FIFOQueue(3, [tf.float32], shapes=[[]])
    x, n = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [])
    handle = q.queue_ref
    with tf.Session() as s:
        for fetch, words, feeds in (
            (q.enqueue(x), "Shape mismatch in tuple component 0. Expected [], got [1]", {x: [1]}),
            (q.enqueue_many([x]), "Shape mismatch in tuple component 0. Expected [1], got [1,1]", {x: [[1]]}),
            (q.dequeue_many(n), "DequeueManyOp requested -1 < 0 elements", {n: -1}),
            (q.dequeue_up_to(n), "DequeueUpToOp requested -1 < 0 elements", {n: -1}),
            (
                F.QueueDequeueV2(handle, component_types=[tf.int32])[0],
                "resource->int32 expected: resource->float", {},
            ),
            (F.QueueEnqueueV2(handle, [tf.constant(1)]), "resource, int32-> expected: resource, float->", {}),
            (
                F.QueueDequeueV2(handle, component_types=[tf.float32], timeout_ms=5)[0],
                "Timeout not supported", {},
            ),
            (tf.RandomShuffleQueue(3, 5, [tf.float32]).size(), "min_after_dequeue 5 must be < capacity", {}),
            (tf.RandomShuffleQueue(3, -5, [tf.float32]).size(), "min_after_dequeue -5 must be >= 0", {}),
        ):  # fmt: skip
            refused(s, fetch, tf.errors.InvalidArgumentError, words, feeds)
        pair = tf.FIFOQueue(3, [tf.float32, tf.float32])
        y = tf.placeholder(tf.float32)
        refused(
            s, pair.enqueue_many([x, y]), tf.errors.InvalidArgumentError,
            "All input tensors must have the same size in the 0th dimension. "
            "Component 1 has 1, and should have 2",
            {x: [1, 2], y: [1]},
        )  # fmt: skip


@pytest.mark.parametrize("kind", ["FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue"])
def test_queues_of_references(kind: str) -> None:
    types = [tf.float32]
    handle = getattr(F, kind)(component_types=types, shapes=[()], name="old")
    if kind == "PriorityQueue":
        types = [tf.int64, tf.float32]
    first = [np.int64(4)] if kind == "PriorityQueue" else []
    with tf.Session() as s:
        s.run(F.QueueEnqueue(handle, [*first, 1.0]))
        s.run(F.QueueEnqueueMany(handle, [*[x.reshape(1) for x in first], [2.0]]))
        assert s.run(F.QueueSize(handle)) == 2
        assert s.run(F.QueueDequeueMany(handle, 1, component_types=types))[-1].shape == (1,)
        assert s.run(F.QueueDequeue(handle, component_types=types))[-1] in (1, 2)
        assert not s.run(F.QueueIsClosed(handle))
        s.run(F.QueueClose(handle))
        refused(
            s, F.QueueDequeueUpTo(handle, 1, component_types=types), tf.errors.OutOfRangeError, "insufficient"
        )
        container, name = s.run(handle)
        assert (container, name[-4:]) == (b"localhost", b"_old")


def test_a_resource_queue_as_a_reference() -> None:
    q = tf.FIFOQueue(3, [tf.float32])
    with tf.Session() as s:
        s.run(q.enqueue(1.0))
        assert s.run(F.QueueSize(F.FakeQueue(q.queue_ref))) == 1


def test_a_fetch_is_nobody_elses_memory() -> None:
    queues = [tf.FIFOQueue(3, [tf.float32], shapes=[[2]]), tf.FIFOQueue(3, [tf.float32])]
    x = tf.placeholder(tf.float32, [2])
    doubled = x * 2.0
    puts, taken = [queue.enqueue(doubled) for queue in queues], [queue.dequeue() for queue in queues]
    for chosen in (puts[:1], puts[1:], puts):
        with tf.Session() as session:
            session.run([doubled, *chosen], {x: [1.0, 2.0]})[0][:] = -1.0
            for put, got in zip(puts, taken):
                if put in chosen:
                    assert session.run(got).tolist() == [2.0, 4.0]


def test_one_of_several_queues() -> None:
    q1, q2 = tf.FIFOQueue(3, [tf.float32], shapes=[[3]]), tf.FIFOQueue(3, [tf.float32], shapes=[[2]])
    i = tf.placeholder(tf.int32, [])
    chosen = tf.QueueBase.from_list(i, [q1, q2])
    assert (str(chosen.dequeue().shape), chosen.name) == ("(?,)", "GatherV2")
    with tf.Session() as s:
        s.run(q2.enqueue([[1.0, 2.0]]))
        assert [s.run(chosen.size(), {i: n}) for n in (0, 1)] == [0, 1]
        assert s.run(chosen.dequeue(), {i: 1}).tolist() == [1, 2]


# ---- storages


def test_blocks_come_out_as_views_and_go_back_in_order() -> None:
    storage, block = BlockStorage(), torch.arange(6)
    storage.put((block,), 0, 6)
    storage.put((torch.tensor(6),), SINGLE, 0)
    first = storage.take(2)
    assert join(first)[0].data_ptr() == block.data_ptr()
    second = storage.take(4)
    storage.put_back(second)
    storage.put_back(first)
    assert join(storage.take(7))[0].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert storage.size == 0


def test_a_block_that_comes_in_parts_comes_out_whole() -> None:
    storage, block = BlockStorage(), (torch.arange(6),)
    storage.put(block, 0, 4)
    storage.take(1)
    storage.put(block, 4, 6)
    storage.put((torch.arange(6, 12),), 4, 6)
    assert storage.take(5) == [(block, 1, 6)]
    assert join(storage.take(2))[0].tolist() == [10, 11]


@pytest.mark.parametrize("seeded", [True, False])
def test_slots_give_every_order_as_often(seeded: bool) -> None:
    orders: Counter[tuple[int, ...]] = Counter()
    generator = np.random.default_rng(7)
    for seed in range(3600):
        storage = SlotStorage([()], 10, RandomWords(State(seed, 0), 4) if seeded else None)
        storage._generator = generator
        storage.put((torch.tensor([0, 1]),), 0, 2)
        storage.put((torch.tensor(2),), SINGLE, 0)
        order = join(storage.take(1))[0].tolist()
        storage.put((torch.tensor([3, 4]),), 0, 2)
        orders[(*order, *join(storage.take(2))[0].tolist())] += 1
    assert len(orders) == 3 * 4 * 3
    assert sum((count - 100) ** 2 / 100 for count in orders.values()) < 67  # chi-squared: p = 0.001


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((), torch.bool), ((3,), torch.complex64), ((2, 0), torch.int8), ((2, 3000), torch.float32),
     ((2,), torch.bfloat16)],
)  # fmt: skip
def test_slots_of_any_type_and_size(shape: tuple[int, ...], dtype: Any) -> None:
    storage = SlotStorage([(), shape], 100)
    rows = torch.arange(40).reshape(-1, *[1] * len(shape)).expand(40, *shape).to(dtype)
    for start in (0, 20):
        storage.put((torch.arange(40), rows), start, start + 20)
    places, drawn = join(storage.take(30))
    assert drawn.dtype == dtype
    assert torch.equal(drawn, rows[places])


@pytest.mark.parametrize(("seeded", "parts"), [(False, [5]), (True, [2, 3])])
def test_a_batch_waits_for_a_whole_where_its_order_is_drawn_already(
    monkeypatch: pytest.MonkeyPatch, seeded: bool, parts: list[int]
) -> None:
    step = SimpleNamespace(on_cancel=lambda callback: lambda: None, turn=None)
    storage = SlotStorage([()], 10, RandomWords(State(3, 0), 4) if seeded else None)
    queue = Queue("RandomShuffleQueue", "letters", (tf.int32,), ((),), 10, storage, spare=2)
    taken: list[int] = []
    batches: list[list[int]] = []
    take = storage.take

    def noted(count: int) -> Any:
        taken.append(count)
        return take(count)

    monkeypatch.setattr(storage, "take", noted)

    def put(*numbers: int) -> None:
        queue.enqueue(step, lambda outputs, error: None, (torch.tensor(numbers),), many=True)

    put(0, 1, 2, 3)
    queue.dequeue_many(step, lambda outputs, error: batches.append(outputs[0].tolist()), 5)
    assert queue.size == 2
    assert queue.waiting == (0, 1)
    put(4, 5, 6)
    assert taken == parts
    assert len(set(batches[0])) == 5
    queue.dequeue_many(step, lambda outputs, error: batches.append(outputs[0].tolist()), 4, up_to=True)
    assert not batches[1:]
    queue.close(step, lambda outputs, error: None)
    assert sorted(batches[0] + batches[1]) == list(range(7))


def test_a_batch_larger_than_what_a_shuffling_queue_gives_makes_room() -> None:
    step = SimpleNamespace(on_cancel=lambda callback: lambda: None, turn=None)
    queue = Queue("RandomShuffleQueue", "letters", (tf.int32,), ((),), 4, SlotStorage([()], 4), spare=1)
    found: list[Any] = []
    queue.dequeue_many(step, lambda outputs, error: found.extend(outputs[0].tolist()), 9)
    queue.enqueue(step, lambda outputs, error: None, (torch.arange(10),), many=True)
    assert len(set(found)) == 9


def test_a_lull_ends_with_the_room_that_dequeues_make() -> None:
    step = SimpleNamespace(on_cancel=lambda callback: lambda: None, turn=None)
    queue = Queue("FIFOQueue", "letters", (tf.int32,), ((),), 4, BlockStorage())
    queue.enqueue(step, lambda outputs, error: None, (torch.arange(4),), many=True)
    over = threading.Event()

    def rest() -> None:
        queue.lull(20)
        over.set()

    threading.Thread(target=rest, daemon=True).start()
    until(lambda: queue._lulls)
    for _ in range(2):
        queue.dequeue_at_once(1)
        assert not over.is_set()
    assert queue._lulls
    queue.dequeue_at_once(1)
    assert over.wait(10)
    queue.lull(20)  # three quarters of it are free: at once


def test_a_lull_ends_when_a_dequeue_must_wait_or_in_time() -> None:
    step = SimpleNamespace(on_cancel=lambda callback: lambda: None, turn=None)
    queue = Queue("RandomShuffleQueue", "letters", (tf.int32,), ((),), 4, BlockStorage(), spare=3)
    queue.enqueue(step, lambda outputs, error: None, (torch.arange(4),), many=True)
    queue.lull(0.001)
    assert not queue._lulls
    resting = threading.Thread(target=lambda: queue.lull(20), daemon=True)
    resting.start()
    until(lambda: queue._lulls)
    queue.dequeue_many(step, lambda outputs, error: None, 2)
    resting.join(10)
    assert not resting.is_alive()


@pytest.mark.parametrize("words", [None, RandomWords(State(3, 0))])
def test_slots_grow_and_are_used_again(words: Any) -> None:
    storage = SlotStorage([()], 1000, words)
    seen: list[int] = []
    for start in range(0, 400, 100):
        storage.put((torch.arange(start, start + 100),), 0, 100)
        seen += join(storage.take(60))[0].tolist()
        chunk = storage.take(5)
        storage.put_back(chunk)
    seen += join(storage.take(storage.size))[0].tolist()
    assert sorted(seen) == list(range(400))


def test_a_heap_takes_back_before_equals() -> None:
    storage = HeapStorage()
    storage.put((torch.tensor([1, 1, 2]), torch.tensor([0, 1, 2])), 0, 3)
    storage.put_back(storage.take(2))
    storage.put_back(storage.take(1))
    assert join(storage.take(3))[1].tolist() == [0, 1, 2]


def test_padding_of_blocks_of_different_sizes() -> None:
    chunks = [((torch.ones(2, 1),), 0, 2), ((torch.ones(3),), SINGLE, 0)]
    assert join_padded(chunks, [1])[0].tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 1]]
