"""What tests of products in machine code share: products, their arguments, and results in float64."""

from __future__ import annotations

import torch

from flowstone.native.clusters.clusters import Array, Cluster
from flowstone.native.products import products
from flowstone.native.products.products import Product


def plain(
    rows: int,
    inner: int,
    columns: int,
    is_transposed: bool = False,
    dtype: str = "float32",
    by_terms: bool = False,
) -> Product:
    dims = (rows, columns)
    after = Cluster(dims, (Array(dtype, dims),), (), (0,))
    return Product(rows, inner, columns, is_transposed, after, by_terms=by_terms)


def refuse(*inputs: torch.Tensor) -> None:
    raise AssertionError("the machine code does not take these")


def kernel(product: Product) -> products.ProductKernel:
    made = products.ProductKernel(product, refuse)
    made.compile()
    return made


def matrices(product: Product, seed: int = 0) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    return [torch.randn(each.dims, dtype=getattr(torch, each.dtype)) for each in product.inputs]


def expected(product: Product, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a = a.t() if product.by_terms else a
    return a.double() @ (b.double().t() if product.is_transposed else b.double())
