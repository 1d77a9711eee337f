"""Gradients of convolutions with shapes by whole tensors are those with sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

RANDOM = np.random.RandomState(2)
FORMS: dict[str, dict[str, Any]] = {
    "same": {"strides": [1, 2, 2, 1], "padding": "SAME"},
    "valid": {"strides": [1, 1, 1, 1], "padding": "VALID", "dilations": [1, 2, 1, 1]},
    "explicit": {
        "strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 2, 1, 0, 0],
    },
    "channels first": {"strides": [1, 1, 2, 1], "padding": "SAME", "data_format": "NCHW"},
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
def test_they_are_the_gradients_by_sizes(form: str, dtype: str) -> None:
    first = form == "channels first"
    x = RANDOM.randn(2, *((4, 7, 6) if first else (7, 6, 4))).astype(dtype)
    kernel = RANDOM.randn(3, 2, 4 if form == "valid" else 2, 6).astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        dy = tf.random_normal(tf.shape(F.Conv2D(x, kernel, **FORMS[form])), dtype=dtype, seed=1)
        dy = session.run(dy)
        found = session.run(
            [F.Conv2DBackpropInputV2(x, kernel, dy, **FORMS[form]),
             F.Conv2DBackpropFilterV2(x, kernel, dy, **FORMS[form])]
        )  # fmt: skip
        expected = session.run(
            [F.Conv2DBackpropInput(x.shape, kernel, dy, **FORMS[form]),
             F.Conv2DBackpropFilter(x, kernel.shape, dy, **FORMS[form])]
        )  # fmt: skip
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [(1, 1), (2, 1), (1, 3)])
def test_few_channels(channels: tuple[int, int]) -> None:
    x, kernel = RANDOM.randn(1, 4, 4, channels[0]), RANDOM.randn(2, 2, *channels)
    options: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    with tf.Graph().as_default(), tf.Session() as session:
        dy = RANDOM.randn(1, 4, 4, channels[1])
        found = F.Conv2DBackpropInputV2(x, kernel, dy, **options)
        expected = F.Conv2DBackpropInput(x.shape, kernel, dy, **options)
        np.testing.assert_allclose(*session.run([found, expected]), rtol=1e-9)
        found = F.Conv2DBackpropFilterV2(x, kernel, dy, **options)
        expected = F.Conv2DBackpropFilter(x, kernel.shape, dy, **options)
        np.testing.assert_allclose(*session.run([found, expected]), rtol=1e-9)


def test_integers_have_exact_gradients() -> None:
    x, kernel = np.zeros((1, 3, 3, 1), np.int32), np.arange(4, dtype=np.int32).reshape(2, 2, 1, 1)
    dy = np.full((1, 2, 2, 1), 2**20 + 1, np.int32)
    with tf.Session() as session:
        dx = session.run(F.Conv2DBackpropInputV2(x, kernel, dy, strides=[1, 1, 1, 1], padding="VALID"))
    assert dx[0, :, :, 0].tolist() == (np.array([[0, 1, 1], [2, 6, 4], [2, 5, 3]]) * (2**20 + 1)).tolist()


def test_a_gradient_of_another_size_is_refused() -> None:
    x, kernel = np.zeros((1, 3, 3, 1), np.float32), np.zeros((2, 2, 1, 1), np.float32)
    dy = tf.placeholder(tf.float32)
    for declaration in (F.Conv2DBackpropInputV2, F.Conv2DBackpropFilterV2):
        dx = declaration(x, kernel, dy, strides=[1, 1, 1, 1], padding="SAME")
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="out_backprop"):
            session.run(dx, {dy: np.zeros((1, 2, 3, 1))})
