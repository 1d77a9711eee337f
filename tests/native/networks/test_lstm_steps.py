"""Steps of LSTM cells in machine code beside what the cells are, on one thread and on a team."""

from __future__ import annotations

import pytest
import torch

from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.networks import lstm_steps

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
INF, NAN = float("inf"), float("nan")


@pytest.fixture(autouse=True)
def at_once(monkeypatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)


@pytest.mark.parametrize(("rows", "units"), [(1, 1), (3, 7), (5, 19), (40, 300)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_a_step_and_its_gradient(rows: int, units: int, order: tuple[int, ...]) -> None:
    random = torch.Generator().manual_seed(units)
    sums, bias = (torch.randn(*dims, 4 * units, generator=random) for dims in ((rows,), ()))
    before, dy, dh, dc = (torch.randn(rows, units, generator=random) for _ in range(4))
    sums[0, 0], before[0, -1], sums[0, -1] = INF, -INF, NAN
    sums.requires_grad_(), before.requires_grad_()
    i, f, candidate, o = ((sums + bias).split(units, 1)[part] for part in order)
    c = torch.sigmoid(f) * before + torch.sigmoid(i) * torch.tanh(candidate)
    h = torch.sigmoid(o) * torch.tanh(c)
    by_sums, by_before = torch.autograd.grad([h, c], [sums, before], [dy + dh, dc])

    gates, state, y = sums.detach().clone(), torch.empty(rows, units), torch.empty(rows, units)
    advance = lstm_steps.bound("advance", rows, units, order)
    advance(*(x.data_ptr() for x in (bias, gates, before, state, y)))
    close(state, c)
    close(y, h)
    differentiate = lstm_steps.bound("differentiate", rows, units, order)
    differentiate(*(x.data_ptr() for x in (gates, before, state, dy, dh, dc, dc)))
    close(gates, by_sums)
    close(dc, by_before)


def close(got: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(got, expected.detach(), rtol=1e-5, atol=1e-6, equal_nan=True)


def test_there_are_none_without_the_native_tier(monkeypatch) -> None:
    assert lstm_steps.is_available()
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert not lstm_steps.is_available()
