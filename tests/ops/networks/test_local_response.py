"""Normalisation by neighbouring channels: every way of adding neighbours and every power, by definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.kernel import FOLDING
from flowstone.ops.networks.local_response import neighbours

RNG = np.random.default_rng(31)


def windows(x: Any, radius: int) -> Any:
    """The sums of channels at most `radius` away."""
    return np.stack(
        [x[..., max(c - radius, 0) : c + radius + 1].sum(-1) for c in range(x.shape[-1])], axis=-1
    )


@pytest.mark.parametrize("radius", [0, 1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("channels", [1, 3, 64, 128, 129, 200, None])
def test_sums_of_neighbours(radius, channels) -> None:
    x = RNG.standard_normal((2, 3, 2, channels or 6)).astype("f")
    dims = None if channels is None else x.shape
    found = neighbours(dims, radius, FOLDING, 0.5, 2)(torch.from_numpy(x))
    np.testing.assert_allclose(found.numpy(), windows(x, radius) * 0.5 + 2, rtol=1e-4, atol=1e-4)


def test_rows_do_not_reach_into_each_other() -> None:
    x = np.zeros((1, 2, 1, 150), "f")
    x[0, 0, 0, -1] = x[0, 1, 0, 0] = 1
    found = neighbours(x.shape, 3, FOLDING)(torch.from_numpy(x)).numpy().reshape(2, 150)
    assert found[0].nonzero()[0].tolist() == [146, 147, 148, 149]
    assert found[1].nonzero()[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("beta", [0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("channels", [6, 140])
def test_result_and_gradient(beta, channels) -> None:
    x = RNG.standard_normal((2, 2, 3, channels))
    direction = RNG.standard_normal(x.shape)
    norm = 1.5 + 0.3 * windows(x * x, 2)
    y = x * norm**-beta
    dx = direction * norm**-beta - 2 * 0.3 * beta * x * windows(direction * y / norm, 2)
    with tf.Graph().as_default(), tf.Session() as s:
        image = tf.placeholder(tf.float32, x.shape)
        z = tf.nn.lrn(image, 2, bias=1.5, alpha=0.3, beta=beta)
        found = s.run([z, tf.gradients(z, image, direction.astype("f"))[0]], {image: x})
    np.testing.assert_allclose(found[0], y, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], dx, rtol=1e-4, atol=1e-4)


def test_a_matrix_is_no_image() -> None:
    with tf.Graph().as_default(), tf.Session() as s:
        x = tf.placeholder(tf.float32)
        with pytest.raises(tf.errors.InvalidArgumentError, match="4-dimensional"):
            s.run(tf.nn.lrn(x), {x: np.ones((2, 3))})
