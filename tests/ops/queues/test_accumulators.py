"""Conditional accumulators: which gradients count, what is taken when, who waits, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from stepping import Running, refused, runtime_object, until

pytestmark = pytest.mark.usefixtures("graph")

WRONG = tf.errors.InvalidArgumentError


def test_nodes_and_shapes_are_tensorflows(graph: Any) -> None:
    a = tf.ConditionalAccumulator(tf.float32, shape=[2], name="A")
    a.apply_grad([1.0, 2.0])
    assert str(a.take_grad(2).shape) == "(2,)"
    a.num_accumulated(), a.set_global_step(3)
    assert (a.name, a.dtype, a.accumulator_ref.op.get_attr("reduction_type")) == ("A", tf.float32, b"MEAN")
    sparse = tf.SparseConditionalAccumulator(tf.float32, shape=[3, 2], name="SP")
    applied = sparse.apply_grad([0, 2], [[1.0, 1.0], [2.0, 2.0]], [3, 2])
    assert applied.get_attr("has_known_shape") is True
    slices = tf.IndexedSlices(tf.constant([[5.0, 5.0]]), tf.constant([2], tf.int64))
    assert sparse.apply_indexed_slices_grad(slices).get_attr("has_known_shape") is False
    sparse.take_grad(1), sparse.num_accumulated(), sparse.set_global_step(2)
    assert isinstance(sparse.take_indexed_slices_grad(1), tf.IndexedSlices)
    assert [(o.name, o.type) for o in graph.get_operations() if o.type not in ("Const", "Cast")] == [
        ("A", "ResourceConditionalAccumulator"),
        ("ResourceAccumulatorApplyGradient", "ResourceAccumulatorApplyGradient"),
        ("ResourceAccumulatorTakeGradient", "ResourceAccumulatorTakeGradient"),
        ("A_NumAccumulated", "ResourceAccumulatorNumAccumulated"),
        ("ResourceAccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep"),
        ("SP", "SparseConditionalAccumulator"),
        ("SparseAccumulatorApplyGradient", "SparseAccumulatorApplyGradient"),
        ("SparseAccumulatorApplyGradient_1", "SparseAccumulatorApplyGradient"),
        ("SparseAccumulatorTakeGradient", "SparseAccumulatorTakeGradient"),
        ("SP_NumAccumulated", "AccumulatorNumAccumulated"),
        ("AccumulatorSetGlobalStep", "AccumulatorSetGlobalStep"),
        ("SparseAccumulatorTakeGradient_1", "SparseAccumulatorTakeGradient"),
    ]
    names = [o.name for o in graph.get_operations() if o.type in ("Const", "Cast")]
    assert names[:4] == ["Const", "Const_1", "Cast", "ResourceAccumulatorTakeGradient/num_required"]
    assert "Cast_3/x" in names and "SparseAccumulatorApplyGradient/gradient_values" not in names[:8]


def test_mistakes_while_building() -> None:
    a = tf.ConditionalAccumulator(tf.float32, shape=[2])
    with pytest.raises(ValueError, match="incompatible"):
        a.apply_grad([1.0, 2.0, 3.0])
    with pytest.raises((TypeError, ValueError), match="float"):
        a.apply_grad(tf.constant([1, 2]))
    with pytest.raises(ValueError, match="MEAN"):
        tf.ConditionalAccumulator(tf.float32, reduction_type="Foo")
    with pytest.raises(TypeError, match="string"):
        tf.ConditionalAccumulator(tf.string)


def test_the_average_of_enough_fresh_gradients() -> None:
    a = tf.ConditionalAccumulator(tf.float32, shape=[2])
    g, t = tf.placeholder(tf.float32), tf.placeholder(tf.int64, [])
    apply, count = a.apply_grad(g, t), a.num_accumulated()
    with tf.Session() as session:

        def send(gradient: list[float], time_step: int) -> int:
            session.run(apply, {g: gradient, t: time_step})
            return int(session.run(count))

        assert send([1.0, 2.0], 0) == 1
        waiting = Running(session, a.take_grad(2))
        until(lambda: len(runtime_object(session, a.accumulator_ref).waiting))
        send([3.0, 4.0], 0)
        assert waiting.ended().tolist() == [2.0, 3.0] and session.run(count) == 0
        assert [send([3.0, 4.0], time_step) for time_step in (0, 1, 10)] == [0, 1, 2]  # the first is stale
        assert session.run(a.take_grad(1)).tolist() == [3.0, 4.0]
        session.run(a.set_global_step(3))
        assert [send([3.0, 4.0], time_step) for time_step in (2, 3)] == [0, 1]


def test_takers_are_served_in_order() -> None:
    a = tf.ConditionalAccumulator(tf.float64, shape=[])
    with tf.Session() as session:
        waiting = runtime_object(session, a.accumulator_ref).waiting
        first = Running(session, a.take_grad(2))
        until(lambda: len(waiting) == 1)
        second = Running(session, a.take_grad(1))
        until(lambda: len(waiting) == 2)
        session.run(a.apply_grad(4.0, 9))
        assert (first.result, second.result) == ("waiting", "waiting")
        session.run(a.apply_grad(6.0, 9))
        assert first.ended() == 5.0 and second.result == "waiting"
        session.run(a.apply_grad(7.0, 9))
        assert second.ended() == 7.0


@pytest.mark.parametrize(("reduction", "expected"), [("MEAN", 3.5), ("SUM", 7.0)])
def test_reductions(reduction: str, expected: float) -> None:
    a = tf.ConditionalAccumulator(tf.float64, reduction_type=reduction)
    sparse = tf.SparseConditionalAccumulator(tf.float32, reduction_type=reduction)
    with tf.Session() as session:
        for value in (3.0, 4.0):
            session.run(a.apply_grad(value))
            session.run(sparse.apply_grad([1, int(value)], [[value], [8.0]]))
        assert session.run(a.take_grad(1)) == expected
        taken = session.run(sparse.take_grad(2))
        assert taken.indices.tolist() == [1, 3, 4]
        assert taken.values.ravel().tolist() == [expected, 8.0, 8.0]  # by how many gradients had the place
        assert taken.shape.tolist() == [-1, 1]


def test_gradients_are_copied() -> None:
    a = tf.ConditionalAccumulator(tf.float32)
    v = tf.Variable([1.0, 1.0])
    x = tf.placeholder(tf.float32)
    array = np.array([2.0, 2.0], np.float32)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(a.apply_grad(v))
        session.run(a.apply_grad(x), {x: array})
        assert array.tolist() == session.run(v * 2.0).tolist() == [2.0, 2.0]
        assert session.run(a.take_grad(2)).tolist() == [1.5, 1.5]
        session.run(a.apply_grad([1.0, 2.0, 3.0], 1))  # after a take any shape may come


def test_what_dense_accumulators_refuse() -> None:
    a, free = tf.ConditionalAccumulator(tf.float32, shape=[2]), tf.ConditionalAccumulator(tf.float32)
    g, n = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    apply = a.apply_grad(g)
    with tf.Session() as session:
        refused(session, apply, WRONG, "Shape mismatch: expected [2], got [3]", {g: [1.0, 2.0, 3.0]})
        refused(session, apply, WRONG, "Shape mismatch: expected [2], got []", {g: 1.0})
        session.run(free.apply_grad([1.0, 2.0]))
        refused(session, free.apply_grad(g), WRONG, "Shape mismatch: expected [2], got [3]", {g: [1.0] * 3})
        assert session.run([a.num_accumulated(), free.num_accumulated()]) == [0, 1]
        for required in (0, -1):
            words = f"Argument num_required must be positive, but was {required}"
            refused(session, a.take_grad(n), WRONG, words, {n: required})
        refused(session, a.take_grad(n), WRONG, "num_required must be scalar", {n: [1]})
        t = tf.placeholder(tf.int64)
        refused(session, a.apply_grad([1.0, 2.0], t), WRONG, "local_step must be scalar", {t: [1]})


def test_sparse_gradients() -> None:
    sparse = tf.SparseConditionalAccumulator(tf.float32, shape=[3, 2])
    with tf.Session() as session:
        session.run(sparse.apply_grad([2, 0], [[2.0, 2.0], [1.0, 1.0]], [3, 2]))
        waiting = Running(session, sparse.take_indexed_slices_grad(2))
        until(lambda: len(runtime_object(session, sparse.accumulator_ref).waiting))
        slices = tf.IndexedSlices(tf.constant([[5.0, 5.0]]), tf.constant([2]), tf.constant([3, 2]))
        session.run(sparse.apply_indexed_slices_grad(slices, local_step=1))
        taken = waiting.ended()
        assert (taken.indices.tolist(), taken.dense_shape.tolist()) == ([0, 2], [3, 2])
        assert taken.values.tolist() == [[1.0, 1.0], [3.5, 3.5]]
        session.run(sparse.apply_indexed_slices_grad(slices))  # stale now
        assert session.run(sparse.num_accumulated()) == 0
        session.run(sparse.apply_grad(np.zeros(0, np.int64), np.zeros((0, 2), np.float32), local_step=1))
        assert session.run(sparse.take_grad(1)).values.shape == (0, 2)


def test_what_sparse_accumulators_refuse() -> None:
    sparse = tf.SparseConditionalAccumulator(tf.float32, shape=[3, 2])
    free = tf.SparseConditionalAccumulator(tf.float32)
    one = [[1.0, 1.0]]
    with tf.Session() as session:
        session.run(free.apply_grad([1], one))
        for accumulator, indices, values, shape, words in (
            (sparse, [1], [[1.0, 1.0, 1.0]], None, "expected values dim 1 to be 2, got 3"),
            (sparse, [1], one, [4, 2], "expected shape dim 0 to be 3, got 4"),
            (sparse, [1], one, [3], "expected shape rank at least 2, got 1"),
            (sparse, [1], [1.0], None, "expected values rank at least 2, got 1"),
            (sparse, [1, 2], one, None, "Expected 2 non-empty input values, got 1"),
            (sparse, [7], one, None, "index of slice 0 exceeded limits of shape; index is 7 exceeded 3"),
            (sparse, [[1]], one, None, "Input indices should be vector but received shape: [1,1]"),
            (sparse, [1], 1.0, None, "Values cannot be 0-dimensional."),
            (free, [1], [[1.0, 1.0, 1.0]], None, "expected values dim 1 to be 2, got 3"),
            (free, [1], [[[1.0, 1.0]]], None, "expected values rank 2, got 3"),
        ):
            refused(session, accumulator.apply_grad(indices, values, shape), WRONG, words)
        assert session.run([sparse.num_accumulated(), free.num_accumulated()]) == [0, 1]
        refused(session, sparse.take_grad(0), WRONG, "Argument num_required must be positive, but was 0")


def test_references_of_tensorflow_1() -> None:
    handle = F.ConditionalAccumulator(dtype=tf.int32, shape=[2], shared_name="old")
    base = tf.ConditionalAccumulatorBase(tf.int32, [2], handle)
    with tf.Session() as session:
        for value in (1, 2):
            session.run(F.AccumulatorApplyGradient(handle, tf.constant(0, tf.int64), [value, 4]))
        assert session.run(base.num_accumulated()) == 2
        assert session.run(F.AccumulatorTakeGradient(handle, 1, dtype=tf.int32)).tolist() == [1, 4]
        session.run(base.set_global_step(5))
        session.run(F.AccumulatorApplyGradient(handle, tf.constant(4, tf.int64), [1, 4]))
        assert session.run(base.num_accumulated()) == 0
        words = "Expected gradients of type int32, not float"
        wrong_type = F.AccumulatorApplyGradient(handle, tf.constant(9, tf.int64), [1.0, 4.0])
        refused(session, wrong_type, WRONG, words)
        refused(session, F.AccumulatorTakeGradient(handle, 1, dtype=tf.float32), WRONG, words)
        wrong_kind = F.SparseAccumulatorTakeGradient(handle, 1, dtype=tf.int32)
        refused(session, wrong_kind, WRONG, "is not a SparseAccumulator")
        assert session.run(handle).tolist() == [b"localhost", b"old"]


def test_sharing_by_name() -> None:
    one, other = (tf.ConditionalAccumulator(tf.float32, shape=[1], shared_name="S") for _ in range(2))
    with tf.Session() as session:
        session.run(one.apply_grad([3.0]))
        assert session.run(other.take_grad(1)).tolist() == [3.0]


def test_deadlines_and_closing_the_session_end_takes() -> None:
    a, sparse = tf.ConditionalAccumulator(tf.float32), tf.SparseConditionalAccumulator(tf.float32)
    session = tf.Session()
    session.run(a.apply_grad(1.0))
    late = Running(session, a.take_grad(2), options=tf.RunOptions(timeout_in_ms=30)).ended()
    assert isinstance(late, tf.errors.DeadlineExceededError)
    assert session.run(a.num_accumulated()) == 1
    blocked = [Running(session, fetch) for fetch in (a.take_grad(2), sparse.take_grad(1))]
    for accumulator in (a, sparse):
        until(lambda x=accumulator: len(runtime_object(session, x.accumulator_ref).waiting))
    session.close()
    assert [type(running.ended()) for running in blocked] == [tf.errors.CancelledError] * 2


def test_many_workers_lose_nothing() -> None:
    a = tf.ConditionalAccumulator(tf.int64, reduction_type="SUM")
    x = tf.placeholder(tf.int64)
    apply = a.apply_grad(x, 10**6)
    with tf.Session() as session:
        takers = [Running(session, a.take_grad(10)) for _ in range(8)]
        senders = [Running(session, [apply], {x: i}) for i in range(80)]
        for sender in senders:
            assert sender.ended() == [None]
        assert sum(int(taker.ended()) for taker in takers) == sum(range(80))
        assert session.run(a.num_accumulated()) == 0
