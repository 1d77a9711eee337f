"""`with_space_to_batch`: neighbours' operations over windows whose elements are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

IMAGES = np.random.RandomState(1).randn(2, 7, 8, 2).astype(np.float32)
KERNEL = np.random.RandomState(2).randn(2, 3, 2, 3).astype(np.float32)


def convolve(input: tf.Tensor, n: int, padding: str) -> tf.Tensor:
    """The operation over neighbours."""
    assert n == 2
    return tf.nn.conv2d(input, KERNEL, [1, 1, 1, 1], padding)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("rates", [(1, 1), (2, 3), (1, 2)])
def test_it_is_the_dilated_convolution(rates: tuple[int, int], padding: str, known: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, IMAGES.shape if known else [None, None, 8, 2])
        y = tf.nn.with_space_to_batch(x, rates, padding, convolve, filter_shape=[2, 3])
        expected = tf.nn.conv2d(x, KERNEL, [1, 1, 1, 1], padding, dilations=[1, *rates, 1])
        found, parts = session.run([y, expected], {x: IMAGES})
    np.testing.assert_allclose(found, parts, rtol=1e-4, atol=1e-5)


def test_other_dimensions_stay() -> None:
    def halves(input: tf.Tensor, n: int, padding: str) -> tf.Tensor:
        assert (n, padding) == (1, "VALID")
        return input[:, :, 1:] - input[:, :, :-1]

    with tf.Session() as session:
        found = session.run(tf.nn.with_space_to_batch(IMAGES, [2], "VALID", halves, spatial_dims=[2]))
    np.testing.assert_allclose(found, IMAGES[:, :, 2:] - IMAGES[:, :, :-2], rtol=1e-6)


def test_names_are_tensorflows() -> None:
    with tf.Graph().as_default() as graph:
        y = tf.nn.with_space_to_batch(tf.zeros([1, 7, 8, 2]), [2, 3], "SAME", convolve, [2, 3])
        assert y.op.name == "BatchToSpaceND"
        for name in ("required_space_to_batch_paddings/crops", "SpaceToBatchND"):
            graph.get_operation_by_name(name)


@pytest.mark.parametrize(
    "arguments",
    [
        {"dilation_rate": [2, 2], "padding": "SAME"},
        {"dilation_rate": [2, 0], "padding": "VALID"},
        {"dilation_rate": [[2, 1]], "padding": "VALID"},
        {"dilation_rate": [2, 2], "padding": "ROUND"},
        {"dilation_rate": [2, 2], "padding": "VALID", "spatial_dims": [1, 1]},
        {"dilation_rate": [2, 2], "padding": "VALID", "spatial_dims": [0, 1]},
        {"dilation_rate": [2, 2], "padding": "VALID", "spatial_dims": [2, 1]},
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"padding|rate|spatial_dims"):
        tf.nn.with_space_to_batch(IMAGES, op=convolve, **arguments)
