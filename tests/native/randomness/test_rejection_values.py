"""Gamma and Poisson values by machine code are those that ATen computes, whatever parameter and state."""

from __future__ import annotations

import math

import pytest
import torch

from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.randomness import rejection_values
from flowstone.ops.randomness import rejection_streams
from flowstone.ops.randomness.philox import State

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")

BEYOND = [0.0, -0.0, -1.0, math.nan]
GAMMA = [*BEYOND, 1.0, 1e-3, 0.5, 0.999, 1.001, 3.0, 1e6]
POISSON = [*BEYOND, math.inf, 1e-3, 0.5, 9.99, 10.0, 77.0, 1e5]
STATES = [State(5, 7), State((1 << 64) - 1, (1 << 128) - 300), State(1 << 63, (1 << 64) - 5)]


def both(monkeypatch: pytest.MonkeyPatch, how: str, state: State, parameters: torch.Tensor, samples: int):
    """By ATen and by machine code."""
    draw = {"gamma": rejection_streams.gamma_values, "poisson": rejection_streams.poisson_values}[how]
    for offered in (lambda how: None, rejection_values.rejection_values):
        monkeypatch.setattr(rejection_streams, "rejection_values", offered)
        yield draw(state, parameters, samples)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("how, numbers", [("gamma", GAMMA), ("poisson", POISSON)])
@pytest.mark.parametrize("samples", [0, 1, 300])
def test_values_are_aten_s(monkeypatch, state: State, how: str, numbers: list[float], samples: int) -> None:
    parameters = torch.tensor(numbers, dtype=torch.float64)
    plain, fast = both(monkeypatch, how, state, parameters, samples)
    assert fast.shape == plain.shape == (samples, len(numbers))
    if how == "poisson":
        assert torch.equal(fast.nan_to_num(-1), plain.nan_to_num(-1))
    torch.testing.assert_close(fast, plain, rtol=1e-13, atol=0, equal_nan=True)


@pytest.mark.parametrize("how", ["gamma", "poisson"])
def test_a_team_draws_the_same(monkeypatch, how: str) -> None:
    parameters = torch.linspace(0.1, 30, 40_000, dtype=torch.float64)
    plain, fast = both(monkeypatch, how, STATES[0], parameters, 1)
    torch.testing.assert_close(fast, plain, rtol=1e-13, atol=0)
    empty = list(both(monkeypatch, how, STATES[0], parameters[:0], 3))
    assert all(each.shape == (3, 0) for each in empty)


def test_nothing_is_offered_without_the_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rejection_values.rejection_values("gamma") is not None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert rejection_values.rejection_values("gamma") is None
