"""Random words by machine code are those that ATen computes, whatever the counter and the key."""

from __future__ import annotations

import pytest
import torch

from flowstone.framework import flags
from flowstone.native import offers
from flowstone.native.randomness import random_words
from flowstone.ops.randomness import philox
from flowstone.ops.randomness.philox import State

STATES = [
    State(0, 0),
    State(0x123456789ABCDEF0, 7),
    State((1 << 64) - 1, (1 << 128) - 3),
    State(0xFEDCBA9876543210, (1 << 64) - 5),
    State(1 << 63, 1 << 63),
]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("count", [1, 17, 24, 1001])
def test_words_are_aten_s(monkeypatch, state, count):
    code = random_words.made()
    skipped = torch.arange(count * 3)[::3]
    monkeypatch.setattr(philox, "random_words", lambda: code)
    found = philox.blocks_after(state, skipped)
    monkeypatch.setattr(philox, "random_words", lambda: None)
    assert torch.equal(found, philox.blocks_after(state, skipped))


def test_kernels_are_offered_it(monkeypatch):
    offers.offer_all()
    monkeypatch.setattr(flags, "NATIVE", 2)
    assert philox.random_words() is not None
