"""Layers of LSTM cells by products: what they leave alone, and inputs that lie otherwise in memory.

That they compute the cells is in `test_lstm_kernels.py`, for both ways.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from flowstone.framework import flags
from flowstone.lowering.recurrences import lstm_products
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
STEPS, ROWS, SIZE, UNITS = 4, 3, 5, 6


@pytest.fixture(autouse=True)
def at_once(monkeypatch: Any) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)


def values() -> list[torch.Tensor]:
    """x of all steps, first output and state, weights and bias."""
    random = torch.Generator().manual_seed(5)
    shapes = [STEPS, ROWS, SIZE], [ROWS, UNITS], [ROWS, UNITS], [SIZE + UNITS, 4 * UNITS], [4 * UNITS]
    return [torch.randn(*dims, generator=random) for dims in shapes]


def both(given: list[torch.Tensor], dy: torch.Tensor, dh: Any = None, dc: Any = None) -> list[torch.Tensor]:
    """Outputs, the last output and state, and all gradients."""
    attributes = {"gates": [0, 2, 1, 3], "forget_bias": 1.0, "training": True, "units": UNITS, "size": SIZE}
    node = SimpleNamespace(attributes=attributes)
    *outputs, saved = lstm_products.sequence(node, ROWS, UNITS, SIZE)(*given)
    return [*outputs, *lstm_products.gradients(node, ROWS)(saved, given[3], dy, dh, dc)]


def transposed(x: torch.Tensor) -> torch.Tensor:
    """The same values with the last dimension outermost in memory."""
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def test_arguments_stay_and_results_have_memory_of_their_own() -> None:
    given, dy = values(), torch.ones(STEPS, ROWS, UNITS)
    before = [x.clone() for x in given]
    y, last_h, *others = both(given, dy, dy[0], dy[1])
    assert all(torch.equal(x, same) for x, same in zip(given, before)) and bool((dy == 1).all())
    assert torch.equal(y[-1], last_h)
    addresses = {x.data_ptr() for x in (y[-1], last_h, *others)}
    assert len(addresses) == 2 + len(others)  # so that any may be overwritten


def test_inputs_in_any_order_in_memory() -> None:
    given, dy = values(), torch.ones(STEPS, ROWS, UNITS)
    expected = both(given, dy)
    for x, same in zip(both([transposed(x) for x in given], dy), expected):
        torch.testing.assert_close(x, same)


def test_gradients_that_are_not_there_are_zeros() -> None:
    given, dy = values(), torch.ones(STEPS, ROWS, UNITS)
    zeros = torch.zeros(ROWS, UNITS)
    for x, same in zip(both(given, dy), both(given, dy, zeros, zeros)):
        assert torch.equal(x, same)
