"""Programs with loops, run alike by flowstone and, for the golden files, by TensorFlow.

Each is a function of the module ``tf`` that builds a graph and returns tensors in any structure. `run` gives
their values and static shapes, `node_lines` the graph's nodes. `MISTAKES` are programs that both must refuse
with the same class of error; the words are what both messages have in common.
"""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: dict[str, Callable[[Any], Any]] = {}
NAMED: list[str] = []
"""Those of which all nodes are compared."""
MISTAKES: dict[str, tuple[str, Callable[[Any], Any]]] = {}

Pair = namedtuple("Pair", ["first", "second"])


def program(named: bool = False) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Adds a program to the table."""

    def add(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        PROGRAMS[function.__name__] = function
        if named:
            NAMED.append(function.__name__)
        return function

    return add


def mistake(words: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Adds a program that is refused with a message that contains `words`."""

    def add(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        MISTAKES[function.__name__] = words, function
        return function

    return add


# ---- one loop


@program(named=True)
def counter(tf: Any) -> Any:
    return tf.while_loop(lambda i: i < 10, lambda i: i + 1, [0])


@program(named=True)
def two_variables(tf: Any) -> Any:
    x = tf.constant([1.0, 2.0], name="x")
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), [tf.constant(0, name="i"), x])


@program(named=True)
def captured_values(tf: Any) -> Any:
    """Values of outside enter once each, whoever uses them."""
    w, limit = tf.constant([[2.0, 1.0], [0.0, 1.0]], name="w"), tf.constant(4, name="limit")
    x = tf.ones([1, 2], name="x")
    return tf.while_loop(
        lambda i, x: i < limit, lambda i, x: (i + 1, tf.matmul(x, w) + tf.matmul(x, w)), [0, x]
    )


@program()
def no_iterations(tf: Any) -> Any:
    return tf.while_loop(lambda i, x: i < 0, lambda i, x: (i + 1, x / 0.0), [0, tf.constant([1.0, 2.0])])


@program()
def predicate_of_a_vector_element(tf: Any) -> Any:
    return tf.while_loop(lambda x: x[0] < 100, lambda x: x * [2, 3], [tf.constant([1, 1])])


@program()
def body_that_ignores_its_variables(tf: Any) -> Any:
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.constant(7.0)), [0, 1.0])


@program()
def body_that_swaps(tf: Any) -> Any:
    return tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b, a + b), [0, 1, 1])


@program()
def invariant_variable(tf: Any) -> Any:
    return tf.while_loop(lambda i, x, y: i < 3, lambda i, x, y: (i + 1, x, y + x), [0, 2.0, 0.0])


@program()
def wrapping_integers(tf: Any) -> Any:
    small = tf.constant(100, tf.int8)
    large = tf.constant(2**31 - 3, tf.int32)
    return tf.while_loop(
        lambda i, a, b: i < 6, lambda i, a, b: (i + 1, a + tf.constant(7, tf.int8), b + 1), [0, small, large]
    )


@program()
def rounded_floats(tf: Any) -> Any:
    half, single = tf.constant(0.1, tf.float16), tf.constant(0.1, tf.float32)
    return tf.while_loop(
        lambda i, a, b: i < 50, lambda i, a, b: (i + 1, a * a + a, b * b * 0.9 + b * 0.1), [0, half, single]
    )


@program()
def other_types(tf: Any) -> Any:
    return tf.while_loop(
        lambda i, s, b, z: i < 3,
        lambda i, s, b, z: (i + 1, tf.concat([s[1:], s[:1]], 0), tf.logical_not(b), z * 1j),
        [tf.constant(0, tf.int64), tf.constant(["a", "b"]), tf.constant(True), tf.constant(1 + 2j)],
    )


@program()
def collatz(tf: Any) -> Any:
    def body(n: Any, steps: Any) -> Any:
        return tf.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1), steps + 1

    return tf.while_loop(lambda n, steps: n > 1, body, [27, 0])


@program()
def parallel_iterations_one(tf: Any) -> Any:
    return tf.while_loop(
        lambda i, x: i < 5, lambda i, x: (i + 1, x * 3), [0, 1], parallel_iterations=1, back_prop=False
    )


@program()
def swapped_memory(tf: Any) -> Any:
    return tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 3), [0, 1], swap_memory=True)


# ---- a limit


@program(named=True)
def maximum_iterations(tf: Any) -> Any:
    return tf.while_loop(lambda i: i < 10, lambda i: i + 1, [0], maximum_iterations=4)


@program()
def maximum_iterations_of_several(tf: Any) -> Any:
    limit = tf.constant(3, tf.int64)
    return [
        tf.while_loop(lambda *v: True, lambda i, x: [i + 1, x * 2.0], [0, 1.0], maximum_iterations=limit),
        tf.while_loop(
            lambda i, p: True,
            lambda i, p: [i, Pair(p.first + 1, p.second * 2.0)],
            [0, Pair(tf.constant(0), tf.constant(1.0))],
            maximum_iterations=limit,
        ),
    ]


@program()
def maximum_iterations_with_invariants(tf: Any) -> Any:
    return tf.while_loop(
        lambda i, x: tf.size(x) < 100,
        lambda i, x: [i, tf.concat([x, x], 0)],
        [0, tf.constant([1.0])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
        maximum_iterations=3,
    )


@program()
def no_maximum_iterations(tf: Any) -> Any:
    return tf.while_loop(lambda i: i < 10, lambda i: i + 1, [0], maximum_iterations=0)


# ---- structures


@program()
def same_structure(tf: Any) -> Any:
    return tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [0], return_same_structure=True)


@program()
def named_tuples(tf: Any) -> Any:
    return tf.while_loop(
        lambda i, p: i < 3,
        lambda i, p: (i + 1, Pair(p.first + 1.0, p.second * 2)),
        (tf.constant(0), Pair(tf.constant(1.0), tf.constant([1, 2]))),
    )


@program()
def dictionaries(tf: Any) -> Any:
    start = {"b": tf.constant(1.0), "a": {"c": [tf.constant(2.0), tf.constant(3)]}}

    def body(i: Any, d: Any) -> Any:
        return i + 1, {"a": {"c": [d["b"], d["a"]["c"][1] + 1]}, "b": d["a"]["c"][0]}

    return tf.while_loop(lambda i, d: i < 3, body, [0, start])


@program()
def ordered_dictionaries(tf: Any) -> Any:
    start = OrderedDict([("z", tf.constant(1)), ("a", tf.constant(2.0))])
    return tf.while_loop(
        lambda d: d["z"] < 10, lambda d: [OrderedDict([("z", d["z"] * 2), ("a", d["a"] + 1)])], [start]
    )


@program()
def nested_lists(tf: Any) -> Any:
    def body(i: Any, xs: Any) -> Any:
        return [i + 1, [(xs[1],), xs[0][0]]]

    return tf.while_loop(lambda i, xs: i < 3, body, [0, [(tf.constant(1.0),), tf.constant(2.0)]])


@program()
def no_element_structures(tf: Any) -> Any:
    return tf.while_loop(lambda i, e: i < 2, lambda i, e: [i + 1, e], [0, ()])


@program()
def array_of_results(tf: Any) -> Any:
    array = tf.TensorArray(tf.float32, 4)
    _, array = tf.while_loop(
        lambda i, a: i < 4, lambda i, a: (i + 1, a.write(i, tf.cast(i, tf.float32) * [1.0, 2.0])), [0, array]
    )
    return [array.stack(), array.size()]


@program()
def growing_array(tf: Any) -> Any:
    array = tf.TensorArray(tf.int32, 0, dynamic_size=True, clear_after_read=False).write(0, 1)

    def body(i: Any, a: Any) -> Any:
        return i + 1, a.write(i, a.read(i - 1) * 3)

    return tf.while_loop(lambda i, a: i < 6, body, [1, array])[1].stack()


@program()
def array_from_outside(tf: Any) -> Any:
    array = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack([1.0, 2.0, 3.0])
    return tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * 2.0 + array.read(i)), [0, 0.0])


@program()
def arrays_in_a_structure(tf: Any) -> Any:
    start = Pair(tf.TensorArray(tf.int32, 3), {"n": tf.TensorArray(tf.float32, 3)})

    def body(i: Any, p: Any) -> Any:
        return i + 1, Pair(p.first.write(i, i), {"n": p.second["n"].write(i, [0.5, tf.cast(i, tf.float32)])})

    _, pair = tf.while_loop(lambda i, p: i < 3, body, (0, start))
    return [pair.first.stack(), pair.second["n"].concat()]


@program()
def sparse_variable(tf: Any) -> Any:
    sparse = tf.SparseTensor([[0, 1], [2, 3]], [1.0, 2.0], [3, 4])
    return tf.while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape)),
        [0, sparse],
    )  # fmt: skip


@program()
def growing_sparse_variable(tf: Any) -> Any:
    sparse = tf.SparseTensor([[0, 1]], [1.0], [3, 4])

    def body(i: Any, s: Any) -> Any:
        indices = tf.concat([s.indices, [[i, tf.constant(2, tf.int64)]]], 0)
        return i + 1, tf.SparseTensor(indices, tf.concat([s.values, [5.0]], 0), s.dense_shape)

    return tf.while_loop(
        lambda i, s: i < 3,
        body,
        [tf.constant(1, tf.int64), sparse],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([2])],
    )


@program()
def growing_slices(tf: Any) -> Any:
    def body(i: Any, s: Any) -> Any:
        twice = [tf.concat([x, x], 0) for x in (s.values, s.indices)]
        return i + 1, tf.IndexedSlices(*twice, s.dense_shape)

    found = []
    for shape in ([None, 2], [None, None], None):
        slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([3, 2]))
        invariants = [tf.TensorShape([]), tf.TensorShape(shape)]
        _, result = tf.while_loop(lambda i, s: i < 2, body, [0, slices], invariants)
        found += [result.values, result.indices, result.dense_shape]
    return found


@program()
def slices_variable(tf: Any) -> Any:
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([3, 2]))

    def body(i: Any, s: Any) -> Any:
        return i + 1, tf.IndexedSlices(s.values * 2.0, s.indices, s.dense_shape)

    _, result = tf.while_loop(lambda i, s: i < 3, body, [0, slices])
    return [result.values, result.indices, result.dense_shape]


# ---- shapes


@program()
def growing_vector(tf: Any) -> Any:
    return tf.while_loop(
        lambda i, x: i < 4,
        lambda i, x: (i + 1, tf.concat([x, tf.cast([i], tf.float32)], 0)),
        [0, tf.constant([9.0])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )


@program()
def unknown_rank(tf: Any) -> Any:
    return tf.while_loop(
        lambda x: tf.rank(x) < 4, lambda x: tf.expand_dims(x, 0), [tf.constant([1.0, 2.0])],
        shape_invariants=[tf.TensorShape(None)],
    )  # fmt: skip


@program()
def invariants_in_structures(tf: Any) -> Any:
    start = {"grows": tf.zeros([1, 2]), "stays": Pair(tf.ones([2]), tf.constant(1))}
    shapes = {"grows": tf.TensorShape([None, 2]), "stays": Pair(tf.TensorShape([2]), tf.TensorShape([]))}

    def body(i: Any, d: Any) -> Any:
        grown = tf.concat([d["grows"], [d["stays"].first]], 0)
        return i + 1, {"grows": grown, "stays": Pair(d["stays"].first + 1.0, d["stays"].second + 1)}

    return tf.while_loop(lambda i, d: i < 2, body, [0, start], [tf.TensorShape([]), shapes])


@program()
def static_shapes_inside(tf: Any) -> Any:
    """What the body sees of its arguments' shapes, as values."""
    seen: list[Any] = []

    def body(i: Any, x: Any, y: Any) -> Any:
        seen.extend([str(x.shape), str(y.shape), str(i.shape)])
        return i + 1, tf.concat([x, x], 0), y

    result = tf.while_loop(
        lambda i, x, y: i < 2,
        body,
        [0, tf.ones([1, 3]), tf.ones([2, 2])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 3]), tf.TensorShape([2, None])],
    )
    return [*result, *seen]


@program()
def partly_known_start(tf: Any) -> Any:
    x = tf.placeholder_with_default(tf.ones([2, 2]), [None, 2])
    return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x + 1.0), [0, x])


# ---- loops in loops, branches in loops, loops in branches


@program(named=True)
def nested_loops(tf: Any) -> Any:
    def outer(i: Any, x: Any) -> Any:
        _, x = tf.while_loop(lambda j, x: j < i, lambda j, x: (j + 1, x + j * i), [0, x])
        return i + 1, x

    return tf.while_loop(lambda i, x: i < 5, outer, [0, 0])


@program()
def three_deep(tf: Any) -> Any:
    def nest(depth: int, x: Any) -> Any:
        if depth == 0:
            return x + 1
        return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, nest(depth - 1, x)), [0, x])[1]

    return nest(3, tf.constant(0))


@program(named=True)
def cond_in_a_loop(tf: Any) -> Any:
    k = tf.constant(10.0, name="k")

    def body(i: Any, x: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: x + k, lambda: x * 2.0)

    return tf.while_loop(lambda i, x: i < 4, body, [0, 1.0])


@program(named=True)
def loop_in_a_cond(tf: Any) -> Any:
    p = tf.placeholder_with_default(True, [], name="p")
    x = tf.constant(1.0, name="x")
    return tf.cond(
        p, lambda: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0 + x), [0, x])[1], lambda: x
    )


@program()
def loop_in_a_cond_in_a_loop_in_a_cond(tf: Any) -> Any:
    k = tf.constant(3)

    def inner(x: Any) -> Any:
        return tf.while_loop(lambda j, x: j < 2, lambda j, x: (j + 1, x + k), [0, x])[1]

    def body(i: Any, x: Any) -> Any:
        return i + 1, tf.cond(
            tf.equal(i % 3, 0), lambda: inner(x), lambda: tf.cond(i > 3, lambda: -x, lambda: x)
        )

    def whole() -> Any:
        return tf.while_loop(lambda i, x: i < 6, body, [0, k])[1]

    taken, other = (tf.placeholder_with_default(value, []) for value in (True, False))
    return [tf.cond(p, whole, lambda: k) for p in (taken, other)]


@program()
def cond_with_a_loop_that_is_not_taken(tf: Any) -> Any:
    def body(i: Any, x: Any) -> Any:
        inner = lambda: tf.while_loop(lambda j: j < i, lambda j: j + 1, [0])  # noqa: E731
        return i + 1, x + tf.cond(i < 0, inner, lambda: i * 10)

    return tf.while_loop(lambda i, x: i < 4, body, [0, 0])


@program()
def loops_one_after_the_other(tf: Any) -> Any:
    first = tf.while_loop(lambda i: i < 5, lambda i: i + 2, [0])
    second = tf.while_loop(lambda i: i < 50, lambda i: i * 3, [first])
    return tf.while_loop(lambda i, j: i < j, lambda i, j: (i + first, j - 1), [first, second])


@program()
def loop_in_a_predicate(tf: Any) -> Any:
    def grows(i: Any) -> Any:
        return tf.while_loop(lambda j: j < i, lambda j: j + 2, [0]) < 7

    return tf.while_loop(grows, lambda i: i + 1, [0])


@program()
def outer_variables_in_an_inner_loop(tf: Any) -> Any:
    table = tf.constant([1.0, 2.0, 3.0, 4.0])

    def outer(i: Any, x: Any) -> Any:
        _, y = tf.while_loop(lambda j, y: j <= i, lambda j, y: (j + 1, y + table[j] * x), [0, x])
        return i + 1, y / tf.reduce_sum(table)

    return tf.while_loop(lambda i, x: i < 3, outer, [0, 1.0])


# ---- control, state


@program(named=True)
def control_dependencies(tf: Any) -> Any:
    before = tf.constant(5, name="before")
    with tf.control_dependencies([before]):
        result = tf.while_loop(lambda i: i < 2, lambda i: i + tf.constant(1, name="one"), [0])

    def body(i: Any) -> Any:
        with tf.control_dependencies([tf.no_op(name="inside")]):
            return tf.identity(i + 1, name="next")

    return [result, tf.while_loop(lambda i: i < 2, body, [0], name="other")]


def assigned(tf: Any, resource: bool) -> Any:
    v = tf.get_variable("v", [], initializer=tf.ones_initializer(), use_resource=resource)
    w = tf.get_variable("w", [2], initializer=tf.zeros_initializer(), use_resource=resource)

    def body(i: Any, x: Any) -> Any:
        with tf.control_dependencies([tf.assign_add(v, 2.0)]):
            read = tf.identity(v.read_value() if resource else v)
        with tf.control_dependencies([tf.assign(w, [read, x])]):
            return i + 1, x + read

    _, x = tf.while_loop(lambda i, x: i < 4, body, [0, 0.0], parallel_iterations=1)
    with tf.control_dependencies([x]):
        return [x, tf.identity(v.read_value()), tf.identity(w.read_value())]


@program()
def reference_variables_assigned(tf: Any) -> Any:
    return assigned(tf, False)


@program()
def resource_variables_assigned(tf: Any) -> Any:
    return assigned(tf, True)


@program()
def variables_read(tf: Any) -> Any:
    v = tf.get_variable("v", [2], initializer=tf.constant_initializer([1.0, 2.0]), use_resource=False)
    w = tf.get_variable("w", [2], initializer=tf.constant_initializer([3.0, 4.0]), use_resource=True)
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * v + w), [0, tf.zeros([2])])


@program()
def scattered_rows(tf: Any) -> Any:
    v = tf.get_variable("v", [4, 2], initializer=tf.zeros_initializer(), use_resource=False)

    def body(i: Any) -> Any:
        with tf.control_dependencies([tf.scatter_add(v, [i], [[1.0, tf.cast(i, tf.float32)]])]):
            return i + 1

    with tf.control_dependencies([tf.while_loop(lambda i: i < 4, body, [0])]):
        return tf.identity(v)


@program()
def loop_with_devices_and_scopes(tf: Any) -> Any:
    def body(i: Any, x: Any) -> Any:
        with tf.device("/cpu:0"), tf.name_scope("inner"):
            return i + 1, x * 2.0

    with tf.name_scope("outer"):
        return tf.while_loop(lambda i, x: i < 3, body, [0, 1.0], name="ring")


@program(named=True)
def names_of_several_loops(tf: Any) -> Any:
    def add(i: Any) -> Any:
        return tf.add(i, 1, name="increment")

    with tf.name_scope("scope"):
        first = tf.while_loop(lambda i: i < 3, add, [0], name="loop")
        second = tf.while_loop(lambda i: i < 3, add, [first], name="loop")
    return tf.while_loop(lambda i, j: i < 20, lambda i, j: (add(i) + j, j), [second, first])


# ---- refused


@mistake("'cond' must be callable")
def predicate_is_no_function(tf: Any) -> Any:
    return tf.while_loop(1, lambda i: i, [0])


@mistake("'body' must be callable")
def body_is_no_function(tf: Any) -> Any:
    return tf.while_loop(lambda i: i < 1, 3, [0])


@mistake("Expected a shape with 1 dimension")
def invariant_of_a_sparse_tensor(tf: Any) -> Any:
    shapes = [tf.TensorShape([]), tf.TensorShape([None, None])]
    sparse = tf.SparseTensor([[0, 1]], [1.0], [3, 4])
    return tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s), [0, sparse], shapes)


@mistake("parallel_iterations")
def parallel_iterations_of_no_integer(tf: Any) -> Any:
    return tf.while_loop(lambda i: i < 1, lambda i: i, [0], parallel_iterations=2.5)


@mistake("'loop_vars' must be provided")
def no_variables(tf: Any) -> Any:
    return tf.while_loop(lambda: True, lambda: (), [])


@mistake("parallel_iterations")
def no_parallel_iterations(tf: Any) -> Any:
    return tf.while_loop(lambda i: i < 1, lambda i: i, [0], parallel_iterations=0)


@mistake("same nested structure")
def fewer_results(tf: Any) -> Any:
    return tf.while_loop(lambda i, x: i < 1, lambda i, x: [i], [0, 1.0])


@mistake("same nested structure")
def more_results(tf: Any) -> Any:
    return tf.while_loop(lambda i: i < 1, lambda i: [i, i], [0])


@mistake("structure")
def another_structure(tf: Any) -> Any:
    return tf.while_loop(lambda i, x: i < 1, lambda i, x: [i, (x, x)], [0, [1.0, (2.0,)]])


@mistake("shape_invariants")
def another_shape(tf: Any) -> Any:
    return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, tf.concat([x, x], 0)), [0, tf.ones([1])])


@mistake("is not compatible with the initial shape")
def invariant_that_does_not_hold(tf: Any) -> Any:
    shapes = [tf.TensorShape([]), tf.TensorShape([3])]
    return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x), [0, tf.ones([2])], shapes)


@mistake("structure")
def too_few_invariants(tf: Any) -> Any:
    return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x), [0, 1.0], [tf.TensorShape([])])


@mistake("")
def invariant_of_another_type(tf: Any) -> Any:
    return tf.while_loop(lambda x: True, lambda x: x, [tf.ones([2])], [3])


@mistake("bool")
def predicate_of_another_type(tf: Any) -> Any:
    return tf.while_loop(lambda i: i, lambda i: i + 1, [0])


@mistake("rank 0")
def predicate_of_another_shape(tf: Any) -> Any:
    return tf.while_loop(lambda x: x < 3.0, lambda x: x + 1.0, [tf.ones([2])])


@mistake("maximum_iterations")
def limit_of_another_shape(tf: Any) -> Any:
    return tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0], maximum_iterations=[1, 2])


@mistake("None")
def body_without_a_result(tf: Any) -> Any:
    return tf.while_loop(lambda i: i < 3, lambda i: None, [0])


@mistake("")
def body_with_other_arguments(tf: Any) -> Any:
    return tf.while_loop(lambda i: i < 3, lambda i, j: i, [0])


@mistake("while loop")
def value_of_another_loop(tf: Any) -> Any:
    kept: list[Any] = []

    def body(i: Any) -> Any:
        kept.append(i + 1)
        return kept[-1]

    tf.while_loop(lambda i: i < 3, body, [0])
    return tf.while_loop(lambda i: i < 3, lambda i: i + kept[0], [0])


# ---- graphs that travel

EXCHANGED_VALUES = {0.5: [16.5, 69.0], -2.0: [94.0, -31.0]}
"""By x the result of `exchanged` and its gradient."""


def exchanged(tf: Any) -> None:
    """A loop with a loop and a branch in it, with its gradient: nodes ``x``, ``result``, ``slope``."""
    x = tf.placeholder(tf.float32, [], name="x")

    def body(i: Any, y: Any) -> Any:
        _, inner = tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z * 2.0), [0, x])
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y + inner, lambda: y * inner + x)

    _, result = tf.while_loop(lambda i, y: i < 4, body, [0, tf.constant(1.0)])
    tf.identity(result, name="result")
    tf.identity(tf.gradients(result, x)[0], name="slope")


# ---- running


def leaves(tf: Any, structure: Any) -> list[Any]:
    """The tensors and texts of a structure, in order; a sparse tensor is three."""
    if isinstance(structure, dict):
        return [x for key in sorted(structure) for x in leaves(tf, structure[key])]
    if isinstance(structure, tf.SparseTensor):
        return [structure.indices, structure.values, structure.dense_shape]
    if isinstance(structure, (list, tuple)):
        return [x for item in structure for x in leaves(tf, item)]
    return [structure]


def run(tf: Any, name: str) -> list[list[Any]]:
    """Of each result [value, dtype, static shape]; a text as it is."""
    with tf.Graph().as_default():
        found = leaves(tf, PROGRAMS[name](tf))
        tensors = [x for x in found if not isinstance(x, str)]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            values = session.run(tensors)
    texts = [[x] for x in found if isinstance(x, str)]
    return [[plain(v), x.dtype.name, str(x.shape)] for v, x in zip(values, tensors)] + texts


def plain(value: Any) -> Any:
    """A value as lists and numbers that JSON knows."""
    array = np.asarray(value)
    if array.dtype.kind in "OS":
        return [x.decode() for x in array.ravel()]
    if array.dtype.kind == "c":
        return [[x.real, x.imag] for x in array.ravel().tolist()]
    return array.tolist()


def node_lines(tf: Any, name: str) -> list[str]:
    """``NAME TYPE INPUTS ^CONTROLS`` for all nodes of the graph; frames after those of Enters."""
    with tf.Graph().as_default() as graph:
        PROGRAMS[name](tf)
    return sorted(node_line(op) for op in graph.get_operations())


def node_line(op: Any) -> str:
    """One operation."""
    words = [op.name, op.type, *(x.name for x in op.inputs), *sorted(f"^{x.name}" for x in op.control_inputs)]
    if op.type in ("Enter", "RefEnter"):
        words += [op.get_attr("frame_name").decode(), str(op.get_attr("is_constant"))]
    return " ".join(words)


def refusal(tf: Any, name: str) -> tuple[str, str]:
    """Class and message of the error that a program meets."""
    with tf.Graph().as_default():
        try:
            MISTAKES[name][1](tf)
        except Exception as error:
            return type(error).__name__, str(error)
    return "no error", ""
