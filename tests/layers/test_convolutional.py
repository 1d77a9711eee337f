"""Convolution layers of all kinds: what is refused, arguments' spellings, static shapes."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def x(*shape: int | None) -> tf.Tensor:
    return tf.placeholder(tf.float32, shape)


def images() -> tf.Tensor:
    return x(None, 8, 8, 3)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: tf.layers.conv2d(x(None, 8, 8, None), 4, 3), "The channel dimension .* should be defined"),
        (lambda: tf.layers.conv2d(x(None, 8, 8), 4, 3), "expected ndim=4, found ndim=3"),
        (lambda: tf.layers.conv2d(tf.placeholder(tf.float32), 4, 3), "its rank is undefined"),
        (
            lambda: tf.layers.conv2d(images(), 4, (3,)),
            r"`kernel_size` argument must be a tuple of 2 integers",
        ),
        (lambda: tf.layers.conv2d(images(), 4, "ab"), "including element a of type"),
        (lambda: tf.layers.conv2d(images(), 4, (3, "a")), "including element a of type"),
        (lambda: tf.layers.conv2d(images(), 4, None), "`kernel_size` argument must be a tuple of 2"),
        (lambda: tf.layers.conv2d(images(), 4, 3, (1, 2, 3)), "`strides` argument must be a tuple of 2"),
        (lambda: tf.layers.conv2d(images(), 4, 3, padding="full"), "`padding` argument must be one of"),
        (lambda: tf.layers.conv2d(images(), 4, 3, padding="causal"), "Causal padding is only supported"),
        (lambda: tf.layers.conv2d(images(), 4, 3, data_format="NHWC"), "Received: NHWC"),
        (
            lambda: tf.layers.conv2d(images(), 4, 3, strides=2, dilation_rate=2),
            "strides > 1 not supported in conjunction with dilation_rate > 1",
        ),
        (lambda: tf.layers.conv2d(images(), 4, 3, strides=0), "all values of strides must be positive"),
        (lambda: tf.layers.conv2d(x(None, 2, 2, 3), 4, 3), "Negative dimension size"),
        (lambda: tf.layers.conv2d_transpose(x(None, 8, 8, None), 4, 3), "channel dimension"),
        (lambda: tf.layers.conv2d_transpose(x(None, 8, 8), 4, 3), "expected ndim=4, found ndim=3"),
        (lambda: tf.layers.conv3d_transpose(images(), 4, 3), "expected ndim=5, found ndim=4"),
        (lambda: tf.layers.conv2d_transpose(images(), 4, 3, padding="causal"), "Causal padding is only"),
        (lambda: tf.layers.separable_conv2d(x(None, 8, 8, None), 4, 3), "channel dimension"),
        (lambda: tf.layers.separable_conv1d(images(), 4, 3), "expected ndim=3, found ndim=4"),
        (
            lambda: [layer(x(2, 8, 8, n)) for layer in [tf.layers.Conv2D(3, 3)] for n in (3, 4)],
            "expected axis -1 of input shape to have value 3 but received",
        ),
    ],
)
def test_convolutions_refuse(build: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build()


def test_arguments_are_spelled_in_many_ways() -> None:
    y = tf.layers.conv2d(images(), 4, [3, 3], strides=[1, 2], padding="Same", data_format="CHANNELS_LAST")
    assert y.shape.as_list() == [None, 8, 4, 4]
    assert tf.layers.conv1d(x(None, 8, 3), 4, [3]).shape.as_list() == [None, 6, 4]
    layer = tf.layers.Conv2D(4, 3, data_format=None, activation="relu")
    assert layer.data_format == "channels_last"
    assert (layer.kernel_size, layer.strides, layer.dilation_rate) == ((3, 3), (1, 1), (1, 1))
    assert layer(images()).op.type == "Relu"


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: tf.layers.Conv1D(4, 3, 2, "same"), [2, 7, 3]),
        (lambda: tf.layers.Conv1D(4, 3, 1, "causal", dilation_rate=2), [2, 7, 3]),
        (lambda: tf.layers.Conv2D(4, (3, 2), 2), [2, 8, 9, 3]),
        (lambda: tf.layers.Conv2D(4, 3, 1, "valid", "channels_first", 2), [2, 3, 8, 9]),
        (lambda: tf.layers.Conv3D(4, 2, (1, 2, 3), "same"), [None, 5, 6, 7, 3]),
        (lambda: tf.layers.Conv2DTranspose(4, 3, 2), [2, 8, 9, 3]),
        (lambda: tf.layers.Conv2DTranspose(4, 2, (1, 3), "same", "channels_first"), [2, 3, 8, None]),
        (lambda: tf.layers.Conv3DTranspose(4, 3, 2), [2, 3, 4, 5, 3]),
        (lambda: tf.layers.SeparableConv1D(4, 3, 2), [2, 8, 3]),
        (lambda: tf.layers.SeparableConv2D(4, 3, 1, "valid", "channels_first", 2, 3), [2, 3, 8, 7]),
    ],
)
def test_static_shapes_are_as_computed(layer: Any, shape: list[int | None]) -> None:
    built = layer()
    y = built(x(*shape))
    assert y.shape.as_list() == built.compute_output_shape(shape).as_list()


def test_a_separable_convolution_has_two_kernels() -> None:
    layer = tf.layers.SeparableConv2D(5, 3, depth_multiplier=2, use_bias=False)
    layer(images())
    assert [v.shape.as_list() for v in layer.weights] == [[3, 3, 3, 2], [1, 1, 6, 5]]
    assert layer.depthwise_kernel is layer.weights[0]
    assert layer.bias is None


def test_convolutions_are_reused() -> None:
    for reuse in (None, True):
        tf.layers.conv2d(images(), 4, 3, name="c", reuse=reuse)
        tf.layers.conv2d_transpose(images(), 4, 3, name="t", reuse=reuse)
        tf.layers.separable_conv2d(images(), 4, 3, name="s", reuse=reuse)
    assert len(tf.global_variables()) == 7


def test_a_transposed_convolution_undoes_the_shape_of_any_image() -> None:
    inputs = x(None, None, None, 2)
    y = tf.layers.conv2d_transpose(tf.layers.conv2d(inputs, 4, 3, 2, "same"), 2, 3, 2, "same")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(tf.shape(y), {inputs: [[[[0, 1]] * 6] * 4] * 3}).tolist() == [3, 4, 6, 2]
