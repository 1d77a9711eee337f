"""Gradients of averages of windows side by side: those that ATen computes, and what is not such windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.ops.networks import average_pooling

pytestmark = pytest.mark.usefixtures("graph")


def found(shape: list[int], dy: np.ndarray[Any, Any], sizes: list[int], padding: str) -> Any:
    op = tf.raw_ops.AvgPoolGrad if len(shape) == 4 else tf.raw_ops.AvgPool3DGrad
    fed = tf.placeholder(dy.dtype.name, dy.shape)
    window = [1, *sizes, 1]
    dx = op(orig_input_shape=shape, grad=fed, ksize=window, strides=window, padding=padding)
    with tf.Session() as session:
        return session.run(dx, {fed: dy})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(
    ("counts", "sizes"),
    [([5, 3], [2, 2]), ([4, 6], [3, 1]), ([1, 1], [4, 5]), ([2, 3, 4], [2, 3, 2]), ([300, 40], [1, 3])],
)
def test_each_window_shares_its_gradient(
    monkeypatch: pytest.MonkeyPatch, counts: list[int], sizes: list[int], padding: str, dtype: str
) -> None:
    pieces = []
    repeated = average_pooling._repeated
    monkeypatch.setattr(average_pooling, "_repeated", lambda *given: pieces.append(1) or repeated(*given))
    dy = np.random.default_rng(1).standard_normal((9, *counts, 3)).astype(dtype)
    dy[0].flat[:3] = np.nan, np.inf, -0.0
    wanted = dy / np.prod(sizes).astype(dtype)
    for axis, size in enumerate(sizes, 1):
        wanted = np.repeat(wanted, size, axis)
    np.testing.assert_array_equal(found(list(wanted.shape), dy, sizes, padding), wanted)
    assert pieces == [1]


def test_elements_in_no_window_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(average_pooling, "_repeated", None)
    dx = found([2, 5, 5, 1], np.ones((2, 2, 2, 1), np.float32), [2, 2], "VALID")
    np.testing.assert_array_equal(dx[0, :, :, 0], np.pad(np.full((4, 4), 0.25), (0, 1)))
    same = found([1, 3, 2, 1], np.ones((1, 2, 1, 1), np.float32), [2, 2], "SAME")
    np.testing.assert_array_equal(same[0, :, :, 0], [[0.25, 0.25], [0.25, 0.25], [0.5, 0.5]])


def test_gradients_in_another_order_of_memory() -> None:
    dy = torch.randn(2, 3, 4, 5).permute(0, 3, 2, 1)  # as a kernel may leave it
    window = average_pooling.attribute_window(_Node())
    dx = average_pooling._average_grad(window, (2, 10, 8, 3), dy)
    wanted = np.repeat(np.repeat(dy.numpy() / np.float32(4), 2, 1), 2, 2)
    np.testing.assert_array_equal(dx.numpy(), wanted)


class _Node:
    def __init__(self) -> None:
        self.attributes = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
