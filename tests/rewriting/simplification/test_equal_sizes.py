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
from flowstone.rewriting.patterns import remove_unneeded
from flowstone.rewriting.simplification.equal_sizes import use_equal_sizes, without_equal_sizes
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.rewriting.simplification.shape_refinement import refine_shapes

N, M = -1, -2


def types(fetches: Any, feeds: Sequence[Any], dims: Any) -> list[str]:
    """The ops of the plan for feeds of these shapes."""
    with tf.Session() as s:
        plan = s.planner.plan(FetchStructure(s.graph, fetches), list(feeds), dims)
        return [node.type for node in plan.subgraph.nodes]


def lines(fetches: Any, feeds: Sequence[Any], dims: Any) -> tuple[list[str], list[str]]:
    """The graph's lines before and after the pass alone, from the first that is neither fed nor constant."""
    subgraph = prune(fetches, [], list(feeds), without_equal_sizes(dims))
    refine_shapes(subgraph)
    before = str(subgraph)
    use_equal_sizes(subgraph, dims)
    remove_unneeded(subgraph)
    found = []
    for text in (before, str(subgraph)):
        found.append([line for line in text.splitlines() if " _Arg()" not in line and "=" in line])
    return found[0], found[1]


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


# ---- reshapes


def open_sizes() -> tuple[Any, Any, Any]:
    """A feed of sizes n, m and 8, and the first two."""
    x = tf.placeholder(tf.float32, [None, None, 8], "x")
    return x, tf.shape(x)[0], tf.shape(x)[1]


@pytest.mark.parametrize(
    ("make", "after"),
    [
        (
            lambda x, n, m: tf.reshape(x, tf.stack([n * m, 8])),
            ["Const() value=[-1, 8] : int32[2]", "Reshape(%0, %1) : float32[?,8]"],
        ),
        (
            lambda x, n, m: tf.reshape(x, tf.stack([-1, m * 8])),
            ["Shape(%0) : int32[3]", "Reshape(%0, %9) : float32[?,?]"],
        ),
        (
            lambda x, n, m: tf.reshape(x, tf.stack([n, 1, m, 8])),
            ["Const() value=1 : int32[]", "ExpandDims(%0, %1) : float32[?,1,?,8]"],
        ),
        (
            lambda x, n, m: tf.reshape(x[:1, :, :1], tf.stack([m])),
            ["Const() value=[-1] : int32[1]", "Reshape(%4, %5) : float32[?]"],
        ),
        (
            lambda x, n, m: tf.reshape(x[:, :, :1], tf.stack([n, m])),
            ["StridedSlice(%0, %1, %2, %3) begin_mask=7 end_mask=3 : float32[?,?,1]",
             "Squeeze(%4) squeeze_dims=[2] : float32[?,?]"],
        ),
        (
            lambda x, n, m: tf.reshape(tf.tanh(tf.reshape(x, [-1])), tf.shape(x)),
            ["Tanh(%2) : float32[?]", "Reshape(%3, %4) : float32[?,?,8]"],
        ),
        (
            lambda x, n, m: tf.tanh(tf.reshape(tf.reshape(x, [-1, 4]), tf.shape(x))),
            ["Tanh(%0) : float32[?,?,8]"],
        ),
        (
            lambda x, n, m: tf.tanh(tf.reshape(tf.reshape(x, [-1, 16]), tf.shape(x))),  # of n * m odd, none
            ["Reshape(%0, %1) : float32[?,16]", "Reshape(%2, %3) : float32[?,?,8]",
             "Tanh(%4) : float32[?,?,8]"],
        ),
        (
            lambda x, n, m: tf.reshape(x, tf.shape(x)[::-1]),
            ["Shape(%0) : int32[3]", "Reshape(%0, %5) : float32[8,?,?]"],
        ),
    ],
)  # fmt: skip
def test_reshapes_whose_shape_is_not_computed_in_the_step(make: Any, after: list[str]) -> None:
    x, n, m = open_sizes()
    result = make(x, n, m)
    before, found = lines([result], [x], ((N, M, 8),))
    assert any(" Reshape(" in line for line in before)
    texts = [line.split(" = ")[1].split("  #")[0] for line in found]
    assert texts[-1] == after[-1]
    assert [text for text in texts if text in after] == after, found
    agree([result], [x], ((N, M, 8),), [(4, 6), (2, 4), (6, 2)])


def test_shape_arithmetic_is_done_once() -> None:
    x, n, m = open_sizes()
    again = tf.shape(tf.tanh(x))
    results = [tf.fill([n, m], 0.0), tf.fill(again[:2], 1.0), tf.fill([again[0] * again[1], n - 1], 2.0)]
    results += [tf.fill([m * n, tf.shape(x)[0] - 1], 3.0)]
    before, after = lines(results, [x], ((N, M, 8),))
    for op, count in (("Shape(", 1), ("StridedSlice(", 2), ("Mul(", 1), ("Sub(", 1), ("Pack(", 2)):
        assert sum(op in line for line in before) > count == sum(op in line for line in after), op
    agree(results, [x], ((N, M, 8),), SIZES)


def test_shape_arithmetic_of_one_branch_is_not_taken_by_another() -> None:
    x, n, _ = open_sizes()
    flag = tf.placeholder(tf.bool, [])

    def branch(sign: float) -> Any:
        return lambda: tf.fill([tf.shape(x)[0] * 2, tf.shape(x)[1] - 1], sign)

    results = [tf.cond(flag, branch(1.0), branch(-1.0)), tf.fill([n * 2], 1.0)]
    with tf.Session() as s:
        for sizes in SIZES:
            for taken in (True, False):
                picked, other = s.run(results, {x: np.ones([*sizes, 8]), flag: taken})
                assert picked.shape == (sizes[0] * 2, sizes[1] - 1) and (picked == (1 if taken else -1)).all()
                assert other.shape == (sizes[0] * 2,)


def test_a_reshape_that_may_fail_is_left_to_fail() -> None:
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    alike = tf.reshape(x, tf.shape(y)) * x
    back = tf.reshape(tf.reshape(x, [-1, 4]), tf.shape(x))
    for dims in [((N,), (M,)), ((N,), (None,))]:
        before, after = lines([alike, back], [x, y], dims)
        assert sum("Reshape(" in line for line in before) == 3 == sum("Reshape(" in line for line in after)
    with tf.Session() as s:
        for n in (4, 8, 12, 16):
            s.run([alike, back], {x: np.ones(n), y: np.ones(n)})
        for n, m in ((8, 12), (20, 16)):
            with pytest.raises(
                tf.errors.InvalidArgumentError, match=f"a tensor with {n} values, but .* has {m}"
            ):
                s.run(alike, {x: np.ones(n), y: np.ones(m)})
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.run(back, {x: np.ones(6), y: np.ones(6)})
        assert s.run(back, {x: np.ones(24), y: np.ones(1)}).shape == (24,)


def test_what_waits_goes_on_waiting() -> None:
    x, v = tf.placeholder(tf.float32, [None, 3]), tf.Variable(0.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        y = tf.identity(x)
    results = [tf.shape(y)[1] + 0, tf.size(y) // tf.shape(y)[0], tf.reshape(y, [tf.shape(x)[0], 3])]
    for result in results:
        with tf.Session() as s:
            s.run(v.initializer)
            for count, n in enumerate((2, 3, 4, 5, 6), 1):
                s.run(result, {x: np.ones([n, 3])})
                assert s.run(v) == count


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


# ---- sizes that strides leave


def _pooled(x: Any, rule: str) -> Any:
    x = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], rule)
    x = tf.nn.conv2d(x, tf.ones([3, 3, 3, 4]), [1, 2, 2, 1], "SAME")
    x = tf.nn.avg_pool(x, [1, 2, 1, 1], [1, 1, 1, 1], "SAME")
    return tf.reduce_mean(tf.square(x + tf.zeros_like(x)), [1, 2])


@pytest.mark.parametrize("rule", ["SAME", "VALID"])
def test_sizes_that_strides_leave_are_followed(rule: str) -> None:
    x = tf.placeholder(tf.float32, [1, None, None, 3])
    y = _pooled(x, rule)
    fetches, dims = [y, tf.gradients(tf.square(y), x)[0]], ((1, N, M, 3),)
    found = types(fetches, [x], dims)
    assert "DynamicStitch" in types(fetches, [x], None) and "DynamicStitch" not in found
    assert "BroadcastGradientArgs" not in found
    agree(fetches, [x], dims, [(n, m) for n in (2, 3, 4, 5, 8, 9) for m in (2, 3, 7, 11)])


def test_what_remains_of_a_division_is_left_to_the_step() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    n = tf.shape(x)[0]
    halves = tf.reshape(x[: n // 2 * 2], tf.stack([n // 2, 6]))
    thirds = tf.reshape(tf.reduce_sum(x[: n // 3 * 3], 1), [-1, 3])
    agree(
        [halves, thirds, tf.reduce_mean(halves), n // 2 * 2], [x], ((N, 3),), [(n, 0) for n in range(2, 10)]
    )
