"""The gradient of batch normalisation's gradient against difference quotients of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

RANDOM = np.random.RandomState(0)
SHAPES = {"NHWC": (3, 4, 2, 5), "NCHW": (3, 5, 4, 2), "NDHWC": (2, 2, 3, 2, 5)}


def flows(version: str, layout: str, is_training: bool, dtype: Any = tf.float32) -> tuple[Any, Any]:
    """The op's three inputs that have gradients, with a scalar of all its outputs."""
    shape = SHAPES[layout]
    x, dy, weights = (tf.constant(RANDOM.randn(*shape), dtype) for _ in range(3))
    scale, other, mean = (tf.constant(RANDOM.randn(5), tf.float32) for _ in range(3))
    variance = tf.constant(RANDOM.rand(5) + 0.5, tf.float32)
    more = {"reserve_space_3": tf.zeros([0])} if version == "V3" else {}
    op = getattr(tf.raw_ops, "FusedBatchNormGrad" + version)
    dx, dscale, doffset, *_ = op(
        y_backprop=dy, x=x, scale=scale, reserve_space_1=mean, reserve_space_2=variance, epsilon=0.01,
        data_format=layout, is_training=is_training, **more,
    )  # fmt: skip
    total = tf.reduce_sum(tf.cast(dx * weights, tf.float32))
    return [dy, x, scale], total + tf.reduce_sum(dscale * other) + tf.reduce_sum(doffset * mean)


@pytest.mark.parametrize("version", ["", "V2", "V3"])
@pytest.mark.parametrize(
    ("layout", "is_training"), [("NHWC", True), ("NCHW", True), ("NDHWC", True), ("NHWC", False)]
)
def test_flows_are_difference_quotients(version: str, layout: str, is_training: bool) -> None:
    if layout == "NDHWC" and version != "V3":
        pytest.skip("of images only")
    with tf.Graph().as_default(), tf.Session() as session:
        inputs, total = flows(version, layout, is_training)
        if is_training:  # of the batch itself, as the forward op saves them
            inputs, total = _consistent(inputs, version, layout)
        found = session.run(tf.gradients(total, inputs))
        values = session.run(inputs)
        for i, (gradient, value) in enumerate(zip(found, values)):
            step = RANDOM.choice([-1.0, 1.0], value.shape).astype(np.float32) * 1e-2
            ends = [
                session.run(total, dict(zip(inputs, values)) | {inputs[i]: value + sign * step})
                for sign in (1, -1)
            ]
            np.testing.assert_allclose(np.vdot(gradient, step), (ends[0] - ends[1]) / 2, rtol=3e-2, atol=3e-3)


def _consistent(inputs: Any, version: str, layout: str) -> tuple[Any, Any]:
    """The inputs, and a scalar of the gradients that the forward op's gradient function makes of them."""
    dy, x, scale = inputs
    offset, nothing = tf.zeros([5]), tf.zeros([0])
    op = getattr(tf.raw_ops, "FusedBatchNorm" + version)
    y = op(x=x, scale=scale, offset=offset, mean=nothing, variance=nothing, data_format=layout, epsilon=0.01)[
        0
    ]
    dx, dscale = tf.gradients(y, [x, scale], dy)
    weights = [tf.constant(RANDOM.randn(*each.shape.as_list()), tf.float32) for each in (dx, dscale)]
    return inputs, tf.reduce_sum(dx * weights[0]) + tf.reduce_sum(dscale * weights[1])


def test_half_precision_flows_keep_their_types() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        inputs, total = flows("V3", "NHWC", True, tf.float16)
        found = tf.gradients(total, inputs)
        assert [each.dtype for each in found] == [tf.float16, tf.float16, tf.float32]
        assert all(np.isfinite(each).all() for each in session.run(found))


def test_a_gradient_penalty_through_a_normalised_layer() -> None:
    """As Wasserstein critics have it: the norm of the slopes is a part of the loss."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(RANDOM.randn(4, 3, 3, 2), tf.float32)
        hidden = tf.layers.batch_normalization(tf.layers.conv2d(x, 5, 2), fused=True, training=True)
        slopes = tf.gradients(tf.reduce_sum(tf.tanh(hidden)), x)[0]
        penalty = tf.reduce_mean(tf.square(tf.norm(slopes, axis=[1, 2]) - 1.0))
        step = tf.train.GradientDescentOptimizer(0.05).minimize(penalty)
        session.run(tf.global_variables_initializer())
        before = session.run(penalty)
        for _ in range(20):
            session.run(step)
        assert session.run(penalty) < before


@pytest.mark.parametrize("training", [True, False])
def test_saved_shapes_of_the_gradients_spare_results_hold_in_every_tensorflow(training: bool) -> None:
    """TensorFlow 1.15 takes those of inference for [3], 2.4 and later for [0]."""
    x, three = tf.placeholder(tf.float32, [None, 2, 2, 3]), tf.ones([3])
    found = tf.raw_ops.FusedBatchNormGradV3(
        y_backprop=x, x=x, scale=three, reserve_space_1=three, reserve_space_2=three, reserve_space_3=three,
        is_training=training,
    )  # fmt: skip
    assert [each.shape.as_list() for each in found[3:]] == [[0] if training else [None]] * 2
