"""Dilation by machine code: beside ATen's, whose bits it has, and beside definitions for strange numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.native.codegen import host
from flowstone.native.networks import dilations

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
CODE = {dtype: dilations.Dilation(str(dtype)[6:]) for dtype in (torch.float32, torch.float64)}
FORMS = [  # lengths, filter, strides, rates, rule
    ((9, 8), (2, 2), (1, 1), (1, 1), "SAME"),
    ((5, 26), (3, 2), (1, 2), (2, 1), "SAME"),
    ((7, 9), (3, 3), (2, 3), (1, 2), "VALID"),
    ((3, 2), (5, 4), (1, 1), (1, 1), "SAME"),
    ((8, 7), (1, 3), (4, 5), (1, 2), "SAME"),
]


def results(monkeypatch: Any, native: bool, image: np.ndarray, kernel: np.ndarray, form: Any) -> Any:
    """The dilation and its gradients."""
    asked: list[Any] = []

    def offered(dtype: Any) -> Any:
        asked.append(dtype)
        return CODE[dtype] if native else None

    monkeypatch.setattr("flowstone.ops.networks.morphology.by_machine_code", offered)
    _, _, strides, rates, rule = form
    with tf.Graph().as_default(), tf.Session() as session:
        x, f = tf.placeholder(image.dtype), tf.placeholder(image.dtype)
        y = F.Dilation2D(x, f, strides=[1, *strides, 1], rates=[1, *rates, 1], padding=rule)
        feeds = {x: image, f: kernel}
        flow = np.random.RandomState(3).randn(*session.run(y, feeds).shape)
        found = session.run([y, *tf.gradients(y, [x, f], tf.constant(flow, image.dtype))], feeds)
    assert asked
    return found


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("depth", [3, 18])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_as_by_aten(form: Any, depth: int, dtype: Any, monkeypatch: Any) -> None:
    chance = np.random.RandomState(depth)
    image = chance.randint(-4, 5, (3, *form[0], depth)).astype(dtype)  # there are equals
    kernel = chance.randint(-2, 3, (*form[1], depth)).astype(dtype)
    found, expected = (results(monkeypatch, native, image, kernel, form) for native in (True, False))
    for a, b in zip(found[:2], expected):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-6 if dtype == np.float32 else 1e-13, atol=1e-13)


@pytest.mark.parametrize("native", [True, False])
def test_nan_and_what_is_not_above_the_least_number_are_no_maximum(native: bool, monkeypatch: Any) -> None:
    nan, least = np.nan, np.finfo(np.float32).min
    image = np.array([nan, 1, nan, nan, nan, -np.inf, 5], np.float32).reshape(1, 1, 7, 1)
    form = (None, None, (1, 1), (1, 1), "SAME")
    y, dx, df = results(monkeypatch, native, image, np.zeros([1, 3, 1], np.float32), form)
    flow = np.random.RandomState(3).randn(7).astype(np.float32)
    assert y.ravel().tolist() == [1, 1, 1, least, least, 5, 5]
    expected = [0, flow[:3].astype(np.float64).sum(), flow[3], flow[4], 0, 0, flow[5] + flow[6]]
    np.testing.assert_allclose(dx.ravel(), np.float32(expected), rtol=1e-6)
    expected = [flow[2] + flow[3] + flow[4], flow[1] + flow[6], flow[0] + flow[5]]
    np.testing.assert_allclose(df.ravel(), expected, rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_share_the_rows(threads: int, monkeypatch: Any) -> None:
    chance = np.random.RandomState(1)
    given = chance.rand(5, 70, 60, 3), chance.rand(3, 3, 3), (None, None, (2, 1), (1, 1), "SAME")
    expected, before = results(monkeypatch, False, *given), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = results(monkeypatch, True, *given)
    finally:
        torch.set_num_threads(before)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
