"""Steps that take elements of datasets and queues run in two: the elements, then the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.client.arriving_elements import arriving
from flowstone.client.feeds_fetches import FetchStructure


def batches(*sizes: int) -> Any:
    """A dataset of batches of so many rows of four numbers."""
    values = [np.full([size, 4], size, np.float32) for size in sizes]
    return tf.data.Dataset.from_generator(lambda: values, tf.float32, [None, 4])


def arrival(fetches: Any, feeds: Any = ()) -> Any:
    return arriving(FetchStructure(tf.get_default_graph(), fetches), list(feeds))


def plans(session: tf.Session) -> list[Any]:
    """The shapes of the elements that there are special plans for."""
    return [shapes for each in session.planner.plans_by_shape.values() for shapes in each._special]


def test_elements_have_plans_for_their_shapes() -> None:
    x = batches(3, 3, 5, 3).make_one_shot_iterator().get_next()
    total = tf.reduce_sum(tf.nn.relu(x) * 2.0)
    with tf.Session() as session:
        assert [session.run(total) for _ in range(4)] == [72.0, 72.0, 200.0, 72.0]
        with pytest.raises(tf.errors.OutOfRangeError) as caught:
            session.run(total)
        assert plans(session) == [((3, 4),), ((5, 4),)]
    assert caught.value.op is x.op


def test_an_element_is_taken_once_for_all_that_is_made_of_it() -> None:
    x, y = tf.data.Dataset.range(12).map(lambda i: (i, -i)).batch(4).make_one_shot_iterator().get_next()
    v = tf.Variable(0, dtype=tf.int64)
    update = v.assign_add(tf.reduce_sum(x))
    with tf.Session() as session:
        session.run(v.initializer)
        for start in (0, 4, 8):
            found = session.run({"x": x, "y": y * 2, "update": update.op})
            assert found["x"].tolist() == list(range(start, start + 4))
            assert found["y"].tolist() == [-2 * i for i in range(start, start + 4)]
        assert session.run(v) == 66


def test_what_is_fetched_is_the_callers_own() -> None:
    x = tf.data.Dataset.from_tensor_slices(np.ones([2, 3])).batch(2).cache().repeat().make_one_shot_iterator()
    x = x.get_next()
    with tf.Session() as session:
        first, _ = session.run([x, x + 1])
        first[:] = 7
        assert session.run([x, x + 1])[0].tolist() == np.ones([2, 3]).tolist()


@pytest.mark.parametrize("padding", [False, True])
def test_queues(padding: bool) -> None:
    shapes = [[None]] if padding else None
    queue = tf.PaddingFIFOQueue(9, [tf.float32], shapes) if padding else tf.FIFOQueue(9, [tf.float32])
    x = queue.dequeue_up_to(2) if padding else queue.dequeue()
    fed = tf.placeholder(tf.float32)
    enqueue, total, close = queue.enqueue([fed]), tf.reduce_sum(x), queue.close()
    with tf.Session() as session:
        for size in (2, 3, 4):
            session.run(enqueue, {fed: np.ones([size], np.float32)})
        session.run(close)
        found = [session.run(total) for _ in range(2 if padding else 3)]
        assert found == ([5.0, 4.0] if padding else [2.0, 3.0, 4.0])
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(total)


def test_feeds_choose_the_iterator_and_go_on() -> None:
    handle, scale = tf.placeholder(tf.string, []), tf.placeholder(tf.float32, [])
    made = [batches(2, 3).make_one_shot_iterator(), batches(4).make_one_shot_iterator()]
    x = tf.data.Iterator.from_string_handle(handle, tf.float32, [None, 4]).get_next()
    total = tf.reduce_sum(x * scale)
    assert arrival([total], [handle, scale]).feeds == [handle]
    with tf.Session() as session:
        handles = session.run([each.string_handle() for each in made])
        assert session.run(total, {handle: handles[0], scale: 2.0}) == 32.0
        with pytest.raises(ValueError, match="Cannot feed value of shape"):  # takes no element
            session.run(total, {handle: handles[0], scale: [2.0, 1.0]})
        assert session.run(total, {scale: 1.0, handle: handles[1]}) == 64.0
        assert session.run(total, {handle: handles[0], scale: 1.0}) == 36.0


def test_training_is_that_of_fed_batches() -> None:
    rows = np.random.RandomState(0).randn(10, 4).astype(np.float32)

    def losses(from_dataset: bool) -> list[float]:
        with tf.Graph().as_default(), tf.Session() as session:
            data = tf.data.Dataset.from_tensor_slices(rows).repeat().batch(4)
            x = data.make_one_shot_iterator().get_next()
            w = tf.Variable(np.ones([4, 1], np.float32))
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
            train = tf.train.AdamOptimizer(0.1).minimize(loss)
            session.run(tf.global_variables_initializer())
            found = []
            for i in range(8):
                batch = np.take(rows, range(4 * i, 4 * i + 4), 0, mode="wrap")
                found.append(session.run([loss, train], None if from_dataset else {x: batch})[0])
            return found

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-6)


def waited_for() -> Any:
    x = batches(2).make_one_shot_iterator().get_next()
    with tf.control_dependencies([x]):
        return [tf.constant(1.0) + 0.0]


def in_branch() -> Any:
    iterator = batches(2).make_one_shot_iterator()
    return [tf.cond(tf.placeholder_with_default(True, []), iterator.get_next, lambda: tf.zeros([1, 4]))]


def put_elsewhere() -> Any:
    queue = tf.FIFOQueue(3, [tf.float32])
    return [queue.enqueue([batches(2).make_one_shot_iterator().get_next()])]


def taken_for_its_own_sake() -> Any:
    x = batches(2).make_one_shot_iterator().get_next()
    return [x + 1, x.op]


def drawn_for_both() -> Any:
    n = tf.random_uniform([], 1, 3, tf.int32, seed=1)
    queue = tf.FIFOQueue(3, [tf.float32], [[]])
    return [queue.dequeue_many(n), n]


def known_shapes() -> Any:
    data = tf.data.Dataset.range(4).batch(2, drop_remainder=True)
    return [data.make_one_shot_iterator().get_next() * 2]


def nothing_made_of_it() -> Any:
    return [batches(2).make_one_shot_iterator().get_next()]


WHOLE = [
    waited_for, in_branch, put_elsewhere, taken_for_its_own_sake, drawn_for_both, known_shapes,
    nothing_made_of_it,
]  # fmt: skip


@pytest.mark.parametrize("make", WHOLE)
def test_steps_that_stay_whole(make: Callable[[], Any]) -> None:
    assert arrival(make()) is None


def test_what_is_fed_does_not_arrive() -> None:
    x = batches(2).make_one_shot_iterator().get_next()
    assert arrival([x * 2], [x]) is None
    with tf.Session() as session:
        assert session.run(x * 2, {x: np.ones([1, 4])}).tolist() == [[2.0] * 4]


def test_it_is_explained_in_both_parts() -> None:
    x = batches(*[3] * 40).make_one_shot_iterator().get_next()
    y = tf.nn.relu(x) + 1.0
    with tf.Session() as session:
        session.run(y)
        text = session.explain(y)
        assert "IteratorGetNext" in text and "float32[3,4]" in text
        assert "Relu" in session.explain(y, measure=True, steps=2)


def test_what_functions_of_python_give_has_plans_for_its_shapes() -> None:
    sizes = iter([3, 3, 5])
    x = tf.py_func(lambda: np.ones([next(sizes), 4], np.float32), [], tf.float32)
    x.set_shape([None, 4])
    total = tf.reduce_sum(tf.nn.relu(x) * 2.0)
    with tf.Session() as session:
        assert [session.run(total) for _ in range(3)] == [24.0, 24.0, 40.0]
        with pytest.raises(tf.errors.OutOfRangeError, match="StopIteration"):
            session.run(total)
        assert plans(session) == [((3, 4),), ((5, 4),)]


def test_a_function_of_python_within_a_model_leaves_the_step_whole() -> None:
    calls: list[int] = []
    x = tf.placeholder(tf.float32, [None, 4])
    hidden = tf.nn.relu(x)
    chosen = tf.py_func(lambda values: calls.append(1) or values[:2], [hidden], tf.float32)
    result = tf.reduce_sum(chosen) + tf.reduce_sum(hidden)
    assert arrival(result, [x]) is None
    with tf.Session() as session:
        assert session.run(result, {x: np.ones([3, 4])}) == 20.0
    assert calls == [1]
