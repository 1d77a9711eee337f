"""Products of few rows by matrices that no cache holds: ATen's values, whatever the sizes leave over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_profiles import generic
from flowstone.native.clusters.clusters import Array, Cluster, Step
from flowstone.native.codegen import host
from flowstone.native.products import products
from flowstone.native.products.products import Product, is_suitable, product_source
from product_examples import kernel, matrices, plain

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes", [(3, 37, 70), (12, 100, 1111), (5, 16, 512), (7, 3, 9), (1, 33, 2000), (12, 5, 515)]
)
def test_all_sizes(sizes: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_MOST_BYTES", 0)
    product = plain(*sizes, False, dtype=dtype)
    assert product.is_streamed
    assert "llvm.prefetch" in product_source(product) or sizes[1] < 16
    a, b = matrices(product)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(kernel(product)(a, b)[0], a @ b, rtol=tolerance, atol=50 * tolerance)


def test_steps_after_the_product_and_rows_that_lie_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_MOST_BYTES", 0)
    dims = (4, 700)
    steps = (Step("AddV2", (0, 1), "float32"), Step("Relu", (2,), "float32"))
    inputs = (Array("float32", dims), Array("float32", (700,)))
    made = kernel(Product(4, 40, 700, False, Cluster(dims, inputs, steps, (3,))))
    product = plain(4, 40, 700, False)
    a, b = matrices(product)
    bias = b[0].clone()
    for first in (a, np.pi * a.repeat(1, 2)[:, 40:]):
        np.testing.assert_allclose(made(first, b, bias)[0], (first @ b + bias).relu(), rtol=1e-5, atol=1e-4)


def test_where_they_are_streamed_is_the_profiles_choice() -> None:
    assert not is_suitable(8, 2048, 2048, False, "float32")
    with machine.using(generic()._replace(streamed_rows=16)):
        assert is_suitable(8, 2048, 2048, False, "float32")
        assert is_suitable(8, 2048, 2048, True, "float32")
        assert not is_suitable(17, 2048, 2048, False, "float32")
        assert not is_suitable(1, 2048, 2048, False, "float32")
