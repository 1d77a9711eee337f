"""Products with steps after them: against ATen in float64, of random shapes, with tails of all kinds."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch

from flowstone.framework.machine_profiles import NEVER
from flowstone.native.clusters.clusters import Array, Cluster, Step
from flowstone.native.codegen import host
from flowstone.native.products import products
from flowstone.native.products.products import Product
from product_examples import expected, kernel, matrices, plain


def random_shapes(count: int) -> list[tuple[int, int, int, bool, str]]:
    chosen = random.Random(7)
    return [
        (
            chosen.choice([1, 2, 5, 12, 13, 20, 33]),
            chosen.choice([1, 3, 16, 37, 64, 129]),
            chosen.choice([8, 10, 16, 31, 64, 70, 150]),
            chosen.random() < 0.5,
            chosen.choice(["float32", "float64"]),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("shape", random_shapes(16), ids=lambda shape: "-".join(map(str, shape)))
def test_products_of_random_shapes(shape: tuple[int, int, int, bool, str]) -> None:
    if not products.is_suitable(*shape):
        pytest.skip("not for this processor")
    product = plain(*shape)
    a, b = matrices(product)
    (found,) = kernel(product)(a, b)
    tolerance = 1e-5 if product.dtype == "float32" else 1e-13
    reference = expected(product, a, b)
    np.testing.assert_allclose(found.double(), reference, rtol=tolerance, atol=tolerance * product.inner**0.5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "shape",
    [
        (2, 1, 8, "float32"), (5, 3, 31, "float32"), (37, 13, 29, "float64"), (12, 7, 64, "float32"),
        (784, 100, 10, "float32"), (130, 64, 150, "float32"),
        (257, 128, 200, "float64"), (6, 20, 700, "float32"),
    ],
)  # fmt: skip
def test_gradients_of_weights(set_profile, shape: tuple[int, int, int, str], threads: int) -> None:
    """The first matrix is stored by examples; rows may be many, and threads share them."""
    set_profile(product_team=1 if threads > 1 else NEVER)
    *dims, dtype = shape
    product = plain(*dims, dtype=dtype, by_terms=True)
    wide, (a, b) = torch.randn(dims[1], dims[0] + 5).to(getattr(torch, dtype)), matrices(product)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    for first in (a, wide[:, 3:-2]):  # the latter's rows lie apart
        for made in (kernel(product), kernel(product._replace(pitched=True))):
            (found,) = made(first, b)
            reference = expected(product, first, b)
            np.testing.assert_allclose(
                found.double(), reference, rtol=tolerance, atol=tolerance * dims[1] ** 0.5
            )


def test_gradients_of_weights_with_steps_after_them() -> None:
    dims = (45, 70)
    inputs = (Array("float32", dims), Array("float32", dims), Array("float32", (70,)))
    steps = (Step("Mul", (0, 2), "float32"), Step("AddV2", (3, 1), "float32"))
    product = Product(45, 9, 70, False, Cluster(dims, inputs, steps, (4, 0)), by_terms=True)
    a, b, x, y = matrices(product)
    found, plainly = kernel(product)(a, b, x, y)
    np.testing.assert_allclose(plainly, a.t() @ b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found, (a.t() @ b) * y + x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "shape", [(50, 601, 203, "float32"), (128, 64, 1024, "float32"), (61, 130, 299, "float64")]
)
def test_panels_of_large_matrices_for_many_rows(shape: tuple[int, int, int, str]) -> None:
    *dims, dtype = shape
    product = plain(*dims, dtype=dtype)
    copies = host.lanes() < 16 and math.prod(dims[1:]) * (4 if dtype == "float32" else 8) > 1 << 18
    assert ("@copy_full" in products.product_source(product)) == copies
    a, b = matrices(product)
    (found,) = kernel(product)(a, b)
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found.double(), expected(product, a, b), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("is_transposed", [False, True])
def test_steps_take_vectors_columns_scalars_and_truths(is_transposed: bool) -> None:
    dims = (13, 37)
    inputs = (
        Array("float32", dims), Array("float32", (37,)), Array("bool", (13, 1)), Array("float32", ()),
        Array("float32", dims),
    )  # fmt: skip
    steps = (
        Step("AddV2", (0, 1), "float32"),
        Step("Tanh", (5,), "float32"),
        Step("SelectV2", (2, 6, 4), "float32"),
        Step("Mul", (7, 3), "float32"),
        Step("Greater", (8, 4), "bool"),
    )
    product = Product(13, 21, 37, is_transposed, Cluster(dims, inputs, steps, (6, 8, 9, 0)))
    torch.manual_seed(1)
    a, b, bias = torch.randn(13, 21), torch.randn(product.inputs[1].dims), torch.randn(37)
    chosen, factor, other = torch.rand(13, 1) > 0.5, torch.tensor(0.7), torch.randn(13, 37)
    squashed, scaled, larger, raw = kernel(product)(a, b, bias, chosen, factor, other)
    sums = expected(product, a, b)
    want = torch.tanh(sums + bias)
    np.testing.assert_allclose(raw.double(), sums, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(squashed.double(), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(scaled.double(), torch.where(chosen, want, other) * 0.7, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(larger, scaled > other)


def test_a_team_shares_the_columns() -> None:
    product = plain(20, 150, 333)
    assert "GOMP_parallel" in products.product_source(product)
    assert "GOMP_parallel" not in products.product_source(plain(2, 15, 333))
    a, b = matrices(product)
    (found,) = kernel(product)(a, b)
    np.testing.assert_allclose(found.double(), expected(product, a, b), rtol=1e-4, atol=1e-4)


def test_infinities_and_nan_stay_in_their_rows_and_columns() -> None:
    for is_transposed in (False, True):
        product = plain(5, 19, 40, is_transposed)
        a, b = matrices(product)
        a[1, 2], a[3, 18] = float("inf"), float("nan")
        (found,) = kernel(product)(a, b)
        reference = expected(product, a, b)
        np.testing.assert_array_equal(torch.isnan(found), torch.isnan(reference))
        np.testing.assert_array_equal(torch.isinf(found), torch.isinf(reference))


def test_numbers_in_the_code_and_rows_that_lie_apart() -> None:
    dims, pitched = (13, 37), Array("float32", (13, 37), pitched=True)
    steps = (
        Step("Const", (), "float32", (("value", (0.75).hex()),)),
        Step("Mul", (0, 3), "float32"),
        Step("Sub", (4, 1), "float32"),
        Step("AddV2", (5, 2), "float32"),
    )
    inputs = (Array("float32", dims), pitched, pitched)
    product = Product(13, 21, 37, False, Cluster(dims, inputs, steps, (6,)))
    (a, b), wide = matrices(plain(13, 21, 37)), torch.randn(13, 80)
    (found,) = kernel(product)(a, b, wide[:, :37], wide[:, 40:77])
    want = expected(product, a, b) * 0.75 - wide[:, :37] + wide[:, 40:77]
    np.testing.assert_allclose(found.double(), want, rtol=1e-5, atol=1e-5)
