"""Values of one number: which become constants, the memory that these take, and the same values without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.lowering.arrays import uniform_values
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune

NAME = "hold_uniform_values"
RNG = np.random.default_rng(5)
SIZES = [600, 500]  # more than other passes make constants


def names(fetches: Any, feeds: Any, targets: Any = ()) -> list[str]:
    return ops(text(fetches, feeds, NAME, targets=targets))


def constants(fetches: Any, feeds: Any, targets: Any = ()) -> list[PlanNode]:
    subgraph = prune(fetches, list(targets), feeds)
    run_passes(subgraph, EVERY, {each.name for each in EVERY} - {NAME})
    return [node for node in subgraph.nodes if node.is_constant and node.outputs[0].dims == tuple(SIZES)]


@pytest.mark.parametrize("op", ["ZerosLike", "OnesLike", "Fill"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "bfloat16", "complex64"])
def test_what_is_only_read_is_a_constant(monkeypatch: pytest.MonkeyPatch, op: str, dtype: str) -> None:
    x = tf.placeholder(dtype, SIZES)
    given = {"dims": SIZES, "value": tf.cast(1, dtype)} if op == "Fill" else {"x": x}
    one = getattr(tf.raw_ops, op)(**given)
    rows = tf.gather(one, [2, 0])
    agree(monkeypatch, [rows], {x: np.ones(SIZES, x.dtype.as_numpy_dtype)}, NAME, fires=1, tolerance=0)


def test_what_is_fetched_or_kept_or_written_stays() -> None:
    x = tf.placeholder(tf.float32, SIZES)
    zeros = tf.raw_ops.ZerosLike(x=x)
    assert "ZerosLike" in names([zeros], [x])
    assert "ZerosLike" in names([tf.reshape(zeros, [-1])], [x])
    variable = tf.Variable(zeros, use_resource=True)
    assert "ZerosLike" in names([], [x], [variable.initializer])
    array = tf.TensorArray(tf.float32, 1).write(0, zeros)
    assert "ZerosLike" in names([array.read(0)], [x])


def test_what_a_kernel_would_overwrite_stays() -> None:
    x, y = tf.placeholder(tf.float32, SIZES), tf.placeholder(tf.float32, SIZES)
    for view in (lambda zeros: zeros, lambda zeros: tf.reshape(tf.reshape(zeros, [-1]), SIZES)):
        assert "ZerosLike" in names([tf.add(view(tf.raw_ops.ZerosLike(x=x)), y)], [x, y])
    changed = tf.tensor_scatter_update(tf.raw_ops.ZerosLike(x=x), [[1]], y[:1])  # copies what it takes
    assert "ZerosLike" not in names([changed], [x, y])


def test_the_value_that_only_gave_its_shape_is_not_computed() -> None:
    x = tf.placeholder(tf.float32, SIZES)
    rows = tf.gather(tf.raw_ops.OnesLike(x=tf.sin(x)), [2, 0])
    assert "Sin" not in names([rows], [x])


def test_nodes_share_a_constants_memory_and_zeros_and_what_nobody_reads_have_none() -> None:
    x = tf.placeholder(tf.float32, SIZES)
    two = [tf.gather(tf.raw_ops.OnesLike(x=x), [i]) for i in (1, 2)]
    first, second = constants(two, [x])
    assert first.attributes["value"] is second.attributes["value"]
    [unread] = constants([], [x], [tf.raw_ops.OnesLike(x=x).op])
    value = unread.attributes["value"]
    assert value.strides == (0, 0) and value.shape == tuple(SIZES) and (value == 1).all()


def test_a_plan_keeps_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniform_values, "MOST_BYTES", 4 * SIZES[0] * SIZES[1])
    x = tf.placeholder(tf.float32, SIZES)
    several = [tf.raw_ops.Fill(dims=SIZES, value=tf.constant(float(i))) for i in range(3)]
    assert len(constants([tf.gather(each, [1]) for each in several], [x])) == 2  # the zeros, and one more


def test_in_loops_and_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    x, chosen = tf.placeholder(tf.float32, SIZES), tf.placeholder(tf.bool, [])
    ones = tf.raw_ops.OnesLike(x=x)
    looped = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.sin(y) + ones), (0, ones))[1]
    either = tf.cond(chosen, lambda: tf.raw_ops.OnesLike(x=x), lambda: tf.raw_ops.ZerosLike(x=x)) + 1.0
    feed = {x: RNG.standard_normal(SIZES)}
    agree(monkeypatch, [looped], feed, NAME, fires=1, tolerance=0)
    for value in (True, False):
        with tf.Session() as session:
            found = session.run([either, tf.tanh(either)], {**feed, chosen: value})
            again = session.run([either, tf.tanh(either)], {**feed, chosen: value})
        np.testing.assert_array_equal(found[0], np.full(SIZES, 2.0 if value else 1.0))
        np.testing.assert_array_equal(found[1], again[1])


def test_zeros_do_not_count_as_what_a_plan_holds() -> None:
    x = tf.placeholder(tf.float32, [1 << 22])
    with tf.Session() as session:
        read = tf.concat([x, tf.raw_ops.ZerosLike(x=x)], 0)
        session.run(tf.shape(read), {x: np.ones(x.shape.as_list(), np.float32)})
        session.run(read[-1], {x: np.ones(x.shape.as_list(), np.float32)})
        held = [plan.held_bytes() for plan in session.planner.plans.values()]
    assert held and max(held) < x.shape.num_elements()
    assert uniform_values.held_bytes(np.zeros([3, 4], np.float32)) == 48
