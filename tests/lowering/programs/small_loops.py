"""Programs with loops and conditionals on small arrays: what they compute, and from what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flowstone as tf

Made = tuple[Any, dict[Any, Any]]
PROGRAMS: dict[str, Callable[[], Made]] = {}


def program(make: Callable[[], Made]) -> Callable[[], Made]:
    """Registers a function that builds fetches and feeds."""
    PROGRAMS[make.__name__] = make
    return make


def numbers(*dims: int) -> Any:
    return np.asarray(np.random.RandomState(sum(dims)).rand(*dims), np.float32)


def fed(*dims: int) -> tuple[Any, dict[Any, Any]]:
    x = tf.placeholder(tf.float32, dims)
    return x, {x: numbers(*dims)}


@program
def newton() -> Made:
    a, feed = fed()
    x, _ = tf.while_loop(
        lambda x, i: tf.logical_and(i < 50, tf.abs(x * x - a) > 1e-6),
        lambda x, i: ((x + a / x) / 2, i + 1),
        [a, 0],
    )
    return [x, tf.gradients(x, a)[0]], feed


@program
def power_iteration() -> Made:
    m, feed = fed(10, 10)

    def body(i: Any, v: Any) -> Any:
        w = tf.matmul(m, v)
        return i + 1, w / tf.norm(w)

    v = tf.while_loop(lambda i, v: i < 20, body, [0, tf.ones([10, 1])])[1]
    return [v, tf.gradients(v[0, 0], m)[0]], feed


@program
def nested_loops_with_a_branch() -> Made:
    x, feed = fed()

    def outer(i: Any, a: Any) -> Any:
        _, b = tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b * 0.5 + 1.0), [0, a])
        return i + 1, tf.cond(b > 1.5, lambda: b - 1.0, lambda: b + 0.1)

    y = tf.while_loop(lambda i, a: i < 9, outer, [0, x])[1]
    return [y, tf.gradients(y, x)[0]], feed


@program
def collatz() -> Made:
    n = tf.placeholder(tf.int32, [])
    _, count = tf.while_loop(
        lambda n, k: n > 1,
        lambda n, k: (tf.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1), k + 1),
        [n, 0],
    )
    return count, {n: 27}


@program
def k_means() -> Made:
    points, feed = fed(60, 2)

    def body(i: Any, centres: Any) -> Any:
        distances = tf.reduce_sum(tf.square(tf.expand_dims(points, 1) - tf.expand_dims(centres, 0)), 2)
        nearest = tf.one_hot(tf.argmin(distances, 1), 4)
        total = tf.matmul(nearest, points, transpose_a=True)
        return i + 1, total / tf.maximum(tf.reduce_sum(nearest, 0), 1.0)[:, None]

    return tf.while_loop(lambda i, c: i < 12, body, [0, points[:4]])[1], feed


@program
def mixture() -> Made:
    x, feed = fed(50)

    def body(i: Any, mean: Any, width: Any, share: Any) -> Any:
        score = -0.5 * tf.square((x[:, None] - mean) / width) - tf.log(width) + tf.log(share)
        r = tf.nn.softmax(score)
        n = tf.reduce_sum(r, 0)
        new = tf.reduce_sum(r * x[:, None], 0) / n
        spread = tf.sqrt(tf.reduce_sum(r * tf.square(x[:, None] - new), 0) / n) + 1e-3
        return i + 1, new, spread, n / 50

    first = [0, tf.constant([0.2, 0.5, 0.7]), tf.ones([3]), tf.ones([3]) / 3]
    return list(tf.while_loop(lambda i, *_: i < 8, body, first)[1:]), feed


@program
def gated_units() -> Made:
    x, feed = fed(3, 6, 5)
    with tf.variable_scope("cell", initializer=tf.constant_initializer(0.1)):
        outputs, last = tf.nn.dynamic_rnn(
            tf.nn.rnn_cell.GRUCell(7), x, sequence_length=[6, 2, 4], dtype=tf.float32
        )
    loss = tf.reduce_sum(tf.square(outputs)) + tf.reduce_sum(last)
    return [loss, *tf.gradients(loss, [x, *tf.trainable_variables()])], feed


@program
def long_short_term_memory() -> Made:
    x, feed = fed(3, 6, 5)
    with tf.variable_scope("cell", initializer=tf.constant_initializer(0.1)):
        cell = tf.nn.rnn_cell.LSTMCell(7, use_peepholes=True, num_proj=4)
        outputs, last = tf.nn.dynamic_rnn(cell, x, sequence_length=[6, 2, 4], dtype=tf.float32)
    loss = tf.reduce_sum(tf.square(outputs)) + tf.reduce_sum(last.c)
    return [loss, *tf.gradients(loss, [x, *tf.trainable_variables()])], feed


@program
def layers_of_memory_in_both_directions() -> Made:
    x, feed = fed(2, 5, 3)
    with tf.variable_scope("cell", initializer=tf.constant_initializer(0.1)):
        cells = [
            tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(n) for n in (4, 3)]) for _ in range(2)
        ]
        outputs, _ = tf.nn.bidirectional_dynamic_rnn(*cells, x, dtype=tf.float32)
    loss = tf.reduce_mean(tf.concat(outputs, 2))
    return [loss, *tf.gradients(loss, [x, *tf.trainable_variables()])], feed


@program
def stacked_units_in_both_directions_with_lengths() -> Made:
    x, feed = fed(3, 5, 4)
    lengths = tf.cast(x[:, 0, 0] > 0.0, tf.int32) + [1, 4, 2]
    y = x
    with tf.variable_scope("cell", initializer=tf.constant_initializer(0.1)):
        for layer in ("lower", "upper"):
            cells = [tf.nn.rnn_cell.GRUCell(n) for n in (4, 3)]
            outputs, last = tf.nn.bidirectional_dynamic_rnn(
                *cells, y, sequence_length=lengths, dtype=tf.float32, scope=layer
            )
            y = tf.concat(outputs, 2)
    loss = tf.reduce_mean(tf.square(y)) + tf.reduce_sum(last[0]) - tf.reduce_sum(last[1])
    return [y, loss, *tf.gradients(loss, [x, *tf.trainable_variables()])], feed


@program
def simple_units_that_are_trained() -> Made:
    x, feed = fed(3, 6, 5)
    with tf.variable_scope("cell", initializer=tf.constant_initializer(0.1)):
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(7), x, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(outputs))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.control_dependencies([train]):
        return [loss, *[tf.identity(v.read_value()) for v in tf.trainable_variables()]], feed


@program
def scan() -> Made:
    x, feed = fed(9, 3)
    y = tf.scan(lambda a, b: a * 0.9 + b, x, tf.zeros([3]))
    return [y, tf.gradients(y, x)[0]], feed


@program
def mapping() -> Made:
    x, feed = fed(9, 3)
    y = tf.map_fn(lambda a: tf.reduce_sum(a * a) * a, x)
    return [y, tf.gradients(y, x)[0]], feed


@program
def rows_by_a_counter() -> Made:
    x, feed = fed(9, 3)
    y = tf.while_loop(lambda i, a: i < 9, lambda i, a: (i + 1, a * x[i] + x[8 - i]), [0, tf.zeros([3])])[1]
    return [y, tf.while_loop(lambda i, a: i < 9, lambda i, a: (i + 1, a + tf.gather(x, i)), [0, y])[1]], feed


@program
def a_chain_of_branches() -> Made:
    x, feed = fed()
    z = x
    for _ in range(7):
        z = tf.cond(z > 0.0, lambda z=z: z - 0.3, lambda z=z: tf.exp(z))
    return [z, tf.gradients(z, x)[0]], feed


@program
def a_branch_with_loops() -> Made:
    x, feed = fed(4)

    def slow() -> Any:
        return tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, tf.sin(a) + 0.1), [0, x])[1]

    y = tf.cond(tf.reduce_sum(x) > 100.0, lambda: x, slow)
    z = tf.cond(tf.reduce_sum(x) > 0.0, lambda: y * 2.0, slow)
    return [z, tf.gradients(z, x)[0]], feed


@program
def case_of_many() -> Made:
    x, feed = fed(3)
    i = tf.placeholder(tf.int32, [])
    pairs = [(tf.equal(i, n), lambda n=n: x * float(n)) for n in range(4)]
    return tf.case(pairs, default=lambda: -x), {**feed, i: 2}


@program
def an_array_that_a_loop_fills() -> Made:
    x, feed = fed(2)
    array = tf.TensorArray(tf.float32, 6, clear_after_read=False)
    _, array, _ = tf.while_loop(
        lambda i, *_: i < 6, lambda i, array, p: (i + 1, array.write(i, p), p * 1.1), [0, array, x]
    )
    y = array.stack()
    return [y, tf.gradients(y, x)[0], array.read(2) + array.read(2)], feed


@program
def a_loop_that_does_not_run() -> Made:
    x, feed = fed(5)
    y = tf.while_loop(lambda i, a: i < 0, lambda i, a: (i + 1, a * 2.0), [0, x])[1]
    return [y, tf.gradients(y, x)[0]], feed


@program
def double_precision() -> Made:
    x = tf.placeholder(tf.float64, [20])
    y = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, tf.tanh(a) + tf.reduce_mean(a)), [0, x])[1]
    return [y, tf.gradients(y, x)[0]], {x: numbers(20).astype(np.float64)}


def trained_loops() -> tuple[Any, Any]:
    """Two loops with gradients, which take turns with what cannot be compiled; and a loop apart."""
    x = y = tf.placeholder(tf.float32, [3])
    for _ in range(2):
        y = tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: tf.tanh(a) * a + 1.0, [y])
        y = tf.py_func(lambda a: a, [y], tf.float32) * 2.0 + y
        y.set_shape([3])
    apart = tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: a * 2.0, [tf.exp(x)])
    return [apart, *tf.gradients(y, x)], [x]
