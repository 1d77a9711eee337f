"""Gradients with descents in machine code against float64."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch

from flowstone.native.codegen import host
from flowstone.native.products import descent_kernels

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())


@pytest.fixture(params=[4, 8, 16])
def lanes(request, monkeypatch) -> Iterator[int]:
    monkeypatch.setattr(host, "lanes", lambda: request.param)
    descent_kernels._library.cache_clear()
    yield request.param
    descent_kernels._library.cache_clear()


@pytest.mark.parametrize("rows", [1, 2, 5, 16, 33])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 16), (6, 48), (50, 272), (131, 560)])
def test_both_are_those_of_float64(lanes, rows, inputs, outputs) -> None:
    torch.manual_seed(1)
    weights, x, dy = torch.randn(inputs, outputs), torch.randn(rows, inputs), torch.randn(rows, outputs)
    expected = dy.double() @ weights.double().t()
    after = weights.double() - 0.3 * x.double().t() @ dy.double()
    dx = descent_kernels.descend(weights, 0.3, x, dy)
    torch.testing.assert_close(dx.double(), expected, rtol=0, atol=1e-6 * expected.abs().max().item())
    torch.testing.assert_close(weights.double(), after, rtol=0, atol=1e-6 * after.abs().max().item())


def test_operands_are_left_as_they_are() -> None:
    torch.manual_seed(2)
    weights, x, dy = torch.randn(20, 32), torch.randn(1, 20), torch.randn(1, 32)
    before = x.clone(), dy.clone()
    descent_kernels.descend(weights, 0.5, x, dy)
    assert torch.equal(x, before[0]) and torch.equal(dy, before[1])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_strange_number_goes_where_it_belongs(value) -> None:
    torch.manual_seed(3)
    weights, x, dy = torch.randn(20, 64), torch.rand(3, 20) + 1, torch.randn(3, 64)
    weights[4, 9] = value
    dx = descent_kernels.descend(weights, 0.5, x, dy)
    assert not dx[:, 4].isfinite().any() and dx[:, :4].isfinite().all() and dx[:, 5:].isfinite().all()
    dy[1, 7] = value
    descent_kernels.descend(weights, 0.5, x, dy)
    assert not weights[:, 7].isfinite().any() and weights[:, 10:].isfinite().all()


def test_columns_that_fill_no_vectors_have_no_code() -> None:
    assert descent_kernels.suits(4 * host.lanes()) and not descent_kernels.suits(host.lanes() + 1)
