"""Pooling over windows: beside ATen's, whose bits floats have, and beside sums of windows for bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.networks import window_pools
from flowstone.ops.networks.windows import SAME, VALID

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
FORMS = [  # lengths, window, strides, rule
    ((9, 8), (2, 2), (2, 2), SAME),
    ((5, 6), (3, 2), (1, 2), SAME),
    ((7, 5), (3, 3), (2, 2), VALID),
    ((3, 2), (5, 4), (1, 1), SAME),
    ((4, 5, 6), (2, 2, 3), (2, 1, 2), SAME),
    ((3, 6, 4), (2, 3, 2), (1, 2, 1), VALID),
]


def pooled(name: str, images: torch.Tensor, form: Any, from_infinity: bool = False) -> torch.Tensor:
    lengths, sizes, strides, rule = form
    counts, before, _ = rule.solve(lengths, sizes, strides, (1,) * len(sizes))
    pool = window_pools.WindowPool(str(images.dtype).removeprefix("torch."))
    return pool(name, images, counts, (sizes, strides, before), from_infinity)


def windows_of(images: np.ndarray, form: Any) -> Sequence[Any]:
    """(place, what of the images is in it) of every window."""
    lengths, sizes, strides, rule = form
    counts, before, _ = rule.solve(lengths, sizes, strides, (1,) * len(sizes))
    found = []
    for place in np.ndindex(*counts):
        starts = [i * stride - margin for i, stride, margin in zip(place, strides, before)]
        inside = tuple(slice(max(start, 0), start + size) for start, size in zip(starts, sizes))
        found.append((place, images[(slice(None), *inside)].reshape(len(images), -1, images.shape[-1])))
    return found


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form[:3]))
@pytest.mark.parametrize("channels", [1, 3, 16, 37])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_floats(form: Any, channels: int, dtype: Any) -> None:
    chance = torch.Generator().manual_seed(channels)
    images = torch.randn((2, *form[0], channels), generator=chance).to(dtype)
    largest, mean = pooled("largest", images, form), pooled("mean", images, form)
    for place, seen in windows_of(images.numpy(), form):
        total = np.zeros((2, channels), np.float32 if dtype is torch.float16 else images.numpy().dtype)
        for i in range(seen.shape[1]):
            total += seen[:, i]
        np.testing.assert_array_equal(largest[(slice(None), *place)], seen.max(1))
        np.testing.assert_array_equal(mean[(slice(None), *place)], (total / seen.shape[1]).astype(seen.dtype))


def test_infinities_and_no_numbers() -> None:
    values = [-np.inf, -np.inf, np.nan, 1.0, np.inf, 2.0, 3.0, np.nan]
    images = torch.tensor(values).reshape(1, 1, 8, 1)
    form = ((1, 8), (1, 2), (1, 2), VALID)
    lowest = torch.finfo(torch.float32).min
    assert pooled("largest", images, form).flatten().tolist() == [lowest, 1.0, np.inf, 3.0]
    assert pooled("largest", images, form, True).flatten().tolist() == [-np.inf, 1.0, np.inf, 3.0]
    assert str(pooled("mean", images, form).flatten().tolist()) == "[-inf, nan, inf, nan]"


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form[:3]))
@pytest.mark.parametrize("channels", [2, 16, 70])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_bytes(form: Any, channels: int, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    chance = np.random.RandomState(channels)
    images = chance.randint(limits.min, limits.max + 1, (2, *form[0], channels)).astype(dtype)
    given = torch.from_numpy(images)
    largest, mean = pooled("largest", given, form), pooled("mean", given, form)
    for place, seen in windows_of(images, form):
        expected = np.trunc(seen.astype(np.int64).sum(1) / seen.shape[1])
        np.testing.assert_array_equal(largest[(slice(None), *place)], seen.max(1))
        np.testing.assert_array_equal(mean[(slice(None), *place)], expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_the_rows(threads: int) -> None:
    images = torch.rand(3, 50, 40, 20, generator=torch.Generator().manual_seed(0))
    assert images.numel() >= machine.current().profile.pool_team
    form, before = ((50, 40), (3, 3), (2, 1), VALID), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = pooled("mean", images, form)
    finally:
        torch.set_num_threads(before)
    expected = torch.nn.functional.avg_pool2d(images.permute(0, 3, 1, 2), 3, (2, 1)).permute(0, 2, 3, 1)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("op", ["MaxPool3D", "AvgPool3D", "AvgPool"])
def test_programs_have_the_same_numbers_without_machine_code(op: str, monkeypatch: Any) -> None:
    lengths = (16, 18, 17) if op.endswith("3D") else (60, 62)
    images = np.random.RandomState(1).randn(2, *lengths, 5).astype(np.float32)
    window = [1, *[2] * len(lengths), 1]

    def run() -> Any:
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [None, *images.shape[1:]])
            make = {"MaxPool3D": tf.nn.max_pool3d, "AvgPool3D": tf.nn.avg_pool3d, "AvgPool": tf.nn.avg_pool}
            return session.run(make[op](x, window, window, "SAME"), {x: images})

    native = window_pools.WindowPool("float32")
    asked: list[str] = []

    def offered(dtype: Any) -> Any:
        asked.append(op)
        return native

    name = "flowstone.ops.networks.pooling_windows.window_pool"
    monkeypatch.setattr(name, offered)
    found = run()
    monkeypatch.setattr(name, lambda dtype: None)
    assert asked
    np.testing.assert_allclose(found, run(), rtol=1e-6, atol=1e-7)
