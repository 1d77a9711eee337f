"""Sizes that are equal, however large: what they decide, what they do not, and the same values everywhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.client.feeds_fetches import FetchStructure
from flowstone.client.runners import compiled_runner
from flowstone.framework.types.shape import broadcast
from flowstone.rewriting.simplification.named_sizes import Size, Undecided

N, M = -1, -2


def types(fetches: Any, feeds: Sequence[Any], dims: Any) -> list[str]:
    """The ops of the plan for feeds of these shapes."""
    with tf.Session() as s:
        plan = s.planner.plan(FetchStructure(s.graph, fetches), list(feeds), dims)
        return [node.type for node in plan.subgraph.nodes]


def agree(fetches: Any, feeds: Sequence[Any], dims: Any, sizes: Sequence[tuple[int, int]]) -> None:
    """The plan for these shapes computes, for these sizes of n and m, what the plan for all shapes does."""
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        structure, feeds = FetchStructure(s.graph, fetches), list(feeds)
        run = [
            compiled_runner(s.steps, structure, feeds, s.planner.plan(structure, feeds, d), d)
            for d in (dims, None)
        ]
        numbers = np.random.RandomState(3)
        for n, m in sizes:
            shapes = [[{N: n, M: m}.get(k, k) for k in each] for each in dims]
            values = [numbers.uniform(0.5, 1.5, shape).astype("f") for shape in shapes]
            for got, wanted in zip(*(each(*values) for each in run)):
                assert np.shape(got) == np.shape(wanted)
                np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


SIZES = [(2, 3), (3, 2), (4, 4), (5, 3), (3, 7)]


# ---- sizes


def test_sizes_are_compared_where_all_that_is_known_of_them_says_so():
    n, m = Size((N,)), Size((M,))
    assert n == Size((N,)) and n * m == m * n and n * 6 // 3 == n * 2 and n * m // n == m and n * 5 // n == 5
    assert n != 1 and n != 0 and n != -1 and n is not None and n != None  # noqa: E711
    assert n > 1 and n >= 1 and not n < 1 and n * m > 3 and n * 4 > 7 and n * 6 % 3 == 0
    for undecided in (
        lambda: n == m, lambda: n == 2, lambda: n > 2, lambda: n < 3, lambda: n * 3 // 2, lambda: n // m,
        lambda: n * 3 % 2, lambda: n * 0, lambda: n * m == 4,
    ):  # fmt: skip
        with pytest.raises(Undecided):
            undecided()
    for unknown in (
        lambda: 1 - n,
        lambda: int(n),
        lambda: range(n),
        lambda: {n},
        lambda: -n,
        lambda: n == "a",
    ):
        with pytest.raises(TypeError):
            unknown()
    assert repr(n * m * 3) == "3*n1*n2" and repr(n - 1) == "(n1-1)"


def test_they_are_broadcast_as_sizes_are():
    n = Size((N,))
    assert broadcast((n, 3), (3,)) == (n, 3) == broadcast((n, 1), (1, 3)) == broadcast((n, 3), (n, 3))
    with pytest.raises(Undecided):
        broadcast((n, 3), (5, 3))


# ---- what they decide


def test_gradients_of_operands_of_one_shape_are_not_summed():
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
    gradients = tf.gradients(tf.tanh(x) * tf.exp(y) + x[0], [x, y])
    summing = types(gradients, [x, y], ((None, 3), (None, 3)))
    assert "BroadcastGradientArgs" in summing
    assert "BroadcastGradientArgs" in types(gradients, [x, y], ((N, 3), (M, 3)))
    equal = types(gradients, [x, y], ((N, 3), (N, 3)))
    assert "BroadcastGradientArgs" not in equal and "Reshape" not in equal
    agree(gradients, [x, y], ((N, 3), (N, 3)), SIZES)


def test_shapes_are_followed_through_shape_arithmetic():
    x = tf.placeholder(tf.float32, [None, None, 4])
    batch, steps = tf.shape(x)[0], tf.shape(x)[1]
    flat = tf.reshape(x, [-1, 4])
    again = tf.reshape(tf.tanh(flat), [batch, steps, 4])
    transposed = tf.transpose(tf.reshape(again, tf.stack([batch, steps, 2, 2])), [0, 2, 1, 3])
    loss = tf.reduce_sum(tf.reshape(tf.transpose(transposed, [0, 2, 1, 3]), tf.shape(x)) * x)
    gradients = tf.gradients(loss, x)
    assert "BroadcastGradientArgs" in types(gradients, [x], None)
    assert "BroadcastGradientArgs" not in types(gradients, [x], ((N, M, 4),))
    agree([loss, *gradients], [x], ((N, M, 4),), SIZES)


def test_a_broadcast_to_what_the_other_operand_has_is_left_to_the_op():
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [3])
    product = tf.broadcast_to(y, tf.shape(x)) * x
    assert "BroadcastTo" in types([product], [x, y], None)
    assert "BroadcastTo" not in types([product], [x, y], ((N, 3), (3,)))
    agree([product], [x, y], ((N, 3), (3,)), SIZES)


def test_the_number_of_elements_in_a_mean_is_known():
    x = tf.placeholder(tf.float32, [None, None, 4])
    gradients = tf.gradients(tf.square(tf.reduce_mean(x, 2)), x)
    assert "FloorDiv" in types(gradients, [x], None)
    assert "FloorDiv" not in types(gradients, [x], ((N, M, 4),))
    agree(gradients, [x], ((N, M, 4),), SIZES)
    other = tf.gradients(tf.square(tf.reduce_mean(x, 1)), x)  # m, which the step knows
    agree(other, [x], ((N, M, 4),), SIZES)


def test_what_depends_on_how_large_they_are_is_left_to_the_step():
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    n = tf.shape(x)[0]
    results = [
        tf.minimum(n, 3),
        tf.cond(n > 3, lambda: x * 2, lambda: x),
        tf.reshape(x, [-1])[:3],
        tf.pad(x, [[1, 0]]),
        tf.concat([x, y], 0),
        tf.tile(x, [2]),
        tf.gradients(tf.reduce_sum(tf.expand_dims(x, 1) * y), [x, y])[0],
        tf.reshape(tf.expand_dims(x, 1) * y, [-1, n]),
        tf.strided_slice(x, [n - 2], [n]),
        tf.range(n),
        tf.fill([n, 2], 1.0) + tf.ones([n, 1]),
    ]
    agree(results, [x, y], ((N,), (M,)), SIZES)
    agree(results, [x, y], ((N,), (N,)), [(n, n) for n in (2, 3, 4, 7)])


def test_loops_and_functions():
    x = tf.placeholder(tf.float32, [None, 3])

    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.tanh(h * x + h)

    _, h = tf.while_loop(lambda i, h: i < 3, body, [0, x])
    steps = tf.scan(lambda h, row: tf.tanh(h + row), x)
    gradients = tf.gradients([h * x, steps * x], x)
    agree([h, steps, *gradients], [x], ((N, 3),), SIZES)


# ---- random programs


class Program:
    """Random arithmetic on values whose sizes are n, m, 1, 3 and products of these."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        shapes = [(None, 3), (None, None), (None,), (3,)]
        self.dims = ((N, 3), (N, M), (M,), (3,))
        self.feeds = [tf.placeholder(tf.float32, shape) for shape in shapes]
        self.values = [(x, dims) for x, dims in zip(self.feeds, self.dims)]
        for _ in range(self.random.randint(4, 10)):
            self.values.append(self.result())

    def result(self) -> Any:
        x, dims = self.random.choice(self.values)
        kind = self.random.choice(["binary", "binary", "binary", "reduce", "turn", "flat", "expand", "slice"])
        if kind == "binary":
            fitting = [(y, other) for y, other in self.values if self.broadcast(dims, other) is not None]
            y, other = self.random.choice(fitting)
            function = self.random.choice([tf.add, tf.multiply, tf.maximum, tf.subtract])
            return function(x, y), self.broadcast(dims, other)
        if kind == "reduce" and dims:
            axis, keep = self.random.randrange(len(dims)), self.random.random() < 0.5
            rest = (*dims[:axis], *((1,) if keep else ()), *dims[axis + 1 :])
            return self.random.choice([tf.reduce_mean, tf.reduce_max])(x, axis, keepdims=keep), rest
        if kind == "turn" and len(dims) == 2:
            return tf.transpose(x), dims[::-1]
        if kind == "flat" and len(dims) == 2:
            other = tf.tanh(tf.reshape(x, [-1]))
            return tf.reshape(other, tf.shape(x)), dims
        if kind == "slice" and dims and dims[0] != 1:
            return x[:1], (1, *dims[1:])
        return tf.expand_dims(tf.tanh(x), 0), (1, *dims)

    def broadcast(self, a: Any, b: Any) -> Any:
        rank = max(len(a), len(b))
        pairs = list(zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b))
        if rank > 4 or any(m != n and 1 not in (m, n) for m, n in pairs):
            return None
        return tuple(n if m == 1 else m for m, n in pairs)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_and_their_gradients(seed):
    program = Program(seed)
    results = [x for x, _ in program.values[-3:]]
    gradients = [g for g in tf.gradients(results, program.feeds) if g is not None]
    agree([*results, *gradients], program.feeds, program.dims, [*SIZES, (3, 3)])
