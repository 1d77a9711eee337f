"""Built-ins around machine code: new results, counts of references, allocation that fails, many calls."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest
import torch

from flowstone.native.clusters import kernels
from flowstone.native.clusters.clusters import Array, Cluster, Step

VECTOR = Array("float32", (8,))
DOUBLED = Cluster((8,), (VECTOR,), (Step("AddV2", (0, 0), "float32"), Step("Neg", (0,), "float32")), (1, 2))


def function(overwritten: int | None = None) -> Any:
    kernel = kernels.kernel_of(DOUBLED, lambda x: (x + x, -x), overwritten)
    return kernel._current


def test_results_are_tensors_of_their_own() -> None:
    x = torch.arange(8.0)
    with torch.inference_mode():
        first, second = function()(x), function()(x)
    assert all(type(each) is torch.Tensor for each in first)
    assert first[0].data_ptr() != second[0].data_ptr()
    assert first[0].tolist() == [2 * i for i in range(8)] and first[1].shape == (8,)


def test_references_are_counted() -> None:
    x, call = torch.arange(8.0), function(0)
    before = sys.getrefcount(x)
    for _ in range(1000):
        result = call(x.fill_(1.0))
    assert result[0] is x
    del result
    assert sys.getrefcount(x) == before


def test_memory_is_given_back() -> None:
    array = Array("float32", (1 << 18,))
    cluster = Cluster(array.dims, (array,), (Step("Neg", (0,), "float32"),), (1,))
    call = kernels.kernel_of(cluster, lambda x: (-x,))._current
    x = torch.ones(array.dims)
    import resource

    for _ in range(20):
        call(x)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(400):
        call(x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KB; 400 results are 400 MB


@pytest.mark.parametrize("argument", [None, 3, "text", [1.0] * 8])
def test_no_tensor_is_left_to_the_other_function(argument: Any) -> None:
    seen = []
    kernel = kernels.kernel_of(DOUBLED, lambda x: seen.append(x))
    assert kernel._current(argument) is None and seen == [argument]
