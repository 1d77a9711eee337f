"""Gradients of fractional pooling are the same by machine code and by ATen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.networks import cut_windows

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")

ROWS, COLUMNS = np.array([0, 2, 3, 6, 9]), np.array([0, 3, 4, 7])
GRADIENTS = {"max": tf.raw_ops.FractionalMaxPoolGrad, "avg": tf.raw_ops.FractionalAvgPoolGrad}


def gradient(
    monkeypatch: pytest.MonkeyPatch, native: int, how: str, x: Any, dy: Any, overlapping: bool
) -> Any:
    monkeypatch.setattr(flags, "NATIVE", native)
    cuts = {"row_pooling_sequence": ROWS, "col_pooling_sequence": COLUMNS, "overlapping": overlapping}
    given: dict[str, Any] = {"orig_input_tensor_shape": np.array(x.shape)}
    if how == "max":
        given = {"orig_input": x, "orig_output": np.zeros_like(dy)}
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(GRADIENTS[how](out_backprop=dy, **given, **cuts))


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("how", GRADIENTS)
@pytest.mark.parametrize(("batch", "channels"), [(0, 3), (2, 1), (3, 5), (300, 3)])
def test_gradients_are_aten_s(
    monkeypatch, how: str, dtype: str, batch: int, channels: int, overlapping: bool
) -> None:
    random = np.random.default_rng(batch)
    x = random.integers(0, 4, (batch, 9, 7, channels)).astype(dtype)  # some are equal
    dy = random.integers(-50, 50, (batch, 4, 3, channels)).astype(dtype)
    if dtype.startswith("float"):
        x[random.random(x.shape) < 0.1] = np.nan
        x[random.random(x.shape) < 0.1] = -np.inf
    plain, fast = (gradient(monkeypatch, native, how, x, dy, overlapping) for native in (0, 1))
    assert fast.dtype == dtype
    np.testing.assert_allclose(fast, plain, rtol=2e-6 if dtype == "float32" else 1e-14, atol=2e-5)
    if how == "max":
        np.testing.assert_array_equal(fast, plain)


@pytest.mark.parametrize("native", [0, 1])
@pytest.mark.parametrize("shape", [(1, 9, 7, 2), (2, 9, 7, 3), (1, 0, 7, 3)])
def test_images_that_do_not_fit_are_refused(monkeypatch, native: int, shape: tuple[int, ...]) -> None:
    dy = np.ones((1, 4, 3, 3), np.float32)
    for how in GRADIENTS:
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not of images of shape"):
            gradient(monkeypatch, native, how, np.zeros(shape, np.float32), dy, False)


def test_what_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cut_windows.cut_windows(torch.float32) is not None
    assert cut_windows.cut_windows(torch.float16) is None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert cut_windows.cut_windows(torch.float32) is None
