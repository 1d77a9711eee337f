"""Code that is made quickly gives the bits that better code gives: when one takes the other's place does not
matter."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.native.clusters.test_clusters import random_cluster
from tests.native.products.test_narrow_products import SIZES, by_columns

from element_operands import ATTRIBUTES, inputs
from flowstone.framework import flags
from flowstone.native.clusters import kernels
from flowstone.native.clusters.clusters import Array, Cluster, Step
from flowstone.native.codegen import making
from flowstone.native.codegen.loaded_modules import LoadedModules
from flowstone.native.networks import depthwise_kernels, normalization_kernels, pool_kernels, tile_kernels
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.products import products
from flowstone.native.products.narrow_products import Sizes, layer
from product_examples import matrices, plain, refuse


@pytest.fixture(autouse=True)
def from_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is compiled yet."""
    monkeypatch.setattr(flags, "NATIVE", 1)
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    monkeypatch.setattr(making, "later", lambda make, work=0.0: None)


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


def tiles() -> list[torch.Tensor]:
    geometry = tile_kernels.Geometry((3, 9, 11, 20), (3, 9, 11, 18), 3, 1, 1)
    x, w, dy = torch.randn(geometry.images), torch.randn(3, 3, 20, 18), torch.randn(geometry.results)
    transformed = tile_kernels.transform_filter(w, False)
    found = tile_kernels.convolve(x, transformed, torch.randn(18), geometry, True)
    gradient = tile_kernels.filter_gradient(x, dy, geometry)
    assert found is not None and gradient is not None
    return [found, gradient]


def pools() -> list[torch.Tensor]:
    windows = pool_kernels.Windows((2, 8, 9, 13), (2, 4, 4, 13), (3, 3), (2, 2), (1, 1))
    maxima, places = pool_kernels.pool(torch.randn(windows.images), windows)
    return [maxima, places, pool_kernels.spread(places, torch.randn(windows.results), windows)]


def normalized() -> list[torch.Tensor]:
    x, scale, offset = torch.randn(300, 19), torch.randn(19), torch.randn(19)
    y, moments = normalization_kernels.normalize(x, scale, offset, 0.01, "Relu")
    dy = torch.randn(300, 19)
    given = moments.mean, moments.variance, 0.01, "Relu"
    return [y, *moments, *normalization_kernels.differentiate(dy, x, scale, offset, *given)]


def by_channels() -> list[torch.Tensor]:
    channels = depthwise_kernels.Channels((2, 9, 8, 19), (2, 9, 8, 19), (5, 5), (1, 1), (1, 1), (2, 2))
    x, w, dy = torch.randn(channels.images), torch.randn(5, 5, 19), torch.randn(channels.results)
    return [
        depthwise_kernels.convolve(x, w, channels),
        depthwise_kernels.by_images(w, dy, channels),
        depthwise_kernels.by_filter(x, dy, channels),
    ]


@pytest.mark.parametrize(
    ("module", "results"),
    [
        (tile_kernels, tiles),
        (pool_kernels, pools),
        (normalization_kernels, normalized),
        (depthwise_kernels, by_channels),
    ],
)
def test_libraries(module: Any, results: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All functions of `results` are made quickly, and once more well."""
    library = functools.cache(module._library.__wrapped__)
    monkeypatch.setattr(module, "_library", library)
    found, own = [], [3] if module is tile_kernels else []
    for _ in range(2):
        torch.manual_seed(0)
        found.append([x.contiguous().numpy().tobytes() for x in results()])
        library(*own)._take_best()
    assert found[0] == found[1]
