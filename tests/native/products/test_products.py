"""Kernels of products: what arguments they take, which products they suit, what they say of themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flowstone.framework import flags
from flowstone.native.clusters.clusters import Array, Cluster, Step
from flowstone.native.products import products
from flowstone.native.products.products import Product
from product_examples import kernel, matrices, plain


def test_arguments_of_other_layouts_are_copied() -> None:
    product = plain(4, 16, 16)
    made = kernel(product)
    a, b = matrices(product)
    assert torch.equal(made(a.t().contiguous().t(), b)[0], made(a, b)[0])


def test_second_matrices_of_other_layouts_go_to_the_other_function() -> None:
    made = products.product_kernel(plain(4, 16, 16), lambda a, b: ("by ATen", a @ b))
    made.compile()
    a, b = matrices(plain(4, 16, 16))
    assert made(a, b.t())[0] == "by ATen"


def test_code_for_rows_that_lie_apart_is_compiled_when_they_come() -> None:
    dims = (4, 16)
    after = Cluster(dims, (Array("float32", dims),) * 2, (Step("AddV2", (0, 1), "float32"),), (2,))
    made = kernel(Product(4, 8, 16, False, after))
    a, b, wide = torch.randn(4, 8), torch.randn(8, 16), torch.randn(4, 32)
    for _ in range(2):
        (found,) = made(a, b, wide[:, 16:])
        np.testing.assert_allclose(found, a @ b + wide[:, 16:], rtol=1e-5, atol=1e-5)
    assert made.cluster.after.pitched == [1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes", [(4, 8, 16, False), (13, 21, 40, True), (128, 64, 128, False), (7, 3, 9, True)]
)
def test_rows_of_the_first_matrix_may_lie_apart(
    sizes: Any, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece of a split is read where it lies, with the result of its copy."""
    monkeypatch.setattr(flags, "NATIVE", 2)
    product = plain(*sizes, dtype=dtype)
    a, b = matrices(product)
    wide = torch.cat([a * 2, a, a * 3], 1)
    made = kernel(product)
    (wanted,) = made(a, b)
    for _ in range(2):
        assert torch.equal(made(wide[:, a.shape[1] : 2 * a.shape[1]], b)[0], wanted)
    assert made.cluster.pitched
    assert torch.equal(made(a, b)[0], wanted)


def test_rows_of_several_arguments_may_lie_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    dims = (4, 16)
    after = Cluster(dims, (Array("float32", dims),) * 2, (Step("AddV2", (0, 1), "float32"),), (2,))
    made = kernel(Product(4, 8, 16, False, after))
    first, b, wide = torch.randn(4, 11), torch.randn(8, 16), torch.randn(4, 32)
    for _ in range(2):
        (found,) = made(first[:, 3:], b, wide[:, 16:])
        np.testing.assert_allclose(found, first[:, 3:] @ b + wide[:, 16:], rtol=1e-5, atol=1e-5)
    assert made.cluster.pitched and made.cluster.after.pitched == [1]


def test_arguments_of_other_types_go_to_the_other_function() -> None:
    product = plain(4, 16, 16)
    made = products.product_kernel(product, lambda a, b: ("by ATen", a @ b))
    made.compile()
    a, b = matrices(product)
    assert made(a.double(), b.double())[0] == "by ATen"


def test_what_blas_does_better_is_not_suitable() -> None:
    assert products.is_suitable(20, 400, 200, False, "float32")
    assert not products.is_suitable(4000, 400, 200, False, "float32")
    assert not products.is_suitable(20, 400, 200, False, "complex64")
    assert not products.is_suitable(40, 1024, 1024, False, "float32")  # rows 4 KiB apart
    assert not products.is_suitable(1, 3000, 3000, False, "float32")  # nothing to keep in caches


def test_which_gradients_of_weights_are_suitable(set_profile) -> None:
    set_profile(gradient_examples=128)
    assert products.suits_gradient(784, 100, 500, "float32")
    assert products.suits_gradient(512, 4, 1024, "float32")
    assert not products.suits_gradient(1000, 64, 1000, "float32")  # more than a core's cache holds
    assert not products.suits_gradient(784, 129, 500, "float32")
    assert not products.suits_gradient(1024, 100, 500, "float32")  # rows 4 KiB apart
    assert not products.suits_gradient(20, 100, 1024, "float32")
    assert not products.suits_gradient(20000, 100, 500, "float32")
    assert not products.suits_gradient(20, 10, 500, "complex64")
    set_profile(gradient_examples=0)
    assert not products.suits_gradient(784, 100, 500, "float32")


def test_text_of_a_product() -> None:
    assert "float32[3,2] transposed x float32[3,8]" in str(plain(2, 3, 8, by_terms=True))
    assert str(plain(2, 3, 8, True)).splitlines()[0] == "product float32[2,3] x float32[8,3] transposed"
    assert repr(plain(2, 3, 8)) == "product"
