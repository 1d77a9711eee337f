"""The matrices of Winograd's algorithm: they make convolutions, in few digits more than direct ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.native.codegen.test_structured import run

from flowstone.native.codegen.structured import Code
from flowstone.native.networks.tile_transforms import SIDE, transform, transforms

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("taps", [2, 3, 4, 5])
def test_the_products_of_a_tile_are_its_convolution(taps) -> None:
    b, g, a = (np.array(matrix) for matrix in transforms(taps))
    outputs = SIDE + 1 - taps
    assert (b.shape, g.shape, a.shape) == ((SIDE, SIDE), (SIDE, taps), (outputs, SIDE))
    data, filters = RNG.standard_normal((SIDE, SIDE)), RNG.standard_normal((taps, taps))
    found = a @ ((g @ filters @ g.T) * (b @ data @ b.T)) @ a.T
    windows = np.lib.stride_tricks.sliding_window_view(data, (taps, taps))
    np.testing.assert_allclose(found, (windows * filters).sum((2, 3)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("taps", [2, 3, 4, 5])
@pytest.mark.parametrize(
    ("name", "transposed"),
    [("data", False), ("taps", False), ("taps", True), ("results", False), ("results", True)],
)
def test_the_text_applies_a_matrix_to_rows_and_columns(taps, name, transposed) -> None:
    matrix = np.array(getattr(transforms(taps), name))
    matrix = matrix.T if transposed else matrix
    count, side = matrix.shape
    x = torch.from_numpy(RNG.standard_normal((side, side, 4)).astype("f"))
    y = torch.zeros(count, count, 4)

    def write(e: Code) -> None:
        values = [e.read(e.at("%x0", 4 * k)) for k in range(side**2)]
        for k, value in enumerate(transform(e, tuple(map(tuple, matrix.tolist())), values)):
            e.write(e.at("%x1", 4 * k), value)

    run(4, write, x, y)
    expected = np.einsum("ij,jkc,lk->ilc", matrix, x.double().numpy(), matrix)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("taps", [2, 3, 4, 5])
def test_points_lose_few_digits(taps) -> None:
    """The norms of the matrices bound what rounding can do: far less than with points 1 and 2."""
    b, g, a = (np.abs(np.array(matrix)).sum(1).max() for matrix in transforms(taps))
    assert (a * b * g) ** 2 < 5_000
