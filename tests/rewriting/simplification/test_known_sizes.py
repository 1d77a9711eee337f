"""What is known of shapes and sizes where sizes have names: through arithmetic, slices, loops and arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.rewriting.simplification.equal_sizes import without_equal_sizes
from flowstone.rewriting.simplification.known_sizes import known_sizes
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.rewriting.simplification.shape_refinement import refine_shapes

DIMS = ((-1, 3), (-1, -2), None)


def known(fetches: Any, feeds: Any, dims: Any = DIMS) -> list[str]:
    """The values of the fetches, or else their shapes, as far as they are known."""
    subgraph = prune(fetches, [], feeds, without_equal_sizes(dims))
    refine_shapes(subgraph)
    found = known_sizes(subgraph, dims)
    for node in subgraph.nodes:
        found.add(node)
    return [
        str(found.values[x].tolist()) if x in found.values else _text(found.of(x)) for x in subgraph.fetches
    ]


def _text(dims: Any) -> str:
    return "?" if dims is None else "[" + ",".join("?" if n is None else repr(n) for n in dims) + "]"


def program(make: Callable[..., Any], dims: Any = DIMS) -> str:
    """What is known of what is made of feeds of float32[?,3], float32[?,?] and float32 of any shape."""
    feeds = [tf.placeholder(tf.float32, shape) for shape in ([None, 3], [None, None], None)]
    return known([make(*feeds)], feeds, dims)[0]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, y, z: tf.shape(y), "[n1, n2]"),
        (lambda x, y, z: tf.shape(x), "[n1, 3]"),
        (lambda x, y, z: tf.shape(y)[::-1], "[n2, n1]"),
        (lambda x, y, z: tf.size(y), "n1*n2"),
        (lambda x, y, z: tf.reduce_prod(tf.shape(y)[:1]) * tf.shape(y)[1] // 2, "(n1*n2//2)"),
        (lambda x, y, z: tf.shape(x)[0] * 6 // 3, "2*n1"),
        (lambda x, y, z: tf.reduce_prod(tf.shape(x)), "3*n1"),
        (lambda x, y, z: tf.reduce_prod(tf.shape(x), keepdims=True), "[1]"),
        (lambda x, y, z: tf.maximum(tf.shape(x)[0], 1), "n1"),
        (lambda x, y, z: tf.minimum(tf.shape(x)[0], 5), "[]"),
        (lambda x, y, z: tf.shape(x)[0] - 1, "(n1-1)"),
        (lambda x, y, z: tf.cast(tf.cast(tf.shape(x)[0], tf.int64) + 1, tf.int32) - 1, "n1"),
        (lambda x, y, z: tf.shape(x)[0] - tf.shape(y)[0], "0"),
        (lambda x, y, z: 1 - tf.shape(x)[0], "[]"),
        (lambda x, y, z: tf.shape(x)[0] - tf.shape(y)[1], "[]"),
        (lambda x, y, z: tf.stack([-1, tf.shape(x)[0], 1 << 30, (1 << 31) - 1]),
         "[-1, n1, 1073741824, 2147483647]"),
        (lambda x, y, z: tf.concat([[7, 0], tf.shape(y), [2]], 0), "[7, 0, n1, n2, 2]"),
        (lambda x, y, z: tf.gather(tf.shape(y), [1, 0]), "[n2, n1]"),
        (lambda x, y, z: tf.gather([5, 6, 7, 8, 9], tf.shape(y)), "[2]"),
        (lambda x, y, z: tf.shape(z), "?"),
        (lambda x, y, z: tf.unstack(tf.shape(y))[1], "n2"),
        (lambda x, y, z: tf.equal(tf.shape(y)[0], 1), "False"),
        (lambda x, y, z: tf.equal(tf.shape(y)[0], tf.shape(x)[0]), "True"),
        (lambda x, y, z: tf.equal(tf.shape(y), tf.shape(y[::2])), "[2]"),
        (lambda x, y, z: tf.reduce_all(tf.not_equal(tf.shape(y[::2]), tf.shape(y))), "[]"),
        (lambda x, y, z: tf.identity(tf.shape(y)[0] > 1), "True"),
        (lambda x, y, z: tf.less(tf.shape(y)[0], 3), "[]"),
        (lambda x, y, z: tf.stack([tf.shape(y), tf.shape(y)[::-1]]), "[[n1, n2], [n2, n1]]"),
    ],
)  # fmt: skip
def test_values(make: Any, expected: str) -> None:
    found = program(make)
    assert found == expected or (expected == "?" and found == "[?]")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, y, z: tf.reshape(y, [-1]), "[n1*n2]"),
        (lambda x, y, z: tf.reshape(y, [-1, tf.shape(y)[1]]), "[n1,n2]"),
        (lambda x, y, z: tf.reshape(x, [-1, 6]), "[?,6]"),
        (lambda x, y, z: tf.reshape(x, [-1, tf.shape(y)[1]]), "[?,?]"),
        (lambda x, y, z: tf.expand_dims(y, 1), "[n1,1,n2]"),
        (lambda x, y, z: tf.squeeze(tf.expand_dims(y, 1)), "[n1,n2]"),
        (lambda x, y, z: y[1:], "[(n1-1),n2]"),
        (lambda x, y, z: y[1:-1], "[(n1-2),n2]"),
        (lambda x, y, z: y[2:, :-1], "[(n1-2),(n2-1)]"),
        (lambda x, y, z: y[3:], "[?,n2]"),  # of two rows, none
        (lambda x, y, z: y[: tf.shape(y)[0] - 1], "[(n1-1),n2]"),
        (lambda x, y, z: y[:, : tf.shape(y)[0]], "[n1,?]"),
        (lambda x, y, z: y[tf.shape(y)[0] - 1 :], "[1,n2]"),
        (lambda x, y, z: y[tf.shape(y)[0] - 1], "[n2]"),
        (lambda x, y, z: tf.slice(y, [0, 0], [tf.shape(y)[0] - 1, -1]), "[(n1-1),n2]"),
        (lambda x, y, z: tf.ones([5, 5])[: tf.shape(y)[0]], "[?,5]"),
        (lambda x, y, z: y[:2, :1], "[2,1]"),
        (lambda x, y, z: y[:3], "[?,n2]"),
        (lambda x, y, z: y[-1], "[n2]"),
        (lambda x, y, z: y[:, 0], "[n1]"),
        (lambda x, y, z: y[::2], "[?,n2]"),
        (lambda x, y, z: tf.concat([x, x[:1]], 0), "[(n1+1),3]"),
        (lambda x, y, z: tf.concat([y, x], 1), "[n1,(n2+3)]"),
        (lambda x, y, z: tf.concat([y, x], 0), "[?,3]"),
        (lambda x, y, z: tf.range(tf.shape(x)[0]), "[n1]"),
        (lambda x, y, z: tf.range(1, tf.shape(x)[0]), "[(n1-1)]"),
        (lambda x, y, z: tf.range(0, tf.shape(x)[0], 2), "[?]"),
        (lambda x, y, z: tf.range(4, tf.shape(x)[0]), "[?]"),
        (lambda x, y, z: tf.fill(tf.shape(y)[::-1], 1.0), "[n2,n1]"),
        (lambda x, y, z: x + y, "[?,3]"),
        (lambda x, y, z: x + x[:1], "[n1,3]"),
        (lambda x, y, z: tf.matmul(y, x, transpose_a=True), "[n2,3]"),
        (lambda x, y, z: tf.transpose(y), "[n2,n1]"),
        (lambda x, y, z: tf.cond(z > 0, lambda: x + 1, lambda: x * 2), "[n1,3]"),
        (lambda x, y, z: tf.cond(z > 0, lambda: x, lambda: tf.ones([5, 3])), "[?,3]"),
        (lambda x, y, z: tf.pad(y[:, :1], tf.stack([[0, 0], [0, tf.shape(y)[1] - 1]])), "[n1,n2]"),
        (lambda x, y, z: tf.unsorted_segment_sum(x, tf.range(tf.shape(x)[0]), tf.shape(y)[1]), "[n2,3]"),
        (lambda x, y, z: z, "?"),
    ],
)  # fmt: skip
def test_shapes(make: Any, expected: str) -> None:
    assert program(make) == expected


# ---- loops


def loop(body: Callable[[Any], Any], h: Any, steps: int = 3) -> Any:
    """`body`, some times; nothing is known of the result when the graph is built."""
    shapes = [tf.TensorShape([]), tf.TensorShape([None] * h.shape.ndims)]
    return tf.while_loop(lambda i, h: i < steps, lambda i, h: (i + 1, body(h)), [0, h], shapes)[1]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, y, z: loop(tf.tanh, y), "[n1,n2]"),
        (lambda x, y, z: loop(lambda h: h + x, x), "[n1,3]"),
        (lambda x, y, z: loop(lambda h: tf.concat([h, h[:1]], 0), y), "[?,n2]"),
        (lambda x, y, z: loop(lambda h: tf.concat([h, h[:, :1]], 1), x), "[n1,?]"),  # not 3
        (lambda x, y, z: loop(tf.transpose, y), "[?,?]"),
        (lambda x, y, z: loop(lambda h: loop(tf.tanh, h) + 1.0, y), "[n1,n2]"),
        (lambda x, y, z: loop(lambda h: loop(lambda g: tf.concat([g, g[:1]], 0), h), y), "[?,n2]"),
        (lambda x, y, z: loop(lambda h: tf.transpose(loop(tf.tanh, h)), y), "[?,?]"),
        (lambda x, y, z: loop(lambda h: loop(tf.tanh, h)[1:], y), "[?,n2]"),
        (lambda x, y, z: loop(lambda h: tf.reshape(h, tf.shape(y)), y), "[n1,n2]"),
        (lambda x, y, z: loop(lambda h: tf.reshape(h, tf.shape(y)), tf.reshape(y, [-1, 1])), "[?,?]"),
    ],
)  # fmt: skip
def test_loop_variables_keep_what_all_iterations_give_them(make: Any, expected: str) -> None:
    assert program(make) == expected


def test_of_two_loop_variables_neither_is_believed_where_they_are_exchanged() -> None:
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
    shapes = [tf.TensorShape([None, None])] * 2
    swapped = tf.while_loop(lambda a, b: tf.reduce_sum(a) > 9, lambda a, b: (b, a), [x, y], shapes)
    assert known(swapped, [x, y], ((-1, 3), (-2, 3))) == ["[?,3]", "[?,3]"]
    assert known(swapped, [x, y], ((-1, 3), (-1, 3))) == ["[n1,3]", "[n1,3]"]


def test_gradients_through_loops_know_the_sizes_from_their_stacks() -> None:
    y = tf.placeholder(tf.float32, [None, None])
    sizes = tf.shape(y)
    result = loop(lambda h: tf.tanh(tf.reshape(h * y, tf.stack([sizes[0], sizes[1]]))), y)
    assert known([tf.gradients(result, y)[0]], [y], ((-1, -2),)) == ["[n1,n2]"]


# ---- arrays


def read(values: Any, index: int = 0) -> Any:
    array = tf.TensorArray(tf.float32, tf.shape(values)[0], clear_after_read=False).unstack(values)
    return array.read(index)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, y, z: read(y), "[n2]"),
        (lambda x, y, z: tf.map_fn(tf.tanh, y), "[n1,n2]"),
        (lambda x, y, z: tf.scan(lambda h, row: tf.tanh(h + row), y), "[n1,n2]"),
        (lambda x, y, z: tf.gradients(tf.scan(lambda h, row: tf.tanh(h + row), y), y)[0], "[n1,n2]"),
        (lambda x, y, z: read(tf.tanh(z)), "?"),
        (lambda x, y, z: tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, x).write(1, y).read(0),
         "[?,?]"),
        (lambda x, y, z: tf.TensorArray(tf.float32, 2).write(0, y).write(1, tf.tanh(y)).stack(), "[2,n1,n2]"),
    ],
)  # fmt: skip
def test_what_arrays_give_has_the_shape_of_all_that_is_put_in(make: Any, expected: str) -> None:
    assert program(make) == expected


def test_rows_of_what_has_no_known_rank_are_of_no_known_shape() -> None:
    x, z = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, None)
    with tf.Session() as s:
        for n in (2, 3, 4, 5):
            row, total = s.run([read(z) + 1.0, tf.reduce_sum(x)], {x: np.ones([n, 3]), z: np.ones([n, n])})
            np.testing.assert_array_equal(row, [2.0] * n)
            assert total == 3 * n
