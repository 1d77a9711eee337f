"""Windows of images as rows, by machine code: the bits of a copy of every window of the padded image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flowstone.native.codegen import host
from flowstone.native.networks.window_rows import WindowRows
from flowstone.ops.networks import window_products

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
FORMS = [  # lengths, window, strides, zeros before, zeros after
    ((9, 8), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((9, 8), (2, 5), (2, 3), (0, 2), (1, 2)),
    ((4, 3), (5, 7), (1, 2), (4, 6), (4, 6)),
    ((6, 7), (3, 3), (2, 1), (3, 0), (3, -2)),
    ((5, 5), (1, 1), (3, 2), (0, 0), (0, 0)),
    ((1, 40), (1, 3), (1, 1), (0, 1), (0, 1)),
    ((11,), (4,), (2,), (1,), (3,)),
]


def expected(images: np.ndarray, form: Any) -> np.ndarray:
    _, window, strides, before, after = form
    pads = [(b, max(a, 0)) for b, a in zip(before, after)]
    padded = np.pad(images, [(0, 0), *pads, (0, 0)])
    rows = []
    for image in padded:
        for place in np.ndindex(*counts(form)):
            starts = [i * stride for i, stride in zip(place, strides)]
            rows.append(image[tuple(slice(i, i + size) for i, size in zip(starts, window))].reshape(-1))
    return np.stack(rows)


def counts(form: Any) -> tuple[int, ...]:
    lengths, window, strides, before, after = form
    return tuple((n + b + a - k) // s + 1 for n, k, s, b, a in zip(lengths, window, strides, before, after))


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("channels", [1, 3, 16, 37])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_are_copies_of_windows(form: Any, channels: int, dtype: Any) -> None:
    chance = torch.Generator().manual_seed(channels)
    images = torch.randn((2, *form[0], channels), generator=chance, dtype=dtype)
    images.view(-1)[::7] = torch.nan
    _, window, strides, before, _ = form
    rows = WindowRows()(images, counts(form), window, strides, before)
    np.testing.assert_array_equal(rows.numpy(), expected(images.numpy(), form))


def test_threads_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    form = ((70, 60), (3, 3), (1, 1), (1, 1), (1, 1))
    images = torch.arange(2 * 70 * 60 * 32, dtype=torch.float32).reshape(2, 70, 60, 32)
    rows = WindowRows()(images, counts(form), *form[1:4])
    np.testing.assert_array_equal(rows.numpy(), expected(images.numpy(), form))


class _Convolution:
    """What a node says of a convolution of 3x3 windows."""

    strides, dilations = (2, 1), (1, 1)


def test_convolutions_of_open_sizes_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[int, ...]] = []
    cut = WindowRows()

    def noted(images: torch.Tensor, *rest: Any) -> torch.Tensor:
        taken.append(tuple(images.shape))
        return cut(images, *rest)

    geometry: Any = _Convolution()
    products = window_products.WindowProducts(geometry, 1 << 20)
    x, kernel = torch.randn(2, 8, 7, 3), torch.randn(3, 3, 3, 4)
    dy = torch.randn(2, 4, 7, 4)
    sides = (0, 1), (1, 1)

    def all_three() -> list[torch.Tensor]:
        return [
            products.results(x, kernel, (4, 7), *sides),
            products.by_filter(x, dy, (3, 3, 3, 4), *sides),
            products.by_input(kernel, dy, (8, 7), sides[0]),
        ]

    monkeypatch.setattr(window_products, "window_rows", lambda: None)
    plain = all_three()
    assert not taken
    monkeypatch.setattr(window_products, "window_rows", lambda: noted)
    for one, other in zip(plain, all_three(), strict=True):
        assert torch.equal(one, other)
    assert taken == [(2, 8, 7, 3), (2, 8, 7, 3), (2, 7, 7, 4)]
