"""Results lie in memory of their own: apart from inputs, unless the op declares it (`aliases`), and apart
from each other.

Plans overwrite and hand out results by what ops declare. Kernels of rearrangements give views where the
elements are in order already, as where all sizes are 1: each case of the op table is computed so, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import op_cases
from flowstone.framework.declarations.kernel import CPU, FOLDING, Value
from flowstone.framework.declarations.operation import registry
from flowstone.framework.types.values import to_runtime
from op_cases import Case, Input
from test_table import Subject


class OfOnes(Case):
    """The case with the first of everything along all axes of its numbers (not of sizes and indices)."""

    def _input(self, spec: Any, position: str) -> Input:
        one = super()._input(spec, position)
        if one.role != "tensor" or one.value.dtype.kind not in "fc":
            return one
        return dataclasses.replace(one, value=one.value[tuple(slice(1) for _ in one.value.shape)])


def _results(case: Case) -> tuple[list[Any], list[Any]]:
    """The inputs of a case and the results of its kernel; no results of an op that cannot be asked alone."""
    subject = Subject(case, ("placeholders",))
    node = subject.built["placeholders"]
    given = [subject.feed.get(x) for x in node.inputs]
    kernels = registry[case.op].kernels
    if any(each is None for each in given) or CPU not in kernels:
        return [], []
    inputs = [
        to_runtime(np.ascontiguousarray(value).reshape(value.shape), x.dtype.base_dtype)
        for value, x in zip(given, node.inputs)
    ]
    with torch.inference_mode():
        kernel = kernels[CPU](node, FOLDING)
        if isinstance(kernel, Value) or not callable(kernel):
            return [], []
        found = kernel(*inputs)
    return inputs, list(found) if isinstance(found, (list, tuple)) else [found]


def _extent(x: Any) -> tuple[int, int, int]:
    """The memory of a tensor: its storage, where it begins there and where it ends."""
    if not isinstance(x, torch.Tensor) or not x.numel():
        return 0, 0, 0
    reach = sum((size - 1) * stride for size, stride in zip(x.shape, x.stride())) + 1
    return x.untyped_storage().data_ptr(), x.storage_offset(), x.storage_offset() + reach


def _shared(case: Case) -> Iterator[str]:
    declaration = registry[case.op]
    if declaration.aliases:
        return
    inputs, results = _results(case)
    places = [(f"input {i}", *_extent(x)) for i, x in enumerate(inputs)]
    for i, each in enumerate(results):
        storage, first, end = _extent(each)
        for name, other, begin, until in places:
            if storage and storage == other and first < until and begin < end:
                yield f"result {i} shares memory with {name} of {case.id}"
        places.append((f"result {i}", storage, first, end))


@pytest.mark.parametrize("family", op_cases.families())
def test_results_share_no_memory(family: str) -> None:
    found: list[str] = []
    seen: set[str] = set()
    for case in op_cases.load(family):
        name = case.id.replace(case.dtype, "")
        if case.error or name in seen:
            continue
        seen.add(name)
        for each in (case, OfOnes(**vars(case))):
            try:
                found += _shared(each)
            except Exception:  # a case that is none with these sizes, or needs a session
                continue
    assert not found, "\n".join(found)
