"""Batch normalisation in machine code against ATen in float64."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from flowstone.native.codegen import host
from flowstone.native.networks import normalization_kernels
from flowstone.native.networks.normalization_code import ACTIVATIONS

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())
EPSILON = 1e-3
ACTIVATED = {"": lambda y: y, "Relu": torch.relu, "Relu6": torch.nn.functional.relu6}


@pytest.fixture(params=[4, 8, 16])
def lanes(request, monkeypatch) -> Iterator[int]:
    monkeypatch.setattr(host, "lanes", lambda: request.param)
    normalization_kernels._library.cache_clear()
    yield request.param
    normalization_kernels._library.cache_clear()


class Example:
    """Images with their parameters, and a flow."""

    def __init__(self, *dims: int) -> None:
        self.x, self.dy, self.added = (torch.randn(dims) for _ in range(3))
        self.x = self.x * 3 + torch.randn(dims[-1]) * 5
        self.scale, self.offset = torch.rand(dims[-1]) + 0.5, torch.randn(dims[-1])

    def expected(self, activation: str, adds: bool) -> dict[str, torch.Tensor]:
        """The results and gradients in float64."""
        x, scale, offset = (each.double().requires_grad_() for each in (self.x, self.scale, self.offset))
        rows = x.reshape(-1, x.shape[-1])
        moments = rows.mean(0), rows.var(0, correction=0)
        y = torch.nn.functional.batch_norm(rows, None, None, scale, offset, True, eps=EPSILON).view(x.shape)
        y = ACTIVATED[activation](y + self.added if adds else y)
        gradients = torch.autograd.grad(y, [x, scale, offset], self.dy.double())
        return {"y": y.detach(), "mean": moments[0].detach(), "variance": moments[1].detach(),
                **dict(zip(("dx", "scale", "offset"), gradients))}  # fmt: skip

    def found(self, activation: str, adds: bool) -> dict[str, torch.Tensor]:
        arguments = self.x, self.scale, self.offset, EPSILON, activation
        y, moments = normalization_kernels.normalize(*arguments, self.added if adds else None)
        found = {"y": y, "mean": moments.mean, "variance": moments.variance}
        if not adds:
            given = self.dy, *arguments[:3], moments.mean, moments.variance, EPSILON, activation
            found |= dict(zip(("dx", "scale", "offset"), normalization_kernels.differentiate(*given)))
        return found


DIMS = [(2, 5, 7, 3), (4, 9, 9, 32), (2, 6, 5, 20), (3, 17, 64), (1, 3, 2, 4, 9), (40, 5), (3, 60, 60, 17)]


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("adds", [False, True])
def test_results_and_gradients_are_those_of_float64(lanes, dims, activation, adds) -> None:
    torch.manual_seed(5)
    example = Example(*dims)
    expected = example.expected(activation, adds)
    for name, value in example.found(activation, adds).items():
        largest = expected[name].abs().max().item()
        torch.testing.assert_close(value.double(), expected[name], rtol=0, atol=2e-6 * max(largest, 1))


def test_moments_far_from_zero_keep_their_digits() -> None:
    torch.manual_seed(6)
    x = torch.randn(4, 30, 30, 8) + 1000
    _, moments = normalization_kernels.normalize(x, torch.ones(8), torch.zeros(8), EPSILON)
    rows = x.double().view(-1, 8)
    torch.testing.assert_close(moments.mean.double(), rows.mean(0), rtol=1e-7, atol=0)
    torch.testing.assert_close(moments.variance.double(), rows.var(0, correction=0), rtol=1e-6, atol=0)
    torch.testing.assert_close(moments.corrected.double(), rows.var(0), rtol=1e-6, atol=0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_only_the_channel_of_a_strange_number_is_lost(value) -> None:
    torch.manual_seed(7)
    example = Example(2, 5, 4, 11)
    example.x[1, 2, 3, 9] = value
    found: dict[str, Any] = example.found("Relu", False)
    for name in ("y", "variance", "dx", "scale"):
        lost = found[name].isnan().reshape(-1, 11)
        assert lost[:, 9].all() and not lost[:, :9].any() and not lost[:, 10].any(), name


def test_one_row_is_its_own_mean() -> None:
    torch.manual_seed(8)
    x, offset = torch.randn(1, 1, 1, 10), torch.randn(10)
    y, moments = normalization_kernels.normalize(x, torch.ones(10), offset, EPSILON)
    torch.testing.assert_close(y.view(-1), offset, rtol=1e-5, atol=1e-5)
    assert (
        torch.equal(moments.mean, x.view(-1)) and not moments.variance.any() and not moments.corrected.any()
    )
