"""Loops' scalars as Python numbers: which are, and that they are what tensors would be, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.kernel import Environment
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.analyses.frames import order_by_frames
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.code.numbers import Numbers
from flowstone.runtime.code.segments import compile_segment
from flowstone.runtime.plans import plan

pytestmark = pytest.mark.usefixtures("graph")


def numbers_of(fetches, feeds=()):
    subgraph = run_passes(prune(fetches, [], list(feeds)), EVERY)
    frames = order_by_frames(subgraph)
    return {x.op.name.rpartition("/")[2] for x in Numbers(subgraph, frames).outputs}


def source_of(fetches, feeds=()):
    return compile_segment(run_passes(prune(fetches, [], list(feeds)), EVERY), Environment()).source


@pytest.mark.by_aten
def test_a_counter_and_its_predicate_are_numbers_and_vectors_are_not():
    x = tf.placeholder(tf.float32, [3])
    out = tf.while_loop(lambda i, v: i < 10, lambda i, v: (i + 1, v * 2.0), [tf.constant(0), x])[1]
    found = numbers_of([out], [x])
    assert {"Less", "add", "Merge"} <= found and "mul" not in found
    assert "item" not in source_of([out], [x])


@pytest.mark.by_aten
def test_a_scalar_that_a_tensor_op_takes_stays_a_tensor():
    x = tf.placeholder(tf.float32, [3])
    out = tf.while_loop(
        lambda i, s, v: i < 10, lambda i, s, v: (i + 1, s * 2.0, v * s), [tf.constant(0), tf.constant(1.0), x]
    )[2]
    found = numbers_of([out], [x])
    assert "add" in found and "mul" not in found


@pytest.mark.by_aten
@pytest.mark.parametrize("compare", [tf.less, tf.less_equal, tf.greater, tf.greater_equal])
def test_a_counter_that_is_compared_with_a_vector_is_a_number(compare):
    lengths = tf.placeholder(tf.int32, [4])
    first = [tf.constant(0), tf.zeros([4], tf.int32), tf.zeros([4], tf.int32)]

    def body(i, before, after):
        before += tf.cast(compare(i, lengths), tf.int32)
        return i + 1, before, after + tf.cast(compare(lengths, i), tf.int32)

    out = tf.while_loop(lambda i, *_: i < 5, body, first)[1:]
    assert {"Less", "add_1"} <= numbers_of(out, [lengths])
    assert "lt(" not in source_of(out, [lengths]).partition("if not")[0]
    values = np.array([0, 2, 3, 7])
    sides = np.arange(5)[:, None], values[None]
    expected = [getattr(np, compare.__name__)(*pair).sum(0) for pair in (sides, sides[::-1])]
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(out, {lengths: values}), expected)


@pytest.mark.by_aten
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.float32])
@pytest.mark.parametrize("compare", [tf.less, tf.less_equal, tf.greater, tf.greater_equal])
def test_arrays_beside_counters(dtype, compare):
    """A counter may be either operand; in every run it has the same values."""
    array = np.arange(-2, 8)
    wanted = {
        tf.less: np.less, tf.less_equal: np.less_equal, tf.greater: np.greater,
        tf.greater_equal: np.greater_equal,
    }[compare]  # fmt: skip
    with tf.Session() as session:
        x = tf.placeholder(dtype, [10])

        def body(i, first, second):
            return (
                i + tf.constant(1, dtype),
                first + tf.cast(compare(x, i), tf.int32),
                second + tf.cast(compare(i, x), tf.int32),
            )

        start = tf.constant(0, dtype), tf.zeros([10], tf.int32), tf.zeros([10], tf.int32)
        _, first, second = tf.while_loop(lambda i, *_: i < tf.constant(5, dtype), body, start)
        for _ in range(2):
            found = session.run([first, second], {x: array})
            np.testing.assert_array_equal(found[0], sum(wanted(array, i).astype(int) for i in range(5)))
            np.testing.assert_array_equal(found[1], sum(wanted(i, array).astype(int) for i in range(5)))


@pytest.mark.by_aten
def test_scalars_of_which_one_is_a_tensor_are_compared():
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [5])

    def body(i, total):
        place = tf.cast(tf.argmax(x * tf.cast(n, tf.float32)), tf.int32)
        smaller = tf.stack([tf.cast(tf.less(i, place), tf.int32), tf.cast(tf.less(place, i), tf.int32)])
        return i + 1, total + smaller

    out = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), tf.zeros([2], tf.int32)])[1]
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(out, {n: 5, x: [0, 0, 0, 1, 0]}), [3, 1])


@pytest.mark.by_aten
def test_constants_that_nobody_folded_are_compared(monkeypatch):
    def without_folding(subgraph, passes, others):
        return run_passes(subgraph, passes, others | {"fold_constants"})

    monkeypatch.setattr(plan, "run_passes", without_folding)
    n, one, x = tf.placeholder(tf.int32, []), tf.constant(1), tf.placeholder(tf.int32, [3])
    loop = tf.while_loop(lambda i: i < n, lambda i: i + 2, [tf.constant(0)])
    others = [
        tf.less(one, tf.constant(2)),
        tf.less(one, n),
        tf.less(n, one),
        tf.less(one, x),
        tf.less(x, one),
    ]
    with tf.Session() as session:
        found = session.run([loop, *others], {n: 7, x: [0, 1, 2]})
    assert found[:4] == [8, True, True, False]
    np.testing.assert_array_equal(found[4:], [[False, False, True], [True, False, False]])


@pytest.mark.by_aten
def test_a_limit_from_outside_is_read_once():
    n = tf.placeholder(tf.int32, [])
    out = tf.while_loop(lambda i: i < n, lambda i: i + 1, [tf.constant(0)])
    assert source_of([out], [n]).count(".item()") == 1
    with tf.Session() as session:
        assert session.run(out, {n: 7}) == 7


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
@pytest.mark.by_aten
def test_integers_wrap_around(dtype):
    start = np.iinfo(dtype.as_numpy_dtype).max - 2
    out = tf.while_loop(
        lambda i, k: k < 5,
        lambda i, k: (i * 3 + i - k, k + 1),
        [tf.constant(start, dtype), tf.constant(0, dtype)],
    )
    assert {"mul", "sub"} <= numbers_of(list(out))
    value = np.array(start, dtype.as_numpy_dtype)
    with np.errstate(over="ignore"):
        for k in range(5):
            value = value * dtype.as_numpy_dtype(3) + value - dtype.as_numpy_dtype(k)
    with tf.Session() as session:
        assert session.run(out[0]) == value


@pytest.mark.by_aten
def test_float32_is_rounded_after_every_operation():
    x = tf.placeholder(tf.float32, [])
    out = tf.while_loop(lambda a, i: i < 40, lambda a, i: (a * 1.1 - 0.3 + a, i + 1), [x, tf.constant(0)])[0]
    assert {"mul", "sub"} <= numbers_of([out], [x])
    value = np.float32(0.7)
    for _ in range(40):
        value = value * np.float32(1.1) - np.float32(0.3) + value
    with tf.Session() as session:
        assert session.run(out, {x: 0.7}) == value


def test_overflow_and_nan():
    big = tf.while_loop(
        lambda a, i: i < 200, lambda a, i: (a * 10.0, i + 1), [tf.constant(1.0), tf.constant(0)]
    )[0]
    nan = tf.while_loop(lambda a, i: i < 3, lambda a, i: (a - a, i + 1), [big, tf.constant(0)])[0]
    with tf.Session() as session:
        assert session.run(big) == np.inf and np.isnan(session.run(nan))


def test_floor_division_by_zero_names_the_node():
    n = tf.placeholder(tf.int32, [])
    out = tf.while_loop(lambda i: i < 3, lambda i: i + tf.floordiv(10, n), [tf.constant(0)])
    with tf.Session() as session:
        assert session.run(out, {n: 4}) == 4
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Integer division by zero(.|\n)*FloorDiv"):
            session.run(out, {n: 0})
        assert session.run(out, {n: 10}) == 3


@pytest.mark.by_aten
def test_branches_nested_loops_and_logic():
    n = tf.placeholder(tf.int32, [])

    def body(i, odd, total):
        inner = tf.while_loop(
            lambda j: tf.logical_and(j < i, tf.logical_not(j > 3)), lambda j: j + 1, [tf.constant(0)]
        )
        return i + 1, tf.cond(tf.equal(i % 2, 1), lambda: odd + 1, lambda: odd), total + inner

    out = tf.while_loop(lambda i, *_: i < n, body, [tf.constant(0)] * 3)
    assert (
        "tensor("
        not in source_of(list(out), [n]).split("while step")[-1].split("break", 1)[1].split("del")[0]
    )
    with tf.Session() as session:
        assert session.run(out, {n: 9}) == (9, 4, sum(min(i, 4) for i in range(9)))


@pytest.mark.by_aten
def test_logic_asks_truths_of_arrays_for_their_value():
    """As decoders do: as long as there is time and something is not finished."""
    x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])

    def body(i, v, odd):
        below = tf.reduce_any(v < 0.0)
        return i + 1, v - 1.0, tf.cond(tf.logical_or(below, i > 7), lambda: odd + 1, lambda: odd)

    out = tf.while_loop(
        lambda i, v, _: tf.logical_and(i < n, tf.logical_not(tf.reduce_all(v < -2.0))),
        body,
        [tf.constant(0), x, tf.constant(0)],
    )
    source = source_of(list(out), [x, n])
    assert source.count("bool(") == 2 and "logical" not in source
    with tf.Session() as session:
        for most, start in ((4, [1.0, 2, 3]), (99, [1.0, 2, 3]), (99, [-9.0, -9, -9]), (99, [9.0, -9, -9])):
            steps = min(most, max(0, int(max(start)) + 3))
            found = session.run(out, {x: start, n: most})
            odd = sum(min(start) - i < 0 or i > 7 for i in range(steps))
            assert (found[0], found[2]) == (steps, odd)
            np.testing.assert_array_equal(found[1], np.array(start) - steps)


@pytest.mark.by_aten
def test_a_truth_that_is_taken_elsewhere_stays_a_tensor():
    x = tf.placeholder(tf.float32, [3])

    def body(i, v, seen):
        below = tf.reduce_any(v < 0.0)
        return i + 1, v - 1.0, tf.concat([seen, [tf.logical_not(below)]], 0)

    shapes = [tf.TensorShape([]), tf.TensorShape([3]), tf.TensorShape([None])]
    start = [tf.constant(0), x, tf.constant([True])]
    seen = tf.while_loop(lambda i, *_: i < 4, body, start, shape_invariants=shapes)[2]
    with tf.Session() as session:
        assert session.run(seen, {x: [1.0, 2, 3]}).tolist() == [True, True, True, False, False]
