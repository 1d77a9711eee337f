"""Steps with feeds of many shapes: the values are those of a program that has each shape alone."""

from __future__ import annotations

import logging
import threading
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.client import planning
from flowstone.client.feeds_fetches import feed_converter
from flowstone.runtime.plans.plans_by_shape import PlansByShape

LENGTHS = list(range(3, 23))


@pytest.fixture(autouse=True)
def _own_plans_when_shapes_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowstone.runtime.code.planning_costs.MOST_USES", 2)
    monkeypatch.setattr("flowstone.runtime.code.planning_costs.PATIENCE", 0)


def plans_of(s: tf.Session) -> PlansByShape:
    (plans,) = s.planner.plans_by_shape.values()
    return plans


def special(s: tf.Session) -> list[int]:
    """The lengths for which there is a plan."""
    return [n for n in range(100) if plans_of(s).is_special(((n,),))]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The shapes of all plans that are made, in order."""
    made, make_plan = [], planning.make_plan

    def noted(fetches: Any, targets: Any, feeds: Any, options: Any) -> Any:
        made.append(options.feed_dims)
        return make_plan(fetches, targets, feeds, options)

    monkeypatch.setattr(planning, "make_plan", noted)
    return made


def sequence_model() -> tuple[Any, Any]:
    """A loss with updates, over [batch, time] numbers."""
    x = tf.placeholder(tf.float32, [None, None])
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.expand_dims(x, 2), dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(outputs, 2) - x))
    return x, [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)]


def leave_all_sizes_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has steps of all shapes have one plan."""
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.AT_ONCE", 0)
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.MOST_WIDENINGS", 0)
    monkeypatch.setattr(PlansByShape, "_is_wanted", lambda plans, *_: False)


def test_twenty_lengths_again_and_again_train_as_one_plan_for_all_does(monkeypatch):
    order = [n for seed in range(3) for n in np.random.RandomState(seed).permutation(LENGTHS)]
    losses = []
    for attempt in range(2):
        if attempt:
            leave_all_sizes_open(monkeypatch)
        with tf.Graph().as_default(), tf.Session() as s:
            tf.set_random_seed(1)
            x, fetches = sequence_model()
            s.run(tf.global_variables_initializer())
            numbers = np.random.RandomState(7)
            losses.append([])
            for n in order:
                losses[-1].append(s.run(fetches, {x: numbers.rand(2, n)})[0])
                s.planner.wait()
            planned = [n for n in LENGTHS if plans_of(s).is_special(((2, n),))]
            assert planned == ([] if attempt else LENGTHS)
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_batches_of_nothing_and_of_one_train_as_one_plan_for_all_does(monkeypatch):
    monkeypatch.setattr(PlansByShape, "_is_wanted", lambda plans, *_: False)
    sizes = np.random.RandomState(4).randint(0, 5, [60, 2])
    losses = []
    for attempt in range(2):
        if attempt:
            leave_all_sizes_open(monkeypatch)
        with tf.Graph().as_default(), tf.Session() as s:
            tf.set_random_seed(1)
            x, fetches = sequence_model()
            s.run(tf.global_variables_initializer())
            numbers = np.random.RandomState(7)
            losses.append([])
            for batch, time in sizes:
                losses[-1].append(s.run(fetches, {x: numbers.rand(batch, 1 + time)})[0])
                if batch == 0:  # a mean of nothing is NaN, and so are its gradients
                    s.run(tf.global_variables_initializer())
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_one_shape_is_planned_once(planned):
    x = tf.placeholder(tf.float32, [None])
    y = x + 1
    with tf.Session() as s:
        for _ in range(5):
            assert s.run(y, {x: [1, 2]}).tolist() == [2, 3]
        s.planner.wait()
    assert planned == [((2,),)]


def test_runners_of_the_same_elements_share_their_plans(planned):
    x = tf.placeholder(tf.float32, [None])
    y = x * 2
    with tf.Session() as s:
        call = s.make_callable(y, [x])
        for n in LENGTHS * 3:
            assert s.run(y, {x: np.ones(n)}).tolist() == [2] * n
            assert s.run([y], {x: np.ones(n)})[0].tolist() == [2] * n
            assert call([1.0] * n).tolist() == [2] * n
        s.planner.wait()
        assert special(s) == LENGTHS
        assert len(planned) == len(LENGTHS) + 1


def test_random_numbers_go_on_from_plan_to_plan():
    x = tf.placeholder(tf.float32, [None])
    drawn = tf.random_uniform([3], seed=5) + 0 * tf.reduce_sum(x)
    dropped = tf.nn.dropout(tf.ones([50]), 0.5, seed=6) + 0 * tf.reduce_sum(x)
    results = []
    for lengths in ([4] * 12, [1, 2, 3, 4, 3, 4, 3, 4, 1, 2, 3, 4]):
        with tf.Session() as s:
            results.append([])
            for n in lengths:
                results[-1].append(np.concatenate(s.run([drawn, dropped], {x: np.ones(n)})))
                s.planner.wait()
    np.testing.assert_array_equal(results[0], results[1])
    assert len(np.unique(np.array(results[0])[:, :3])) == 36


def test_variables_and_queues_are_the_same_for_all_plans():
    x = tf.placeholder(tf.float32, [None])
    total = tf.Variable(0.0)
    queue = tf.FIFOQueue(100, tf.float32, shapes=[])
    with tf.control_dependencies([queue.enqueue(tf.reduce_sum(x))]):
        added = total.assign_add(tf.reduce_sum(x))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        order = [1, 2, 3, 4, 3, 4, 3, 4]
        sums = []
        for n in order:
            sums.append(s.run(added, {x: np.ones(n)}))
            s.planner.wait()
        assert sums == np.cumsum(order).tolist()
        assert s.run(queue.dequeue_many(len(order))).tolist() == order


def test_the_shape_of_fed_strings_counts():
    x, words = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.string, [None])
    sizes = [tf.size(words), tf.size(x)]
    with tf.Session() as s:
        for n in [1, 2, 3, 2, 3, 3]:
            assert s.run(sizes, {x: [1.0], words: ["a"] * n}) == [n, 1]


def test_strings_alone_have_plans_of_their_shapes(planned):
    words = tf.placeholder(tf.string, [None])
    found = [tf.size(words), tf.string_to_hash_bucket_fast(words, 7)]
    with tf.Session() as s:
        call = s.make_callable(found, [words])
        wanted = {n: call(["a"] * n)[1].tolist() for n in (2, 3)}
        for n in (2, 3, 2):
            for fed in (["a"] * n, ("a",) * n, np.array([b"a"] * n, object), np.array(["a"] * n)):
                size, buckets = call(fed)
                assert size == n and buckets.tolist() == wanted[n]
        assert planned == [((2,),), ((3,),)]
        assert call([])[0] == 0
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            call([["a"]])
        assert call(["a"] * 3)[0] == 3


def test_steps_of_many_threads_have_the_plans_of_their_shapes():
    x = tf.placeholder(tf.float32, [None])
    y = tf.reduce_sum(x * 2)
    wrong: list[Any] = []
    with tf.Session() as s:

        def steps(seed: int) -> None:
            for n in np.random.RandomState(seed).choice(LENGTHS, 200):
                try:
                    if s.run(y, {x: np.ones(n)}) != 2 * n:
                        wrong.append(n)
                except Exception as error:
                    wrong.append(error)

        threads = [threading.Thread(target=steps, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        s.planner.wait()
        assert special(s) == LENGTHS


def test_the_graph_may_grow_while_plans_are_made():
    x = tf.placeholder(tf.float32, [None])
    y = x
    for _ in range(50):
        y = tf.tanh(y) + 1
    with tf.Session() as s:
        for n in [1, 2, 3, 3, 4, 4, 5, 5]:
            s.run(y, {x: np.ones(n)})
            for _ in range(20):
                tf.tanh(y) + 1
        s.planner.wait()
        assert special(s) == [1, 2, 3, 4, 5]


def held_planning(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Planning for length 3 sets the first event, and waits for the second."""
    begun, go_on, make_plan = threading.Event(), threading.Event(), planning.make_plan

    def held(fetches: Any, targets: Any, feeds: Any, options: Any) -> Any:
        if options.feed_dims == ((3,),):
            begun.set()
            assert go_on.wait(10)
        return make_plan(fetches, targets, feeds, options)

    monkeypatch.setattr(planning, "make_plan", held)
    return begun, go_on


def test_steps_go_on_while_a_plan_is_made(monkeypatch):
    monkeypatch.setattr("flowstone.runtime.code.planning_costs.PATIENCE", 1)
    begun, go_on = held_planning(monkeypatch)
    x = tf.placeholder(tf.float32, [None])
    y = x * 2
    with tf.Session() as s:
        for n in [1, 2, 3, 3]:
            s.run(y, {x: np.ones(n)})
        assert begun.wait(10)
        for n in [1, 2, 5]:
            assert s.run(y, {x: np.ones(n)}).tolist() == [2] * n
        go_on.set()
        assert s.planner.wait(10)
        assert special(s) == [1, 2, 3]
        assert s.run(y, {x: np.ones(3)}).tolist() == [2] * 3


def test_a_session_closes_while_a_plan_is_made(monkeypatch):
    begun, go_on = held_planning(monkeypatch)
    x = tf.placeholder(tf.float32, [None])
    y = x * 2
    s = tf.Session()
    for n in [1, 2, 3, 3, 4, 4]:
        s.run(y, {x: np.ones(n)})
    assert begun.wait(10)
    s.close()  # does not wait
    with pytest.raises(RuntimeError, match="closed Session"):
        s.run(y, {x: np.ones(3)})
    go_on.set()
    assert s.planner.wait(10)
    assert not s.planner.plans and not s.planner.plans_by_shape


def test_planning_that_fails_in_the_background_leaves_the_general_plan(monkeypatch, caplog):
    make_plan = planning.make_plan

    def failing(fetches: Any, targets: Any, feeds: Any, options: Any) -> Any:
        if options.feed_dims == ((3,),):
            raise AssertionError("a pass is wrong")
        return make_plan(fetches, targets, feeds, options)

    monkeypatch.setattr(planning, "make_plan", failing)
    x = tf.placeholder(tf.float32, [None])
    y = x * 2
    with tf.Session() as s, caplog.at_level(logging.WARNING, "tensorflow"):
        for n in [1, 2, 3, 3, 3, 3]:
            assert s.run(y, {x: np.ones(n)}).tolist() == [2] * n
            s.planner.wait()
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["a pass is wrong"]


def test_shapes_that_contradict_are_planned_once(planned):
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    z = x + y
    with tf.Session() as s:
        for _ in range(4):
            with pytest.raises(tf.errors.InvalidArgumentError, match="node add"):
                s.run(z, {x: [1, 2], y: [1, 2, 3]})
        assert s.run(z, {x: [1, 2], y: [1, 2]}).tolist() == [2, 4]
        s.planner.wait()
    assert planned == [((2,), (3,)), None, ((2,), (2,))]


def test_shapes_that_contradict_are_explained_by_the_plan_for_all():
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    product = tf.matmul(x, y)
    with tf.Session() as session:
        assert "MatMul" in session.explain(product, {x: np.ones([2, 3]), y: np.ones([2, 3])})


def test_values_that_cannot_be_fed_are_the_same_errors_at_any_time():
    x = tf.placeholder(tf.float32, [None, 2])
    y = x * 2
    with tf.Session() as s:
        for n in [0, 1, 2, 3, 3]:
            for value, error in (("word", ValueError), (np.ones([3, 3]), ValueError), (x, TypeError)):
                with pytest.raises(error):
                    s.run(y, {x: value})
            if n:
                assert s.run(y, {x: np.ones([n, 2])}).shape == (n, 2)
            s.planner.wait()


def test_plans_that_are_let_go_are_let_go_by_the_session(monkeypatch):
    monkeypatch.setattr("flowstone.runtime.plans.plans_by_shape.MOST_PLANS", 4)
    x = tf.placeholder(tf.float32, [None])
    y = x * 2
    with tf.Session() as s:
        for n in LENGTHS:
            for _ in range(3):
                assert s.run(y, {x: np.ones(n)}).tolist() == [2] * n
                s.planner.wait()
        assert special(s) == LENGTHS[-4:]
        assert len(s.planner.plans) == 5


def test_sizes_that_were_always_equal_may_differ_later():
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
    product = x * y
    gradients = tf.gradients(product, [x, y])
    with tf.Session() as s:
        for m, n in [(2, 2), (3, 3), (4, 4), (5, 5), (1, 5), (6, 6), (5, 1), (1, 1), (0, 0), (1, 0), (7, 7)]:
            a, b = np.random.rand(m, 3).astype("f"), np.random.rand(n, 3).astype("f")
            value, dx, dy = s.run([product, *gradients], {x: a, y: b})
            np.testing.assert_allclose(value, a * b)
            wanted = np.broadcast_to(b, value.shape), np.broadcast_to(a, value.shape)
            for got, each, given in zip((dx, dy), wanted, (a, b)):
                assert got.shape == given.shape
                summed = each.sum(0, keepdims=True) if len(given) != len(value) else each
                np.testing.assert_allclose(got, summed, rtol=1e-5)
        for shapes in [(3, 4), (4, 3)] * 3:
            with pytest.raises(tf.errors.InvalidArgumentError, match="node mul"):
                s.run(product, {x: np.ones([shapes[0], 3]), y: np.ones([shapes[1], 3])})
            s.planner.wait()


def test_rows_of_indices_lie_one_behind_the_other() -> None:
    """`np.argwhere` gives columns; kernels read rows."""
    places = np.argwhere(np.eye(4, 5))
    assert not places.flags.c_contiguous
    fed = feed_converter(tf.placeholder(tf.int64, [None, 2]), torch.device("cpu"))(places)
    assert fed.is_contiguous() and fed.tolist() == places.tolist()
    numbers = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    kept = feed_converter(tf.placeholder(tf.float64, [2, 3]), torch.device("cpu"))(numbers)
    assert kept.data_ptr() == numbers.ctypes.data
