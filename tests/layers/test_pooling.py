"""Pooling layers: what is refused, arguments' spellings, static shapes."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def x(*shape: int | None) -> tf.Tensor:
    return tf.placeholder(tf.float32, shape)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: tf.layers.max_pooling2d(x(None, 8, 8), 2, 2), "expected ndim=4, found ndim=3"),
        (lambda: tf.layers.max_pooling1d(x(None, 8, 8, 1), 2, 2), "expected ndim=3, found ndim=4"),
        (lambda: tf.layers.max_pooling2d(tf.placeholder(tf.float32), 2, 2), "its rank is undefined"),
        (lambda: tf.layers.average_pooling2d(x(2, 8, 8, 1), 2, 2, "foo"), "Received: foo"),
        (lambda: tf.layers.max_pooling2d(x(2, 8, 8, 1), 2, 2, data_format="foo"), "Received: foo"),
        (lambda: tf.layers.max_pooling2d(x(2, 8, 8, 1), (2, 2, 2), 2), "`pool_size` .* tuple of 2 integers"),
        (lambda: tf.layers.MaxPooling2D(2, None), "Argument `strides` must not be None"),
        (lambda: tf.layers.max_pooling2d(x(2, 1, 1, 1), 2, 2), "Negative dimension size"),
    ],
)
def test_pooling_refuses(build: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build()


@pytest.mark.parametrize("name", ["Max", "Average"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("padding", ["Valid", "same"])
@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_static_shapes_are_as_computed(name: str, rank: int, padding: str, data_format: str) -> None:
    layer = getattr(tf.layers, f"{name}Pooling{rank}D")(3, [2] * rank, padding, data_format)
    shape = [4, 7, 9, 8, 5][: rank + 2]
    y = layer(x(*shape))
    assert y.shape.as_list() == layer.compute_output_shape(shape).as_list()
    with tf.Session() as session:
        assert session.run(layer(tf.ones(shape))).min() == 1
