"""`tf.GradientTape`: values and refusals are those of TensorFlow 1.15, unless a test says otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

ZERO = tf.UnconnectedGradients.ZERO


def value(fetches: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def variable(initial: Any, **options: Any) -> Any:
    return tf.Variable(initial, use_resource=True, **options)


# ---- what counts: programs of a tape and x = 2, and d result / d x


def added_before(tape: Any, x: Any, before: Any) -> Any:
    tape.watch(x)
    return before * x


def watched_later(tape: Any, x: Any, before: Any) -> Any:
    square = x * x
    tape.watch(x)
    return square * x


def not_watched(tape: Any, x: Any, before: Any) -> Any:
    other = tf.constant(1.0)
    tape.watch(other)
    return x * other


def not_recorded(tape: Any, x: Any, before: Any) -> Any:
    tape.watch(x)
    square = x * x
    with tape.stop_recording():
        cube = x * square
    return cube * square


def not_recorded_by_any(tape: Any, x: Any, before: Any) -> Any:
    from flowstone.compat.internals.eager_tape import stop_recording

    tape.watch(x)
    with stop_recording():
        square = x * x
    return square * x


def forgotten(tape: Any, x: Any, before: Any) -> Any:
    tape.watch(x)
    square = x * x
    tape.reset()
    tape.watch(x)
    return square * x


def of_another_thread(tape: Any, x: Any, before: Any) -> Any:
    tape.watch(x)
    results = []
    thread = threading.Thread(target=lambda: results.append(x * x))
    thread.start()
    thread.join()
    return results[0] * x


def with_gradients_inside(tape: Any, x: Any, before: Any) -> Any:
    tape.watch(x)
    return tf.gradients(x**3, x)[0]


def of_a_custom_gradient(tape: Any, x: Any, before: Any) -> Any:
    tape.watch(x)
    return tf.custom_gradient(lambda a: (a * 2, lambda dy: dy * 100))(x) * x


def through_a_loop(tape: Any, x: Any, before: Any) -> Any:  # which TensorFlow 1.15 refuses
    tape.watch(x)
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, before])[1]


def through_a_condition(tape: Any, x: Any, before: Any) -> Any:  # which TensorFlow 1.15 refuses
    tape.watch(x)
    return tf.cond(x > 1, lambda: before * x * x, lambda: x)


def through_a_function(tape: Any, x: Any, before: Any) -> Any:
    tape.watch(x)
    return tf.function(lambda a: a * a * before)(x)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (added_before, 4.0),
        (watched_later, 4.0),
        (not_watched, None),
        (not_recorded, 32.0),
        (not_recorded_by_any, 4.0),
        (forgotten, 4.0),
        (of_another_thread, 4.0),
        (with_gradients_inside, 12.0),
        (of_a_custom_gradient, 204.0),
        (through_a_loop, 3 * 4.0 * 4.0),
        (through_a_condition, 16.0),
        (through_a_function, 16.0),
    ],
)
def test_what_counts(program: Callable[..., Any], expected: float | None) -> None:
    x = tf.constant(2.0)
    before = x * x
    with tf.GradientTape() as tape:
        result = program(tape, x, before)
    found = tape.gradient(result, x)
    assert found is None if expected is None else value(found) == expected


def test_structures_and_gradients_of_results() -> None:
    x, y, unused = tf.constant([3.0, 4.0]), tf.constant(2.0), tf.constant([1.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, {"y": y}])
        square, product = x * x, x * y
    found = tape.gradient({"a": square, "b": [product]}, {"x": x, "rest": [y, (unused,)]})
    assert found["rest"][1] == (None,)
    np.testing.assert_array_equal(value(found["x"]), [8, 10])
    assert value(found["rest"][0]) == 7
    given = tape.gradient([square, product], x, output_gradients=[tf.constant([1.0, 2.0]), None])
    np.testing.assert_array_equal(value(given), [8, 18])
    zeros = tape.gradient(square, [y, unused, variable([1.0, 2.0])], unconnected_gradients=ZERO)
    assert [each.tolist() for each in value(zeros)] == [0.0, [0.0, 0.0], [0.0, 0.0]]
    np.testing.assert_array_equal(value(tape.gradient([x, square], x)), [7, 9])


def test_types_that_have_no_gradient() -> None:
    x, whole, turned = tf.constant(3.0), tf.constant(2), tf.constant(2 + 1j)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, whole, turned])
        square, cast = x * x * tf.cast(whole, tf.float32), tf.cast(x, tf.int32)
        complex_square = turned * turned
    assert tape.gradient(square, whole) is None and tape.gradient(cast, x) is None
    assert value(tape.gradient(complex_square, turned)) == 4 - 2j


# ---- variables


def test_variables_are_watched_when_they_are_read() -> None:
    read, unread, fixed = variable(3.0), variable(1.0), variable(2.0, trainable=False)
    rows = variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        made = variable(1.0)
        added = read.assign_add(1.0)
        result = added * read * fixed + tf.reduce_sum(tf.nn.embedding_lookup(rows, [1, 1]))
    assert tape.watched_variables() == (read, rows)
    assert tape.watched_variables()[0] is read
    by_read, by_rows, *others = tape.gradient(result, [read, rows, unread, fixed, made])
    assert others == [None, None, None]
    assert isinstance(by_rows, tf.IndexedSlices) and by_read is not None
    tf.train.AdamOptimizer().apply_gradients([(by_read, read), (by_rows, rows)])
    assert tape.watched_variables() == (read, rows)  # TensorFlow 1.15 has forgotten them by now


def test_variables_are_watched_by_hand_only() -> None:
    first, second = variable(3.0), variable(2.0, trainable=False)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(second)
        result = first * second
    assert tape.watched_variables() == (second,)
    by_first, by_second = tape.gradient(result, [first, second])
    assert by_first is None and value(by_second) == 3


@pytest.mark.parametrize("options", [{}, {"caching_device": "/cpu:0", "use_resource": True}])
def test_variables_with_one_read_for_all(options: Any) -> None:
    """Such as reference variables, which the tape of TensorFlow 1.15 cannot differentiate by."""
    v = tf.get_variable("v", [], initializer=tf.constant_initializer(3.0), **options)
    with tf.GradientTape() as tape:
        result = v * v
    assert tape.watched_variables() == (v,)
    assert value(tape.gradient(result, v)) == 6


def test_a_variable_as_target() -> None:
    v = variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        assert value(tape.gradient(v, v)) == 1
    assert value(tape.gradient(v, v)) == 1


def test_variables_of_functions() -> None:
    v, x = variable(3.0), tf.constant(2.0)
    scaled = tf.function(lambda a: a * a * v)
    scaled(x)  # traced before the tape
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = scaled(x)
    assert tape.watched_variables() == (v,)
    np.testing.assert_array_equal(value(tape.gradient(result, [x, v])), [12, 4])

    @tf.function
    def inner(a: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([a, x])
            result = a
            for _ in tf.range(3):
                result *= a * v * x
        return tape.gradient(result, [a, v, x])

    by_a, by_v, by_x = value(inner(tf.constant(1.0)))  # a ** 4 * v ** 3 * x ** 3
    assert (by_a, by_v, by_x) == (4 * 216, 3 * 216 / 3, 3 * 216 / 2)


@pytest.mark.parametrize(
    "inside",
    [
        lambda f, x: tf.cond(x > 1, lambda: f(x), lambda: x),
        lambda f, x: tf.while_loop(lambda i, a: i < 1, lambda i, a: (i + 1, f(a)), [0, x])[1],
        lambda f, x: tf.map_fn(f, tf.stack([x]))[0],
    ],
)
def test_tapes_in_control_flow(inside: Any) -> None:
    def slope(a: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(a)
            result = a * a * a
        return tape.gradient(result, a)

    assert value(inside(slope, tf.constant(2.0))) == 12


# ---- tapes that are used again, and in each other


def test_a_second_use_is_refused() -> None:
    x = tf.constant([3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = x * x
        tape.gradient(result, x)
    for again in (tape.gradient, tape.jacobian):
        with pytest.raises(RuntimeError, match="can only be called once on non-persistent tapes"):
            again(result, x)


def test_persistent_tapes() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        square = x * x
        slope = tape.gradient(square, x)
        curve = tape.gradient(slope, x)
    outside = square * x
    with tape:
        again = square * x
    assert tape.gradient(outside, x) is None
    assert value([curve, tape.gradient(again, x), tape.gradient(square, x)]) == [2, 27, 6]


def test_nested_tapes() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            cube = x * x * x
        slope = inner.gradient(cube, x)
    assert value(outer.gradient(slope, x)) == 18


def test_an_error_closes_the_tape() -> None:
    with pytest.raises(KeyError), tf.GradientTape() as tape:
        raise KeyError
    with tape:
        pass


@pytest.mark.parametrize(
    ("message", "use"),
    [
        ("Tape is already recording", lambda tape, x: tape.__enter__() and tape.__enter__()),
        ("Tape is not recording", lambda tape, x: tape.reset()),
        ("Tape is not recording", lambda tape, x: tape.stop_recording().__enter__()),
        ("Tape is not recording", lambda tape, x: tf.GradientTape().watch(x)),
        ("Passed in object of type <class 'float'>, not tf.Tensor", lambda tape, x: tape.watch(3.0)),
        ("Passed in object of type <class 'NoneType'>", lambda tape, x: tape.gradient(None, x)),
        ("Passed in object of type <class 'float'>", lambda tape, x: tape.gradient(x, [3.0])),
        ("Unknown value for unconnected_gradients: 'x'", lambda tape, x: tape.gradient(x, x, None, "x")),
        ("Length mismatch", lambda tape, x: tape.gradient([x, x], x, [x])),
        ("must have rank at least 2", lambda tape, x: tape.batch_jacobian(x, x)),
        (
            r"Need first dimension of target shape \(\(2, 1\)\) and source shape \(\(1, 2\)\) to match",
            lambda tape, x: tape.batch_jacobian(tf.ones([2, 1]), tf.ones([1, 2])),
        ),
    ],
)
def test_refusals(message: str, use: Callable[..., Any]) -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
    opened = len(tf.framework.tensors.scope.recordings.items)
    try:
        with pytest.raises(ValueError, match=message):
            use(tape, x)
    finally:
        del tf.framework.tensors.scope.recordings.items[opened:]


# ---- Jacobians

MATRIX = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


@pytest.mark.parametrize("shape", [[2, 2], [None, 2], None])
@pytest.mark.parametrize("use_pfor", [True, False])
def test_jacobians(shape: Any, use_pfor: bool) -> None:
    x, v = tf.placeholder_with_default(MATRIX, shape), variable([1.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        result = x * x * v
    by_x, (by_v, none) = tape.jacobian(result, [x, (v, tf.constant(1.0))], experimental_use_pfor=use_pfor)
    assert none is None
    found, found_by_v = value([by_x, by_v])
    np.testing.assert_array_equal(found.reshape(4, 4), np.diag(2 * MATRIX.ravel()))
    np.testing.assert_array_equal(found_by_v, MATRIX[:, :, None] ** 2 * np.eye(2))
    batch = tape.batch_jacobian(result, x, experimental_use_pfor=use_pfor)
    assert shape is None or batch.shape.as_list() == [*shape, 2]
    np.testing.assert_array_equal(value(batch), 2 * MATRIX[:, :, None] * np.eye(2))
    without = tape.batch_jacobian(result, tf.identity(x))
    np.testing.assert_array_equal(value(without), np.zeros([2, 2, 2]))


def test_jacobians_of_gradients_and_gradients_of_jacobians() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            cubes = x * x * x
        slopes, jacobian = inner.gradient(cubes, x), inner.jacobian(cubes, x)
    np.testing.assert_array_equal(value(outer.jacobian(slopes, x)), [[6, 0], [0, 12]])
    np.testing.assert_array_equal(value(outer.gradient(jacobian, x)), [6, 12])
