"""Max pooling in machine code against ATen's: the same bits, with what its maxima pass over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from flowstone.native.codegen import host
from flowstone.native.networks import pool_kernels
from flowstone.native.networks.pool_kernels import Windows
from flowstone.ops.networks import number_maxima


@pytest.fixture(params=[4, 8, 16])
def lanes(request, monkeypatch) -> Iterator[int]:
    monkeypatch.setattr(host, "lanes", lambda: request.param)
    pool_kernels._library.cache_clear()
    yield request.param
    pool_kernels._library.cache_clear()


def aten(
    x: torch.Tensor, windows: Windows, dy: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The maxima, their positions in the images, and the gradient by the images."""
    arguments = (windows.sizes, windows.strides, windows.padding, (1, 1), False)
    first = x.permute(0, 3, 1, 2)
    maxima, places = torch.ops.aten.max_pool2d_with_indices(first, *arguments)
    dx = torch.ops.aten.max_pool2d_with_indices_backward(dy.permute(0, 3, 1, 2), first, *arguments, places)
    last = (0, 2, 3, 1)
    return maxima.permute(last), places.permute(last), dx.permute(last)


def windows_of(
    images: tuple[int, ...], sizes: tuple[int, int], strides: tuple[int, int], padding: tuple[int, int]
) -> Windows:
    lengths = [(n + 2 * p - k) // s + 1 for n, p, k, s in zip(images[1:3], padding, sizes, strides)]
    return Windows(images, (images[0], *lengths, images[3]), sizes, strides, padding)


def positions(places: torch.Tensor, windows: Windows) -> torch.Tensor:
    """The positions in the images that bytes stand for."""
    _, rows, columns, _ = windows.results
    y = torch.arange(rows).view(1, rows, 1, 1) * windows.strides[0] - windows.padding[0]
    x = torch.arange(columns).view(1, 1, columns, 1) * windows.strides[1] - windows.padding[1]
    within = places.long()
    return (y + within // windows.sizes[1]) * windows.images[2] + x + within % windows.sizes[1]


def check(x: torch.Tensor, windows: Windows) -> None:
    dy = torch.randn(windows.results)
    expected, places, dx = aten(x, windows, dy)
    maxima, found = pool_kernels.pool(x, windows)
    torch.testing.assert_close(maxima, expected, rtol=0, atol=0, equal_nan=True)
    assert found.dtype == torch.uint8 and torch.equal(positions(found, windows), places)
    torch.testing.assert_close(pool_kernels.spread(found, dy, windows), dx, rtol=0, atol=0)


CASES = [
    ((2, 8, 8, 16), (2, 2), (2, 2), (0, 0)),
    ((3, 9, 11, 20), (3, 3), (2, 2), (1, 1)),
    ((2, 7, 7, 33), (3, 3), (1, 1), (1, 1)),
    ((1, 10, 6, 5), (3, 2), (2, 3), (0, 1)),
    ((2, 9, 9, 3), (2, 2), (3, 3), (0, 0)),
    ((2, 9, 12, 19), (2, 4), (2, 4), (1, 2)),
    ((2, 11, 8, 7), (3, 3), (3, 3), (1, 1)),
    ((1, 20, 17, 40), (16, 16), (1, 1), (0, 0)),
]


@pytest.mark.parametrize(("images", "sizes", "strides", "padding"), CASES)
def test_maxima_places_and_gradients_are_atens(lanes, images, sizes, strides, padding) -> None:
    torch.manual_seed(3)
    check(torch.randn(images), windows_of(images, sizes, strides, padding))


@pytest.mark.parametrize(("images", "sizes", "strides", "padding"), CASES[:3])
@pytest.mark.parametrize("keeps_nan", [False, True])
def test_equal_numbers_and_none(images, sizes, strides, padding, keeps_nan) -> None:
    torch.manual_seed(4)
    x = torch.randint(-1, 2, images).float()
    special = torch.randint(0, 12, images)
    for i, value in enumerate((float("nan"), float("inf"), 0.5 if keeps_nan else float("-inf"))):
        x[special == i] = value  # beside NaN that is kept, minus infinity may count as such
    x[0, :4, :4] = float("nan")
    windows = windows_of(images, sizes, strides, padding)._replace(keeps_nan=keeps_nan)
    arguments = sizes, strides, padding, (1, 1), False
    expected, places = number_maxima.largest_with_places(
        x.permute(0, 3, 1, 2), arguments, keeps_nan=keeps_nan
    )
    assert bool(expected.isnan().any()) == keeps_nan
    maxima, found = pool_kernels.pool(x, windows)
    torch.testing.assert_close(maxima, expected.permute(0, 2, 3, 1), rtol=0, atol=0, equal_nan=True)
    assert torch.equal(positions(found, windows), places.permute(0, 2, 3, 1))


def test_threads_share_the_rows() -> None:
    windows = windows_of((4, 41, 40, 24), (3, 3), (2, 2), (1, 1))
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            check(torch.randn(windows.images), windows)
    finally:
        torch.set_num_threads(before)
