"""Filters in their convolution's order of memory: graph text, strides, equal results, and where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, text

RNG = np.random.default_rng(17)
LAST, FIRST = (3, 0, 1, 2), (3, 2, 0, 1)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def filters(*dims: int, name: str = "w", resource: bool = False) -> Any:
    return tf.Variable(tf.random_normal(dims, stddev=0.1, seed=3), name=name, use_resource=resource)


def convolved(resource: bool = False, layout: str = "NHWC") -> Any:
    x = tf.placeholder(tf.float32, [2, 6, 6, 16] if layout == "NHWC" else [2, 16, 6, 6], name="x")
    w = filters(3, 3, 16, 64, resource=resource)
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME", data_format=layout)
    return x, w, y


def memory(session: Any, name: str) -> Any:
    """The strides of a variable's buffer."""
    (resources,) = session._target.resources._containers.values()
    return resources[name].tensor.stride()


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_filters_are_marked_with_their_order(resource, layout) -> None:
    x, _, y = convolved(resource, layout)
    order = str(LAST if layout == "NHWC" else FIRST).replace(" ", "")
    (line,) = [line for line in text([y], [x], "lay_out_filters") if "memory_order" in line]
    assert f"memory_order={order}" in line and line.endswith("# w")
    assert not any("memory_order" in line for line in text([y], [x]))


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize(
    ("optimizer", "fires"),  # the two filters, and what the optimizer holds of each
    [
        (lambda: tf.train.GradientDescentOptimizer(0.01), 2),
        (lambda: tf.train.MomentumOptimizer(0.01, 0.9), 4),
        (lambda: tf.train.AdamOptimizer(0.01), 6),
        (lambda: tf.train.RMSPropOptimizer(0.01), 6),
    ],
)
def test_training_is_the_same(monkeypatch, resource, optimizer, fires) -> None:
    x, w, y = convolved(resource)
    kernel = filters(1, 1, 64, 128, name="v", resource=resource)
    y = tf.nn.conv2d(tf.nn.relu(y), kernel, [1, 2, 2, 1], "SAME")
    loss = tf.reduce_mean(tf.square(y))
    train = optimizer().minimize(loss)
    with tf.control_dependencies([train]):
        later = tf.identity(w.read_value())
    log = agree(
        monkeypatch,
        [loss, later],
        {x: values(2, 6, 6, 16)},
        "lay_out_filters",
        fires=fires,
        setup=tf.global_variables_initializer(),
    )
    assert log.count("lay_out_filters: w") >= 1 and "lay_out_filters: v: " in log


def test_slots_follow_their_filters() -> None:
    x, w, y = convolved()
    train = tf.train.AdamOptimizer(0.01).minimize(tf.reduce_sum(y * y))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        before = s.run(w)
        assert memory(s, "w") == memory(s, "w/Adam") == (3 * 16 * 64, 16 * 64, 64, 1)
        s.run(train, {x: np.zeros((2, 6, 6, 16), "f")})
        assert memory(s, "w") == memory(s, "w/Adam") == memory(s, "w/Adam_1") == (48, 16, 1, 144)
        np.testing.assert_array_equal(s.run(w), before)
        assert s.run(w).flags.c_contiguous


def test_values_loaded_later_take_the_order() -> None:
    x, w, y = convolved()
    images, loaded = values(2, 6, 6, 16), values(3, 3, 16, 64)
    with tf.Session() as s:
        with pytest.raises(tf.errors.FailedPreconditionError):
            s.run(y, {x: images})
        w.load(loaded, s)
        assert memory(s, "w") == (48, 16, 1, 144)
        np.testing.assert_array_equal(s.run(w), loaded)
        first = s.run(y, {x: images})
        s.run(tf.assign(w, 2 * w))
        np.testing.assert_allclose(s.run(y, {x: images}), 2 * first, rtol=1e-6)


def test_other_variables_stay() -> None:
    x = tf.placeholder(tf.float32, [2, 6, 6, 16])
    small = tf.nn.conv2d(x, filters(3, 3, 16, 4), [1, 1, 1, 1], "SAME")
    flat = filters(144, 64, name="flat")
    reshaped = tf.nn.conv2d(x, tf.reshape(flat, [3, 3, 16, 64]), [1, 1, 1, 1], "SAME")
    changed = tf.nn.conv2d(x, filters(3, 3, 16, 64, name="changed") * 2.0, [1, 1, 1, 1], "SAME")
    lines = text([small, reshaped, changed], [x], "lay_out_filters")
    assert not any("memory_order" in line for line in lines)


def test_filters_in_loops_and_conditions(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [2, 6, 6, 32])
    w, other = filters(3, 3, 32, 32), filters(3, 3, 32, 32, name="other")

    def body(i: Any, y: Any) -> Any:
        return i + 1, tf.tanh(tf.nn.conv2d(y, w, [1, 1, 1, 1], "SAME"))

    y = tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]
    chosen = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.identity(w), lambda: tf.identity(other))
    y = tf.nn.conv2d(y, chosen, [1, 1, 1, 1], "SAME")
    gradients = tf.gradients(y, [w, other])
    log = agree(
        monkeypatch,
        [y, *gradients],
        {x: values(2, 6, 6, 32)},
        "lay_out_filters",
        fires=1,
        setup=tf.global_variables_initializer(),
        tolerance=1e-3,
    )
    assert "lay_out_filters: w: " in log and "lay_out_filters: other" not in log
