"""Programs that differentiate loops, run alike by flowstone and, for the golden files, by TensorFlow.

Each is a function of the module ``tf`` that builds a graph and returns tensors, slices and None in lists.
`run` gives their values, `node_lines` the nodes that they need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: dict[str, Callable[[Any], Any]] = {}
NAMED: list[str] = []
"""Those of which the nodes are compared."""


def program(named: bool = False) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Adds a program to the table."""

    def add(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        PROGRAMS[function.__name__] = function
        if named:
            NAMED.append(function.__name__)
        return function

    return add


def repeat(tf: Any, count: Any, function: Callable[[Any, Any], Any], start: Any, **options: Any) -> Any:
    """`function` of (i, x), again and again."""
    return tf.while_loop(lambda i, x: i < count, lambda i, x: (i + 1, function(i, x)), [0, start], **options)[
        1
    ]


def vector(tf: Any, name: str = "x") -> Any:
    return tf.constant([0.5, -1.5, 2.0], name=name)


def scalar(tf: Any, value: float = 1.5) -> Any:
    return tf.constant(value)


def matrix(tf: Any, name: str = "w") -> Any:
    return tf.constant([[0.5, -0.3, 0.1], [0.2, 0.4, -0.6], [-0.1, 0.7, 0.3]], name=name)


# ---- one loop


@program(named=True)
def power(tf: Any) -> Any:
    x = scalar(tf)
    return tf.gradients(repeat(tf, 4, lambda i, y: y * x, 1.0), x)


@program(named=True)
def squares(tf: Any) -> Any:
    x = vector(tf)
    return tf.gradients(repeat(tf, 3, lambda i, y: y * y, x), x)


@program()
def recurrence(tf: Any) -> Any:
    x, w = vector(tf), matrix(tf)
    y = repeat(tf, 5, lambda i, h: tf.tanh(tf.matmul(h, w) + x), tf.ones([2, 3]))
    return tf.gradients(y, [x, w])


@program()
def doubling(tf: Any) -> Any:
    x = vector(tf)
    return tf.gradients(repeat(tf, 4, lambda i, y: y * 2.0, x), x)


@program()
def zero_iterations(tf: Any) -> Any:
    x, w = vector(tf), scalar(tf)
    y = repeat(tf, 0, lambda i, y: tf.log(y) * w, x)
    return tf.gradients(y, [x, w])


@program()
def fed_number_of_iterations(tf: Any) -> Any:
    x = scalar(tf)
    found = []
    for n in (0, 1, 5):
        count = tf.placeholder_with_default(n, [])
        found.append(tf.gradients(repeat(tf, count, lambda i, y: tf.sin(y) * x, x), x))
    return found


@program()
def predicate_of_values(tf: Any) -> Any:
    x = scalar(tf, 1.1)
    y = tf.while_loop(lambda y: y < 100.0, lambda y: y * y + x, [x])
    return tf.gradients(y, x)


@program()
def several_variables(tf: Any) -> Any:
    x, z = vector(tf), vector(tf, "z") + 1.0
    _, a, b = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b * a, a + b), [0, x, z])
    return [tf.gradients(a, [x, z]), tf.gradients(b, [x, z]), tf.gradients([a, b], [x, z])]


@program()
def variables_that_swap(tf: Any) -> Any:
    x, z = scalar(tf, 2.0), scalar(tf, 3.0)
    _, a, b = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b, a * 2.0), [0, x, z])
    return [tf.gradients(a, [x, z]), tf.gradients(b, [x, z])]


@program()
def one_result_of_several(tf: Any) -> Any:
    x, z = vector(tf), vector(tf, "z")
    _, a, b = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, tf.sin(a), b * b), [0, x, z])
    return [tf.gradients(a, [x, z]), tf.gradients(b, [x, z])]


@program()
def unused_variable(tf: Any) -> Any:
    x, z = vector(tf), vector(tf, "z")
    _, a, b = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a * 2.0, a), [0, x, z])
    return [tf.gradients(a, [x, z]), tf.gradients(b, [x, z])]


@program()
def variable_that_stays(tf: Any) -> Any:
    x, z = vector(tf), vector(tf, "z")
    _, a, b = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a * b, b), [0, x, z])
    return [tf.gradients(a, [x, z]), tf.gradients(a + b, [x, z])]


@program()
def variable_that_is_reset(tf: Any) -> Any:
    x, z = vector(tf), vector(tf, "z")
    _, a, b = tf.while_loop(
        lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a + b, tf.ones_like(b) * 2.0), [0, x, z]
    )
    return [tf.gradients(a, [x, z]), tf.gradients(b, [x, z])]


@program()
def integers_beside_floats(tf: Any) -> Any:
    x, n = scalar(tf), tf.constant(1)
    _, k, y = tf.while_loop(
        lambda i, k, y: i < 4, lambda i, k, y: (i + 1, k * 2 + i, y * x + tf.cast(k, tf.float32)), [0, n, x]
    )
    return [tf.gradients(y, [x, n]), tf.gradients(tf.cast(k, tf.float32), [x, n])]


@program()
def counter_in_the_body(tf: Any) -> Any:
    x = scalar(tf)
    return tf.gradients(repeat(tf, 4, lambda i, y: y * tf.pow(x, tf.cast(i, tf.float32)), x), x)


@program()
def ys_and_grad_ys(tf: Any) -> Any:
    x = vector(tf)
    _, a, b = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a * x, tf.sin(b)), [0, x, x])
    return [
        tf.gradients([a, b], x, grad_ys=[vector(tf), None]),
        tf.gradients([a, b, x], x, grad_ys=[None, tf.ones([3]), x]),
        tf.gradients(a, x, grad_ys=tf.constant([1.0, 0.0, -1.0])),
    ]


@program()
def stopped(tf: Any) -> Any:
    x = vector(tf)
    y = repeat(tf, 3, lambda i, y: y * tf.stop_gradient(y) + x, x)
    z = repeat(tf, 3, lambda i, y: tf.stop_gradient(y) * x, x)
    return [tf.gradients(y, x), tf.gradients(z, x)]


@program()
def stop_gradients(tf: Any) -> Any:
    x = vector(tf)
    y = tf.sin(x)
    z = repeat(tf, 2, lambda i, z: z * y, x)
    return [tf.gradients(z, [x, y], stop_gradients=[y]), tf.gradients(z, [x, y])]


@program()
def nothing_to_differentiate(tf: Any) -> Any:
    x, z = vector(tf), vector(tf, "z")
    y = repeat(tf, 3, lambda i, y: y * 2.0, x)
    kept = repeat(tf, 3, lambda i, y: y * x, x, back_prop=False)
    count = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    return [tf.gradients(y, z), tf.gradients(kept, x), tf.gradients(kept + x, x), tf.gradients(y, count)]


@program()
def zeros_through_a_loop_without_back_prop(tf: Any) -> Any:
    """The result of interest is reached from x by that loop alone, whose gradient is none; from another
    result of the outer loop, which nobody uses, zeros come back.
    """
    x = vector(tf)

    def step(i: Any, y: Any, total: Any) -> Any:
        y = repeat(tf, 2, lambda j, z: z * 2.0, y, back_prop=False)
        return i + 1, y, total + y

    found = tf.while_loop(lambda i, y, total: i < 3, step, [0, x, tf.zeros_like(x)])
    return [tf.gradients(found[2], x), tf.gradients(found[1], x), tf.gradients(found[1] + found[2], x)]


@program()
def sums_with_a_stopped_gradient(tf: Any) -> Any:
    """The second call passes the loop of the first one's gradient, by which nothing arrives."""
    b, x = scalar(tf, 0.8660254), vector(tf)
    results = [
        repeat(tf, 4, lambda i, y: y * y * b + b, b),
        repeat(tf, 3, lambda i, y: y * x * b, b * x),
        repeat(tf, 3, lambda i, y: y * b, scalar(tf, 0.5)) ** 2,
        repeat(tf, 3, lambda i, y: tf.tanh(y * y * b), scalar(tf, 0.5)) ** 2,
        repeat(tf, 2, lambda i, y: repeat(tf, i + 1, lambda j, z: tf.sin(z) * b, y), b),
    ]
    found = []
    for y in results:
        slope = tf.stop_gradient(tf.gradients(y, b)[0])
        found += tf.gradients([b * b * b, y, slope * b], b)
    return found


def variable_made_in_the_body(tf: Any, resource: bool) -> Any:
    b = scalar(tf)

    def step(i: Any, y: Any) -> Any:
        start = tf.constant_initializer(2.0)
        return y * tf.get_variable("v", [], initializer=start, use_resource=resource)

    y = repeat(tf, 3, step, b)
    v = tf.global_variables()[0]
    slope = tf.stop_gradient(tf.gradients(y, v)[0])
    return [tf.gradients(y, [b, v]), tf.gradients(b * b * b + y + slope, [b, v])]


@program()
def reference_variable_made_in_the_body(tf: Any) -> Any:
    return variable_made_in_the_body(tf, False)


@program()
def resource_variable_made_in_the_body(tf: Any) -> Any:
    return variable_made_in_the_body(tf, True)


@program()
def swapped_memory(tf: Any) -> Any:
    x = vector(tf)
    return tf.gradients(repeat(tf, 4, lambda i, y: tf.sin(y) * y + x, x, swap_memory=True), x)


@program()
def one_parallel_iteration(tf: Any) -> Any:
    x = vector(tf)
    return tf.gradients(repeat(tf, 4, lambda i, y: tf.sin(y) * y + x, x, parallel_iterations=1), x)


@program()
def maximum_iterations(tf: Any) -> Any:
    x = vector(tf)
    body = lambda i, y: [i + 1, tf.sin(y) * y]  # noqa: E731
    y = tf.while_loop(lambda i, y: i < 10, body, [0, x], maximum_iterations=3)[1]
    return tf.gradients(y, x)


@program()
def shapes_that_grow(tf: Any) -> Any:
    x = vector(tf)
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    y = repeat(tf, 3, lambda i, y: tf.concat([y * 2.0, x], 0), x, shape_invariants=shapes)
    return tf.gradients(y * y, x)


@program()
def broadcasting(tf: Any) -> Any:
    x, k = vector(tf), scalar(tf)
    rows = tf.placeholder_with_default(tf.ones([2, 3]), [None, None])
    shapes = [tf.TensorShape([]), tf.TensorShape([None, None])]
    y = repeat(tf, 3, lambda i, y: y * x + k, rows, shape_invariants=shapes)
    return tf.gradients(y, [x, k, rows])


@program()
def sums_in_the_body(tf: Any) -> Any:
    x, w = vector(tf), matrix(tf)

    def step(i: Any, y: Any) -> Any:
        return tf.reduce_sum(w * y, 1) / tf.reduce_max(tf.abs(y)) + tf.reshape(tf.split(w, 3)[0], [3])

    return tf.gradients(repeat(tf, 3, step, x), [x, w])


@program()
def half_precision(tf: Any) -> Any:
    x = tf.constant([0.5, 1.25], tf.float64)
    return tf.gradients(repeat(tf, 3, lambda i, y: y * y + x, x), x)


@program()
def complex_numbers(tf: Any) -> Any:
    x = tf.constant([1 + 2j, 0.5 - 1j], tf.complex64)
    return tf.gradients(tf.abs(repeat(tf, 3, lambda i, y: y * x, x)), x)


@program()
def same_value_twice(tf: Any) -> Any:
    x = vector(tf)
    _, a, b = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a * b, a * b), [0, x, x])
    return tf.gradients(a * b, x)


@program()
def loops_in_sequence(tf: Any) -> Any:
    x = vector(tf)
    y = repeat(tf, 3, lambda i, y: y * 1.5, x)
    z = repeat(tf, 2, lambda i, z: z * tf.sin(y), tf.exp(x))
    return tf.gradients(z, [x, y])


@program()
def result_of_a_loop_as_invariant(tf: Any) -> Any:
    x = scalar(tf)
    k = repeat(tf, 2, lambda i, y: y * x, x)
    return tf.gradients(repeat(tf, 3, lambda i, y: y * k, x), [x, k])


# ---- variables, slices, sparse


def with_variables(tf: Any, resource: bool) -> Any:
    w = tf.get_variable("w", initializer=[[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]], use_resource=resource)
    b = tf.get_variable("b", initializer=[0.1, -0.2], use_resource=resource)
    ids = tf.constant([[0, 2], [2, 2], [1, 0]])
    y = repeat(tf, 3, lambda i, y: tf.tanh(y) + tf.reduce_sum(tf.gather(w, ids[i]), 0) * b, tf.zeros([2]))
    return tf.gradients(y, [w, b])


@program()
def reference_variables(tf: Any) -> Any:
    return with_variables(tf, False)


@program()
def resource_variables(tf: Any) -> Any:
    return with_variables(tf, True)


@program()
def gathered_rows(tf: Any) -> Any:
    table, ids = matrix(tf), tf.constant([2, 0, 2])
    y = repeat(tf, 3, lambda i, y: y * tf.gather(table, ids[i]), tf.ones([3]))
    return tf.gradients(y, table)


@program()
def rows_gathered_and_used_whole(tf: Any) -> Any:
    table = matrix(tf)
    y = repeat(tf, 3, lambda i, y: tf.gather(table, i) + tf.tensordot(y, table, 1), tf.ones([3]))
    return tf.gradients(y, table)


@program()
def embeddings(tf: Any) -> Any:
    table = tf.get_variable("table", initializer=[[1.0], [2.0], [3.0]], use_resource=False)

    def step(i: Any, y: Any) -> Any:
        return y * 2.0 + tf.reduce_sum(tf.nn.embedding_lookup(table, [i, 0]) ** 2)

    return tf.gradients(repeat(tf, 3, step, 1.0), table)


@program()
def slices_as_a_variable(tf: Any) -> Any:
    x = matrix(tf)

    def body(i: Any, s: Any) -> Any:
        return i + 1, tf.IndexedSlices(s.values * 2.0, s.indices)

    _, s = tf.while_loop(lambda i, s: i < 2, body, [0, tf.IndexedSlices(x, tf.constant([1, 0, 1]))])
    return tf.gradients(s.values, x)


@program()
def sparse_products(tf: Any) -> Any:
    values = vector(tf)
    sparse = tf.SparseTensor([[0, 1], [1, 0], [2, 2]], values, [3, 3])
    y = repeat(tf, 2, lambda i, y: y * tf.reduce_sum(sparse.values) + values, tf.ones([3]))
    return tf.gradients(y, values)


# ---- arrays


@program()
def array_written(tf: Any) -> Any:
    x = vector(tf)
    array = tf.TensorArray(tf.float32, 3)
    _, _, array = tf.while_loop(
        lambda i, y, a: i < 3, lambda i, y, a: (i + 1, y * x, a.write(i, y)), [0, x, array]
    )
    return tf.gradients(array.stack(), x, grad_ys=matrix(tf))


@program()
def array_read(tf: Any) -> Any:
    w = matrix(tf)
    array = tf.TensorArray(tf.float32, 3).unstack(w)
    y = repeat(tf, 3, lambda i, y: tf.sin(y) * array.read(i), tf.ones([3]))
    return tf.gradients(y, w)


@program()
def array_read_and_written(tf: Any) -> Any:
    w, x = matrix(tf), vector(tf)
    source = tf.TensorArray(tf.float32, 3).unstack(w)

    def body(i: Any, h: Any, a: Any) -> Any:
        h = tf.tanh(source.read(i) * x + h)
        return i + 1, h, a.write(i, h * 2.0)

    _, h, array = tf.while_loop(lambda i, h, a: i < 3, body, [0, x, tf.TensorArray(tf.float32, 3)])
    return [tf.gradients(array.stack(), [w, x]), tf.gradients([h, array.stack()], [w, x])]


@program()
def array_gathered_after(tf: Any) -> Any:
    x = vector(tf)
    array = tf.TensorArray(tf.float32, 4, clear_after_read=False)
    _, array = tf.while_loop(
        lambda i, a: i < 4, lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float32))), [0, array]
    )
    return tf.gradients(array.gather([3, 1]), x)


@program()
def array_concatenated(tf: Any) -> Any:
    x = vector(tf)
    array = tf.TensorArray(tf.float32, 3, infer_shape=False)
    _, array = tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, x[: i + 1] ** 2)), [0, array]
    )
    return tf.gradients(array.concat(), x)


@program()
def array_read_behind(tf: Any) -> Any:
    """An array that the loop both writes and reads."""
    x = scalar(tf)
    array = tf.TensorArray(tf.float32, 5, clear_after_read=False).write(0, x)
    _, array = tf.while_loop(
        lambda i, a: i < 5, lambda i, a: (i + 1, a.write(i, a.read(i - 1) * x)), [tf.constant(1), array]
    )
    return [tf.gradients(array.read(4), x)]


# ---- loops and branches in each other


@program()
def cond_in_while(tf: Any) -> Any:
    x, w = vector(tf), vector(tf, "w")
    y = repeat(tf, 4, lambda i, y: tf.cond(tf.equal(i % 2, 0), lambda: y * tf.sin(y) * w, lambda: y + x), x)
    return tf.gradients(y, [x, w])


@program()
def cond_on_values(tf: Any) -> Any:
    x = scalar(tf, 0.7)
    y = repeat(tf, 6, lambda i, y: tf.cond(y > 1.0, lambda: y * 0.3 * x, lambda: tf.exp(y) * x), x)
    return tf.gradients(y, x)


@program()
def branch_never_taken(tf: Any) -> Any:
    x, w = vector(tf), vector(tf, "w")
    y = repeat(tf, 3, lambda i, y: tf.cond(i < 100, lambda: y * x, lambda: tf.sin(y) * w), x)
    return tf.gradients(y, [x, w])


@program()
def branch_that_passes_on(tf: Any) -> Any:
    x = vector(tf)
    y = repeat(tf, 4, lambda i, y: tf.cond(tf.equal(i, 2), lambda: y, lambda: y * x), x)
    return tf.gradients(y, x)


@program()
def cond_in_cond_in_while(tf: Any) -> Any:
    x = vector(tf)

    def step(i: Any, y: Any) -> Any:
        inner = lambda: tf.cond(i > 2, lambda: tf.sin(y), lambda: y * y)  # noqa: E731
        return tf.cond(tf.equal(i % 2, 1), inner, lambda: y + x)

    return tf.gradients(repeat(tf, 5, step, x), x)


@program()
def while_in_cond(tf: Any) -> Any:
    x = vector(tf)
    taken, other = (tf.placeholder_with_default(value, []) for value in (True, False))

    def chosen(p: Any) -> Any:
        return tf.cond(p, lambda: repeat(tf, 3, lambda i, y: y * x, x), lambda: x * 2.0)

    return [tf.gradients(chosen(p), x) for p in (taken, other)]


@program(named=True)
def nested_loops(tf: Any) -> Any:
    x, w = vector(tf), vector(tf, "w")

    def outer(i: Any, y: Any) -> Any:
        return repeat(tf, 2, lambda j, z: z * w + x, tf.tanh(y))

    return tf.gradients(repeat(tf, 3, outer, x), [x, w])


@program()
def inner_count_of_the_outer_loop(tf: Any) -> Any:
    x = scalar(tf, 0.9)

    def outer(i: Any, y: Any) -> Any:
        return repeat(tf, i, lambda j, z: tf.sin(z) * y + x * tf.cast(j, tf.float32), y)

    return tf.gradients(repeat(tf, 4, outer, x), x)


@program()
def inner_loop_of_invariants(tf: Any) -> Any:
    x = scalar(tf, 0.9)

    def outer(i: Any, y: Any) -> Any:
        return y + repeat(tf, 2, lambda j, z: z * x, x)

    return tf.gradients(repeat(tf, 3, outer, x), x)


@program()
def three_loops_deep(tf: Any) -> Any:
    x = scalar(tf, 0.9)

    def nest(depth: int, y: Any) -> Any:
        if depth == 0:
            return tf.sin(y) * x
        return repeat(tf, 2, lambda i, z: nest(depth - 1, z), y)

    return tf.gradients(nest(3, x), x)


@program()
def while_in_cond_in_while(tf: Any) -> Any:
    x = scalar(tf, 0.9)

    def step(i: Any, y: Any) -> Any:
        loop = lambda: repeat(tf, i, lambda j, z: z * y * x, y)  # noqa: E731
        return tf.cond(tf.equal(i % 2, 1), loop, lambda: y + x)

    return tf.gradients(repeat(tf, 5, step, x), x)


@program()
def cond_in_while_in_while(tf: Any) -> Any:
    x = scalar(tf, 0.9)

    def inner(i: Any, j: Any, z: Any) -> Any:
        return tf.cond(i > j, lambda: z * x, lambda: tf.sin(z))

    def outer(i: Any, y: Any) -> Any:
        return repeat(tf, 3, lambda j, z: inner(i, j, z), y)

    return tf.gradients(repeat(tf, 3, outer, x), x)


@program()
def array_in_nested_loops(tf: Any) -> Any:
    w = matrix(tf)
    array = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(w)

    def outer(i: Any, y: Any) -> Any:
        return repeat(tf, 3, lambda j, z: tf.sin(z) * array.read(j), y)

    return tf.gradients(repeat(tf, 2, outer, tf.ones([3])), w)


# ---- what is built on loops


@program()
def mapped(tf: Any) -> Any:
    w, x = matrix(tf), vector(tf)
    y = tf.map_fn(lambda row: tf.sin(row) * x, w)
    z = tf.map_fn(lambda pair: pair[0] * pair[1] + x, (w, w * 2.0), dtype=tf.float32)
    return [tf.gradients(y, [w, x]), tf.gradients(z, [w, x])]


@program()
def folded(tf: Any) -> Any:
    w, x = matrix(tf), vector(tf)
    left = tf.foldl(lambda a, row: tf.sin(a) * row, w)
    right = tf.foldr(lambda a, row: a * row + x, w, initializer=x)
    return [tf.gradients(left, w), tf.gradients(right, [w, x])]


@program()
def scanned(tf: Any) -> Any:
    w, x = matrix(tf), vector(tf)
    y = tf.scan(lambda a, row: tf.sin(a) * row + x, w, initializer=x)
    z = tf.scan(lambda a, row: a + row * row, w, reverse=True)
    return [tf.gradients(y, [w, x]), tf.gradients(z, w)]


@program()
def recurrent_network(tf: Any) -> Any:
    x = tf.constant(np.sin(np.arange(24.0)).reshape(2, 4, 3), tf.float32)
    cell = tf.nn.rnn_cell.BasicLSTMCell(2, name="cell")
    with tf.variable_scope("net", initializer=tf.constant_initializer(0.1)):
        outputs, state = tf.nn.dynamic_rnn(cell, x, sequence_length=[4, 2], dtype=tf.float32)
    return tf.gradients([outputs, state[0]], [x, *tf.trainable_variables()])


# ---- gradients of gradients, gradients in bodies


@program()
def second_derivative_of_an_unrolled_gradient(tf: Any) -> Any:
    """By what is outside the loop."""
    x = scalar(tf)
    (dx,) = tf.gradients(x**3, x)
    return tf.gradients(repeat(tf, 3, lambda i, y: y * dx, x), x)


@program()
def gradient_in_a_body(tf: Any) -> Any:
    """Steps of gradient descent on (y - x)^2."""
    x = vector(tf)

    def step(i: Any, y: Any) -> Any:
        return y - 0.1 * tf.gradients(tf.reduce_sum((y - x) ** 2), y)[0]

    return repeat(tf, 5, step, tf.zeros([3]))


@program()
def gradient_in_a_body_by_an_invariant(tf: Any) -> Any:
    x = vector(tf)
    return repeat(tf, 3, lambda i, y: y + tf.gradients(tf.sin(x) * y, x)[0], tf.ones([3]))


@program()
def gradient_of_a_gradient_in_a_body(tf: Any) -> Any:
    x = vector(tf)

    def step(i: Any, y: Any) -> Any:
        return y - 0.1 * tf.gradients(tf.reduce_sum((y - x) ** 3), y)[0]

    return tf.gradients(repeat(tf, 3, step, tf.zeros([3])), x)


@program()
def gradient_in_a_body_through_a_loop(tf: Any) -> Any:
    x = scalar(tf)

    def step(i: Any, y: Any) -> Any:
        inner = repeat(tf, 2, lambda j, z: z * z * x, y)
        return y + 0.01 * tf.gradients(inner, y)[0]

    return repeat(tf, 2, step, x)


# ---- running


def flat(tf: Any, structure: Any) -> list[Any]:
    """The leaves of nested lists; slices are values and indices."""
    if isinstance(structure, tf.IndexedSlices):
        return ["slices", structure.values, structure.indices]
    if isinstance(structure, (list, tuple)):
        return [x for item in structure for x in flat(tf, item)]
    return [structure]


def run(tf: Any, name: str) -> list[Any]:
    """Of each result its value as lists, "None" for None."""
    with tf.Graph().as_default():
        found = flat(tf, PROGRAMS[name](tf))
        tensors = [x for x in found if not isinstance(x, (str, type(None)))]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            values = iter(session.run(tensors))
    return [str(x) if isinstance(x, (str, type(None))) else plain(next(values)) for x in found]


def plain(value: Any) -> Any:
    """A value as lists of numbers that JSON knows."""
    array = np.asarray(value)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], -1)
    return array.tolist()


def node_lines(tf: Any, name: str) -> list[str]:
    """``NAME TYPE INPUTS ^CONTROLS`` for all nodes that the results need, sorted."""
    with tf.Graph().as_default():
        pending = [x.op for x in flat(tf, PROGRAMS[name](tf)) if x is not None]
        needed = set()
        while pending:
            op = pending.pop()
            if op not in needed:
                needed.add(op)
                pending += [x.op for x in op.inputs] + list(op.control_inputs)
    return sorted(node_line(op) for op in needed)


def node_line(op: Any) -> str:
    """One operation; the factors of a product in order of their names."""
    inputs = [x.name for x in op.inputs]
    controls = sorted(f"^{x.name}" for x in op.control_inputs)
    return " ".join([op.name, op.type, *(sorted(inputs) if op.type == "Mul" else inputs), *controls])
