"""`tf.py_function`: functions that compute with operations on values. The values are TensorFlow 1.15's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.compat.behaviour import executing_eagerly

LONGS, FLOAT = [1.0, 2.0, 3.0], tf.float32


def value(function: Callable[..., Any], x: Any = LONGS, out: Any = FLOAT) -> Any:
    """The result of the function of one value."""
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.py_function(function, [tf.constant(x)], out))


def slope(function: Callable[..., Any], x: Any = LONGS) -> Any:
    """The gradient of the sum of the function's results."""
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.constant(x)
        return session.run(tf.gradients(tf.py_function(function, [given], FLOAT), given)[0])


def doubled(x: Any) -> Any:
    written = tf.TensorArray(FLOAT, size=0, dynamic_size=True)
    for i in range(3):
        written = written.write(i, x[i] * 2)
    return written.stack()


def grown(x: Any) -> Any:
    y = x
    for _ in range(3):
        y = y * x
    while tf.reduce_sum(y) < 100.0:
        y = y * 2.0
    return y


def slope_inside(x: Any) -> Any:
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        square = x * x
        cube = square * x
    return tape.gradient(cube, x) + tape.gradient(square, x)


def after(x: Any) -> Any:
    with tf.control_dependencies([x * 2]):
        return tf.identity(x)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: tf.reduce_sum(tf.square(x) + 1.0), 17),
        (lambda x: np.sum(x.numpy()), 6),
        (lambda x: tf.cond(x[0] > 0, lambda: x * 2, lambda: x), [2, 4, 6]),
        (lambda x: tf.cond(True, lambda: [x * 2], lambda: [x]), [2, 4, 6]),
        (lambda x: tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), [0, x])[1], [8, 16, 24]),
        (lambda x: tf.while_loop(lambda a: a[0] < 9, lambda a: a * 2, [x]), [16, 32, 48]),
        (lambda x: tf.while_loop(lambda a: a[0] < 9, lambda a: a * 2, [x], maximum_iterations=2), [4, 8, 12]),
        (lambda x: tf.map_fn(lambda v: v * v, x), [1, 4, 9]),
        (lambda x: tf.scan(lambda a, b: a + b, x), [1, 3, 6]),
        (lambda x: tf.case([(x[0] > 5, lambda: x), (x[1] > 1, lambda: x * 3)], lambda: -x), [3, 6, 9]),
        (doubled, [2, 4, 6]),
        (after, LONGS),
        (slope_inside, [5, 16, 33]),
        (lambda x: (tf.debugging.assert_positive(x), x)[1], LONGS),
        (lambda x: tf.py_function(lambda y: y * 2, [x], FLOAT) + 1, [3, 5, 7]),
        (lambda x: tf.py_func(lambda y: y * 2, [x], FLOAT) + 1, [3, 5, 7]),
        (lambda x: tf.stack([v + 1 for v in x]), [2, 3, 4]),
        (lambda x: np.ones(3, np.float32) + x, [2, 3, 4]),
        (lambda x: np.concatenate([x, x]), LONGS * 2),
        (lambda x: x.numpy().astype(np.float64), LONGS),
        (lambda x: sum(float(v) for v in x), 6),
        (lambda x: tf.boolean_mask(x, x > 1.5), [2, 3]),
        (lambda x: tf.reshape(x, [tf.shape(x)[0], -1]), [[1], [2], [3]]),
        (lambda x: tf.sparse.to_dense(tf.SparseTensor([[0], [2]], x[:2], [4])), [1, 0, 2, 0]),
        (lambda x: x + 0.0 * tf.random.uniform([3]), LONGS),
        (lambda x: x * len(x) * x.shape.as_list()[0] * x.ndim, [9, 18, 27]),
        (lambda x: [7.0, 8.0], 7),  # what is too much is left out
    ],
)
def test_a_function_computes_with_operations(function: Any, expected: Any) -> None:
    np.testing.assert_array_equal(value(function), np.float32(expected))


def test_values_are_those_of_eager_execution(tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.write_text("hello")
    assert value(lambda x: tf.strings.length(tf.io.read_file(x)), str(path), tf.int32) == 5
    assert value(lambda x: tf.strings.join([x, x]), "a", tf.string) == b"aa"
    assert value(lambda x: x.numpy().decode() + "b", "a", tf.string) == b"ab"
    assert value(lambda x: b",".join(x.numpy()), ["a", "b"], tf.string) == b"a,b"
    assert value(lambda x: f"{x:d} {x.numpy()}", 1, tf.string) == b"1 1"
    assert value(lambda x: [1, 2, 3][x], 1, tf.int32) == 2
    assert value(lambda x: list(range(x)), 3, [tf.int32] * 3) == [0, 1, 2]
    assert value(lambda x: bool(x > 0), 1.0, tf.bool) and value(lambda x: (x == x) is True, 1.0, tf.bool)
    assert value(lambda x: executing_eagerly(), 1.0, tf.bool) and not executing_eagerly()
    shown = value(lambda x: f"{x!r}|{x!s}", [1.0, 2.0], tf.string).decode()
    assert shown.startswith("<tf.Tensor: id=") and shown.endswith(
        "shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>|"
        "tf.Tensor([1. 2.], shape=(2,), dtype=float32)"
    )


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: tf.square(x) * 3.0, [6, 12, 18]),
        (grown, [8, 64, 216]),
        (doubled, [2, 2, 2]),
        (slope_inside, [8, 14, 20]),
        (lambda x: tf.map_fn(lambda v: v * v * v, x), [3, 12, 27]),
        (lambda x: x * tf.stop_gradient(x), LONGS),
        (lambda x: tf.nn.embedding_lookup(x, [0, 2, 2]), [1, 0, 2]),
        (lambda x: x.numpy() * 2, [0, 0, 0]),
    ],
)
def test_gradients_pass_through_the_operations(function: Any, expected: Any) -> None:
    np.testing.assert_array_equal(slope(function), np.float32(expected))


def log_huber(x: Any, m: Any) -> Any:
    if tf.abs(x) <= m:
        return x**2
    return m**2 * (1 - 2 * tf.math.log(m) + tf.math.log(x**2))


def test_each_step_differentiates_its_own_branch() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, m = tf.placeholder(FLOAT), tf.placeholder(FLOAT)
        y = tf.py_function(func=log_huber, inp=[x, m], Tout=FLOAT)
        dy = tf.gradients(y, x)[0]
        np.testing.assert_allclose(session.run([y, dy], {x: 1, m: 2}), [1, 2])
        np.testing.assert_allclose(session.run([y, dy], {x: 3, m: 2}), [7.243721, 2.6666667])


def test_several_inputs_and_results() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, w, i = tf.constant([1.0, 2.0]), tf.constant(3.0), tf.constant([0, 1])
        y, z = tf.py_function(lambda x, w, i: (tf.square(x) * w, tf.gather(x, i) * w), [x, w, i], [FLOAT] * 2)
        assert y.shape.ndims is None
        dx, dw, di = tf.gradients([y, z], [x, w, i])
        assert di is None
        np.testing.assert_array_equal(session.run(dx), [9, 15])
        assert session.run(dw) == 8 and session.run(tf.gradients(z, w)[0]) == 3
        assert tf.gradients(dx, x) == [None]  # as there


def test_gradients_in_loops_and_threads() -> None:
    """The calls of a step are differentiated the last first, and those of other steps do not matter."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(FLOAT, [])

        def body(i: Any, a: Any) -> Any:
            return i + 1, tf.ensure_shape(tf.py_function(lambda a: a * a, [a], FLOAT), [])

        y = tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]
        gradient = tf.gradients(y, x)[0]
        found: dict[int, set[float]] = {}

        def work(i: int) -> None:
            found[i] = {float(session.run(gradient, {x: i})) for _ in range(5)}

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {i: {8.0 * i**7} for i in range(4)}


def test_it_trains_and_maps_datasets() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=2.0)
        y = tf.py_function(lambda w: tf.square(w - 5.0), [v], FLOAT)
        y.set_shape([])
        train = tf.train.GradientDescentOptimizer(0.1).minimize(y)
        session.run(tf.global_variables_initializer())
        for _ in range(30):
            session.run(train)
        assert session.run(v) == pytest.approx(4.9962864)
        rows = tf.data.Dataset.range(3).map(lambda x: tf.py_function(lambda v: v * v + 1, [x], tf.int64))
        following = rows.make_one_shot_iterator().get_next()
        assert [session.run(following) for _ in range(3)] == [1, 2, 5]
        assert session.run(tf.contrib.eager.py_func(lambda x: x * 2, [[1.0]], FLOAT)) == [2]


def test_values_outlive_their_call() -> None:
    kept: list[Any] = []
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.py_function(lambda x: (kept.append(x), tf.add_n(kept))[1], [tf.constant(LONGS)], FLOAT)
        session.run(y)
        np.testing.assert_array_equal(session.run(y), [2, 4, 6])


SEEDED_CALLS = 4


def test_random_numbers_go_on() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.py_function(lambda: tf.random.uniform([3], seed=4), [], FLOAT)
        drawn = np.array([session.run(y) for _ in range(SEEDED_CALLS)])
        assert len(np.unique(drawn)) == drawn.size


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (lambda x: 1 / 0, tf.errors.UnknownError, "ZeroDivisionError: division by zero"),
        (lambda x: int("x"), tf.errors.InvalidArgumentError, "ValueError: invalid literal"),
        (lambda x: x.astype("i"), tf.errors.UnknownError, "AttributeError: .*'EagerTensor'.* 'astype'"),
        (lambda x: tf.reshape(x, [7]), tf.errors.UnknownError, "InvalidArgumentError: .* 3 "),
        (lambda x: x[7], tf.errors.UnknownError, "InvalidArgumentError: slice index 7 of dimension 0"),
        (lambda x: None, tf.errors.InvalidArgumentError, "returns 0 values, but expects to see 1 values"),
        (lambda x: tf.cast(x, tf.float64), tf.errors.InvalidArgumentError, "requested dtype float32"),
        (lambda x: tf.debugging.assert_positive(-x), tf.errors.UnknownError, "InvalidArgumentError"),
        (lambda x: tf.placeholder(FLOAT), tf.errors.UnknownError, "not compatible with eager execution"),
        (lambda x: tf.Variable(x), tf.errors.UnimplementedError, "variable cannot be made inside"),
        (lambda x: x.eval(), tf.errors.UnimplementedError, "is .numpy"),
        (lambda x: tf.matmul(x[None], x[None]), tf.errors.UnknownError, "InvalidArgumentError"),
    ],
)
def test_errors(function: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        value(function)


def test_a_tensor_of_the_outer_graph_must_be_an_input() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        outside = tf.constant(3.0)
        y = tf.py_function(lambda x: x * outside, [tf.constant(1.0)], FLOAT)
        with pytest.raises(tf.errors.InvalidArgumentError, match="graph"):
            session.run(y)
