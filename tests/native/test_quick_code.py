"""Code that is made quickly gives the bits that better code gives: when one takes the other's place does not
matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from element_operands import ATTRIBUTES, inputs
from flowstone.framework import flags
from flowstone.native import kernels, products
from flowstone.native.clusters import Array, Cluster, Step
from flowstone.native.elements import ELEMENTS
from flowstone.native.narrow_products import Sizes, layer
from product_examples import matrices, plain, refuse
from test_clusters import random_cluster
from test_narrow_products import SIZES, by_columns


@pytest.fixture(autouse=True)
def from_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is compiled yet."""
    monkeypatch.setattr(flags, "NATIVE", 1)
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "_modules", {})
    monkeypatch.setattr(kernels, "_quick_modules", {})


def agree(kernel: Any, arguments: list[Any]) -> bool:
    """Whether both kinds of code give the same bits."""
    found = []
    for quickly in (True, False):
        kernel.compile(quickly)
        assert kernel._is_quick == quickly
        with torch.inference_mode():
            results = kernel(*[x.clone() for x in arguments])
        results = results if isinstance(results, tuple) else (results,)
        found.append([np.nan_to_num(x.numpy(), nan=7.0).tobytes() for x in results])
    return found[0] == found[1]


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_clusters(first: int) -> None:
    for seed in range(first, first + 10):
        cluster = random_cluster(seed)
        random = np.random.RandomState(seed)
        arguments = [
            torch.from_numpy(np.asarray(random.randn(*each.dims), each.dtype)) for each in cluster.inputs
        ]
        assert agree(kernels.kernel_of(cluster, refuse), arguments), cluster


OTHER_TYPES = ("Select", "Cast", "Equal", "NotEqual", "Less", "Greater", "Is", "Logical", "Approximate")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elements(dtype: str) -> None:
    texts = set()  # of elements under several names there is one
    for name, element in ELEMENTS.items():
        if dtype not in element.types or name in ATTRIBUTES or name.startswith(OTHER_TYPES):
            continue
        operands = [torch.from_numpy(np.asarray(x)) for x in inputs(name, dtype, (5, 23))]
        arrays = tuple([Array(dtype, tuple(x.shape)) for x in operands])
        if any(x.dtype != getattr(torch, dtype) for x in operands):
            continue
        step = Step(name, tuple(range(len(operands))), dtype)
        try:
            kernel = kernels.kernel_of(Cluster((5, 23), arrays, (step,), (len(operands),)), refuse)
            text = kernels.source_of(kernel.cluster)
        except (KeyError, ValueError):  # what has attributes
            continue
        assert text in texts or agree(kernel, operands), name
        texts.add(text)
    assert len(texts) > 20


@pytest.mark.parametrize("sizes", [(5, 33, 17), (1, 40, 64), (20, 200, 80)])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_products(sizes: Any, is_transposed: bool) -> None:
    product = plain(*sizes, is_transposed)
    assert agree(products.ProductKernel(product, refuse), matrices(product))


@pytest.mark.parametrize("sizes", SIZES)
def test_narrow_products(sizes: Any) -> None:
    rows, terms, columns = sizes
    torch.manual_seed(0)
    x, w, b = torch.randn(rows, terms), by_columns(terms, columns), torch.randn(columns)
    assert agree(layer(Sizes(*sizes), True, refuse), [x, w, b])
