"""The kernels of convolutions by Winograd's algorithm: exactness, results and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from agreement import agree

RNG = np.random.default_rng(23)


NAME = "convolve_by_winograd"


@pytest.fixture
def everywhere(set_profile) -> None:
    """Uses the algorithm wherever it can be."""
    set_profile(winograd_channels=1, winograd_gain=1e9)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


@pytest.mark.needs_onednn
def test_results_are_at_least_as_exact(everywhere) -> None:
    x, w = values(2, 16, 16, 64), values(3, 3, 64, 64)
    image = torch.from_numpy(x).double().permute(0, 3, 1, 2)
    kernel = torch.from_numpy(w).double().permute(3, 2, 0, 1)
    exact = torch.conv2d(image, kernel, padding=1).permute(0, 2, 3, 1).numpy()
    y = tf.nn.conv2d(tf.constant(x), tf.Variable(w), [1, 1, 1, 1], "SAME")
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        assert "_WinogradConv2D" in s.explain(y)
        error = np.abs(s.run(y) - exact).max() / np.abs(exact).max()
    direct = torch.conv2d(image.float(), kernel.float(), padding=1).permute(0, 2, 3, 1).numpy()
    assert error < 2 * np.abs(direct - exact).max() / np.abs(exact).max()
    assert error < 2e-6


@pytest.mark.needs_onednn
@pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [2, 2], [1, 1], [0, 0]]])
@pytest.mark.parametrize("window", [(2, 1), (3, 3), (4, 3), (5, 5), (7, 1), (1, 3), (1, 6)])
@pytest.mark.parametrize("size", [(9, 11), (12, 10)])
def test_results_and_gradients_agree(monkeypatch, everywhere, padding, window, size) -> None:
    x = tf.placeholder(tf.float32, [3, *size, 4])
    w = tf.Variable(values(*window, 4, 6))
    b = tf.Variable(values(6))
    convolved = tf.nn.conv2d(x, w, [1, 1, 1, 1], padding)
    y = tf.nn.relu(tf.nn.bias_add(convolved, b))
    weights = tf.constant(values(*y.shape.as_list()))
    fetches = [y, *tf.gradients(convolved * weights, [x, w])]
    log = agree(
        monkeypatch, fetches, {x: values(3, *size, 4)}, NAME, fires=3, setup=tf.global_variables_initializer()
    )
    for name in ("_WinogradConv2D(", "_WinogradConv2DBackpropInput(", "_WinogradConv2DBackpropFilter("):
        assert name in log
