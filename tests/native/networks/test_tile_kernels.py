"""Convolutions in tiles against ATen's in float64: shapes, padding, tails, orders of memory, infinities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from flowstone.native.codegen import host
from flowstone.native.networks import tile_kernels
from flowstone.native.networks.tile_kernels import Geometry

LARGEST_ERROR = 1e-5  # of the largest result


@pytest.fixture(params=[4, 8, 16])
def lanes(request, monkeypatch) -> Iterator[int]:
    """Every width of vectors: LLVM makes two of one that this processor has not."""
    monkeypatch.setattr(host, "lanes", lambda: request.param)
    tile_kernels._library.cache_clear()
    yield request.param
    tile_kernels._library.cache_clear()


def case(
    images: tuple[int, ...], outputs: int, taps: int, sides: tuple[int, int, int, int]
) -> tuple[Geometry, list[torch.Tensor]]:
    """A geometry with padding above, below, left and right; images, filter, bias, results' gradient."""
    above, below, left, right = sides
    batch, height, width, channels = images
    results = (batch, height + above + below - taps + 1, width + left + right - taps + 1, outputs)
    geometry = Geometry(images, results, taps, above, left)
    dims = (images, (taps, taps, channels, outputs), (outputs,), results)
    return geometry, [torch.randn(each) for each in dims]


def exact(
    x: torch.Tensor, w: torch.Tensor, dy: torch.Tensor, sides: tuple[int, int, int, int]
) -> list[torch.Tensor]:
    """Results, gradient by the images and by the filter, in float64."""
    above, below, left, right = sides
    x, w = x.double().requires_grad_(), w.double().requires_grad_()
    padded = torch.nn.functional.pad(x.permute(0, 3, 1, 2), (left, right, above, below))
    y = torch.conv2d(padded, w.permute(3, 2, 0, 1)).permute(0, 2, 3, 1)
    return [y.detach(), *torch.autograd.grad(y, (x, w), dy.double())]


def error(found: torch.Tensor | None, expected: torch.Tensor) -> float:
    assert found is not None and found.shape == expected.shape
    return ((found - expected).abs().max() / expected.abs().max()).item()


def check(geometry: Geometry, tensors: list[torch.Tensor], sides: tuple[int, int, int, int]) -> None:
    x, w, b, dy = tensors
    y, by_images, by_filter = exact(x, w, dy, sides)
    found = tile_kernels.convolve(x, tile_kernels.transform_filter(w, False), b, geometry)
    assert error(found, y + b) < LARGEST_ERROR
    backwards = tile_kernels.transform_filter(w, True)
    assert error(tile_kernels.convolve(dy, backwards, None, geometry.backward()), by_images) < LARGEST_ERROR
    assert error(tile_kernels.filter_gradient(x, dy, geometry), by_filter) < LARGEST_ERROR


@pytest.mark.parametrize("taps", [2, 3, 4, 5])
@pytest.mark.parametrize(
    ("images", "outputs", "sides"),
    [
        ((2, 9, 11, 5), 7, (1, 1, 1, 1)),
        ((1, 8, 8, 16), 64, (0, 0, 0, 0)),
        ((3, 5, 6, 33), 70, (2, 2, 2, 2)),
        ((2, 7, 13, 100), 24, (0, 2, 1, 0)),
    ],
)
def test_all_widths_of_vectors_agree_with_float64(lanes, taps, images, outputs, sides) -> None:
    torch.manual_seed(1)
    check(*case(images, outputs, taps, sides), sides)


def test_random_shapes_agree_with_float64() -> None:
    rng = np.random.default_rng(3)
    torch.manual_seed(2)
    for _ in range(25):
        taps = int(rng.choice(tile_kernels.TAPS))
        sides = tuple(int(n) for n in rng.integers(0, taps, 4))
        images = tuple(
            int(n) for n in (*rng.integers(1, 4, 1), *rng.integers(taps, 20, 2), *rng.integers(1, 90, 1))
        )
        check(*case(images, int(rng.integers(1, 150)), taps, sides), sides)  # type: ignore[arg-type]


@pytest.mark.parametrize("taps", [2, 3, 4, 5])
def test_many_tiles_and_channels_stay_exact(taps) -> None:
    """Filters as they are initialised, and images of an activation; several lots of tiles."""
    torch.manual_seed(4)
    same = (taps // 2,) * 4
    geometry, (x, w, b, dy) = case((8, 28, 28, 96), 128, taps, same)
    check(geometry, [x.relu(), w * (2 / (taps**2 * 96)) ** 0.5, b, dy], same)


def test_filters_may_lie_in_any_order() -> None:
    torch.manual_seed(5)
    sides = (1, 1, 1, 1)
    geometry, (x, w, b, dy) = case((2, 9, 9, 20), 40, 3, sides)
    by_outputs = w.permute(3, 0, 1, 2).contiguous().permute(1, 2, 3, 0)
    assert by_outputs.stride() != w.stride()
    for backward, data in ((False, x), (True, dy)):
        seen = geometry.backward() if backward else geometry
        transformed = [tile_kernels.transform_filter(each, backward) for each in (w, by_outputs)]
        found, other = (tile_kernels.convolve(data, each, None, seen) for each in transformed)
        assert found is not None and other is not None and torch.equal(found, other)
    check(geometry, [x, by_outputs, b, dy], sides)


def test_results_are_rectified() -> None:
    geometry, (x, w, b, _) = case((2, 9, 9, 20), 40, 3, (1, 1, 1, 1))
    transformed = tile_kernels.transform_filter(w, False)
    plain = tile_kernels.convolve(x, transformed, b, geometry)
    rectified = tile_kernels.convolve(x, transformed, b, geometry, True)
    assert plain is not None and rectified is not None and torch.equal(plain.relu(), rectified)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 3e38])
def test_what_is_not_finite_is_told(value) -> None:
    geometry, (x, w, b, dy) = case((2, 9, 9, 20), 40, 3, (1, 1, 1, 1))
    x[1, 4, 4, 19], dy[1, 4, 4, 39] = value, value
    assert tile_kernels.convolve(x, tile_kernels.transform_filter(w, False), b, geometry) is None
    backwards = tile_kernels.transform_filter(w, True)
    assert tile_kernels.convolve(dy, backwards, None, geometry.backward()) is None
    assert tile_kernels.filter_gradient(x, dy, geometry) is None


def test_one_thread_and_two_agree() -> None:
    sides = (1, 1, 1, 1)
    geometry, tensors = case((3, 10, 10, 20), 40, 3, sides)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            check(geometry, tensors, sides)
    finally:
        torch.set_num_threads(before)
