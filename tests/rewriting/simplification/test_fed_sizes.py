"""Fed integers that shapes follow from are known to the plan; others are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.client import planning
from flowstone.rewriting.simplification.fed_sizes import acting_as_sizes, size_value
from flowstone.runtime.plans import plans_by_shape

INT32, INT64 = tf.int32, tf.int64


def found(feeds: list[Any], *fetches: Any) -> tuple[int, ...]:
    return acting_as_sizes(fetches, (), feeds)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The shapes and values of all plans that are made, in order."""
    made, make_plan = [], planning.make_plan

    def noted(fetches: Any, targets: Any, feeds: Any, options: Any) -> Any:
        made.append(options.feed_dims)
        return make_plan(fetches, targets, feeds, options)

    monkeypatch.setattr(planning, "make_plan", noted)
    return made


def _zero_state(n: Any) -> Any:
    return tf.nn.rnn_cell.LSTMCell(3).zero_state(n, tf.float32)[0]


def _of_array(n: Any) -> Any:
    return tf.TensorArray(tf.float32, n, element_shape=[2]).unstack(tf.zeros([4, 2])).stack()


@pytest.mark.parametrize(
    "use",
    [
        lambda n: tf.fill([n, 3], 1.0),
        lambda n: tf.zeros([2, n * 2]),
        lambda n: tf.reshape(tf.range(12), [n, -1]),
        lambda n: tf.range(n),
        lambda n: tf.one_hot([1, 2], n),
        lambda n: tf.sequence_mask([1, 2], n),
        lambda n: tf.tile(tf.ones([1, 2]), [n, 1]),
        lambda n: tf.random_normal([n, 4]),
        lambda n: tf.cast(tf.fill([tf.cast(n, tf.int64)], 2), tf.float32),
        lambda n: tf.scatter_nd([[0]], [1.0], [n]),
        lambda n: tf.broadcast_to(1.0, tf.concat([[n], [2]], 0)),
        _zero_state,
    ],
)
def test_a_scalar_that_shapes_follow_from_acts_as_a_size(use: Callable[[Any], Any]) -> None:
    n = tf.placeholder(tf.int32, [])
    assert found([n], use(n)) == (0,)
    unknown = tf.placeholder(tf.int32)
    assert found([unknown], tf.fill([unknown, 3], 1.0)) == (0,)


@pytest.mark.parametrize("dims", [[2], [None]])
def test_a_vector_that_shapes_follow_from_acts_as_sizes(dims: list[int | None]) -> None:
    x, sizes = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, dims)
    assert found([x, sizes], tf.reshape(x, sizes)) == (1,)
    at, values, shape = (
        tf.placeholder(tf.int64, [None, 2]),
        tf.placeholder(tf.float32, [None]),
        tf.placeholder(tf.int64, dims),
    )
    sparse = tf.SparseTensor(at, values, shape)
    product = tf.sparse_tensor_dense_matmul(sparse, tf.ones([5, 4]))
    assert found([at, values, shape], product) == (2,)
    assert found([at, values, shape], tf.sparse_tensor_to_dense(sparse)) == (2,)


@pytest.mark.parametrize(
    "use",
    [
        lambda n: tf.cast(n, tf.float32) * 0.1,
        lambda n: tf.ones([9, 2])[n],
        lambda n: tf.ones([90, 2])[n * 8 : (n + 1) * 8],
        lambda n: tf.gather(tf.ones([9, 2]), n),
        lambda n: tf.one_hot(n, 9),
        lambda n: tf.cond(n > 3, lambda: tf.ones([2]), lambda: tf.zeros([2])),
        lambda n: tf.while_loop(lambda i: i < n, lambda i: i + 1, [0]),
        lambda n: tf.train.exponential_decay(0.1, n, 100, 0.9),
    ],
)
def test_a_number_that_no_shape_follows_from_is_none(use: Callable[[Any], Any]) -> None:
    n = tf.placeholder(tf.int32, [])
    assert found([n], use(n)) == ()


def test_labels_lengths_and_what_is_not_asked_are_no_sizes() -> None:
    labels, x = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None, 4])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
    assert found([labels, x], tf.reduce_mean(loss)) == ()
    lengths = tf.placeholder(tf.int32, [None])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(3), tf.ones([2, 5, 3]), lengths, dtype=tf.float32)
    assert found([lengths], outputs) == ()
    n = tf.placeholder(tf.int32, [])
    assert found([n, x], x + 1) == ()


def test_only_a_few_numbers_not_below_0_are_sizes() -> None:
    assert size_value(np.int32(4).reshape(())) == (4,)
    assert size_value(np.array([3, 0])) == (3, 0)
    assert size_value(np.array([], np.int32)) == ()
    assert size_value(np.array([3, -1])) is None
    assert size_value(np.arange(9)) is None
    assert size_value(np.array(2.7)) is None
    assert size_value(np.ones((1, 1), np.int32)) is None


def test_the_plan_knows_what_follows_from_fed_sizes() -> None:
    x, n = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [])
    y = tf.reshape(x, [n, 2, -1]) + tf.ones([n, 2, 1])
    with tf.Session() as s:
        text = s.explain(tf.shape(y), {x: np.ones((6, 4)), n: 6})
        assert "value=[6,2,2]" in text
        assert "Reshape" not in text.split("\n\n")[1]
        np.testing.assert_array_equal(s.run(y, {x: np.ones((6, 4)), n: 6}), np.full((6, 2, 2), 2.0))


def sparse_program() -> tuple[Any, list[Any], Any]:
    """A factorization machine's training step, with its sparse rows and targets."""
    rows, y = tf.sparse_placeholder(tf.float32, [None, 9]), tf.placeholder(tf.float32, [None, 1])
    w = tf.Variable(np.linspace(-1, 1, 9).reshape(9, 1).astype("f"))
    v = tf.Variable(np.linspace(-1, 1, 27).reshape(9, 3).astype("f"))
    squares = tf.SparseTensor(rows.indices, rows.values**2, rows.dense_shape)
    product = tf.sparse_tensor_dense_matmul(rows, v) ** 2 - tf.sparse_tensor_dense_matmul(squares, v**2)
    found = tf.sparse_tensor_dense_matmul(rows, w) + 0.5 * tf.reduce_sum(product, 1, keepdims=True)
    loss = tf.reduce_mean(tf.square(y - found))
    return rows, [loss, tf.train.AdagradOptimizer(0.1).minimize(loss)], y


def sparse_feeds(rows: Any, y: Any, n: int, seed: int) -> dict[Any, Any]:
    numbers = np.random.RandomState(seed)
    at = np.array([(i, j) for i in range(n) for j in sorted(numbers.choice(9, 3, False))], np.int64)
    return {rows: (at.reshape(-1, 2), numbers.rand(len(at)), [n, 9]), y: numbers.rand(n, 1)}


def test_training_on_sparse_rows_is_the_same_with_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = []
    for values in (8, -1):
        monkeypatch.setattr(plans_by_shape, "MOST_VALUES", values)
        with tf.Graph().as_default(), tf.Session() as s:
            rows, fetches, y = sparse_program()
            s.run(tf.global_variables_initializer())
            batches = [4, 4, 3, 4, 1, 0, 5, 4, 3, 6, 6, 0]
            steps = [s.run(fetches, sparse_feeds(rows, y, n, i)) for i, n in enumerate(batches)]
            losses.append([loss for loss, _ in steps])
            (plans,) = [p for p in s.planner.plans_by_shape.values() if p._feeds == 4]
            assert plans.looks_at_values == (values > 0)
    np.testing.assert_allclose(losses[0], losses[1], rtol=2e-5)


def test_a_training_step_on_sparse_rows_computes_no_shapes() -> None:
    rows, fetches, y = sparse_program()
    with tf.Session() as s:
        text = s.explain(fetches, sparse_feeds(rows, y, 4, 1))
    graph = text.split("\n\n")[1]
    assert "BroadcastGradientArgs" not in graph
    assert "Shape(" not in graph


def test_sizes_that_go_with_shapes_have_one_wide_plan(planned: list[Any]) -> None:
    x, n = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32, [])
    y = tf.reduce_sum(x + tf.ones([n, 3]), 1)
    with tf.Session() as s:
        for size in (2, 3, 4, 5, 6, 7, 5, 4):
            assert s.run(y, {x: np.ones((size, 3)), n: size}).tolist() == [6] * size
        assert planned[:3] == [((2, 3), (), (2,)), ((3, 3), (), (3,)), ((-1, 3), (), (-1,))]
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.run(y, {x: np.ones((4, 3)), n: 5})
        assert s.run(y, {x: np.ones((4, 3)), n: 1}).tolist() == [6] * 4


def test_a_size_of_many_values_has_one_plan(planned: list[Any]) -> None:
    n = tf.placeholder(tf.int32, [])
    y = tf.range(n)
    with tf.Session() as s:
        for size in range(40):
            assert s.run(y, {n: size}).tolist() == list(range(size))
            assert s.run(y, {n: 5}).tolist() == list(range(5))
        s.planner.wait()
    assert len(planned) < 8


def test_negative_sizes_other_shapes_and_errors_are_the_steps() -> None:
    x, sizes = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32)
    y = tf.reshape(x, sizes)
    with tf.Session() as s:
        for shape in ([2, 3], [-1, 3], [3, -1], [6], [1, 2, 3, 1], [2, 3]):
            assert s.run(y, {x: np.arange(6), sizes: shape}).shape == np.arange(6).reshape(shape).shape
        with pytest.raises(tf.errors.InvalidArgumentError, match="Reshape"):
            s.run(y, {x: np.arange(6), sizes: [4, 2]})
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.run(y, {x: np.arange(6), sizes: 6.0 * np.ones((1, 1))})
        assert s.run(y, {x: np.arange(6), sizes: [3, 2]}).shape == (3, 2)


def test_fed_sizes_are_fetched_as_they_are_fed() -> None:
    n = tf.placeholder(tf.int64, [])
    with tf.Session() as s:
        assert s.run(tf.zeros([n]), {n: np.array(2.7)}).shape == s.run(tf.zeros([n]), {n: 2}).shape
        for size in (3, 4, 3, 5):
            fetched, twice, zeros = s.run([n, 2 * n, tf.zeros([n])], {n: size})
            assert (fetched, twice, zeros.shape) == (size, 2 * size, (size,))


def test_a_batch_size_is_known_in_a_loop() -> None:
    x, n = tf.placeholder(tf.float32, [None, None, 2]), tf.placeholder(tf.int32, [])
    cell = tf.nn.rnn_cell.GRUCell(3)
    outputs, _ = tf.nn.dynamic_rnn(cell, x, initial_state=cell.zero_state(n, tf.float32))
    loss = tf.reduce_sum(outputs**2)
    gradient = tf.gradients(loss, tf.trainable_variables()[0])[0]
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        for batch, time in [(2, 3), (4, 3), (2, 5), (1, 4), (3, 6), (3, 2)]:
            value = np.random.RandomState(batch).randn(batch, time, 2)
            rows = [s.run(gradient, {x: value[i : i + 1], n: 1}) for i in range(batch)]
            np.testing.assert_allclose(s.run(gradient, {x: value, n: batch}), sum(rows), 1e-4, 1e-5)
