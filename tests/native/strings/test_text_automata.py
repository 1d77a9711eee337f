"""Texts that machine code reads by an automaton end in the states that its table says."""

from __future__ import annotations

import random

import numpy as np
import pytest

from flowstone.framework import flags
from flowstone.framework.machine import string_code
from flowstone.native import offers
from flowstone.native.strings.text_automata import TextAutomata


@pytest.fixture(scope="module")
def code() -> TextAutomata:
    return TextAutomata()


def test_states_of_random_automata(code):
    draw = np.random.RandomState(1)
    for states in (3, 10, 300):
        table = draw.randint(0, states, (states, 256)).astype(np.int32)
        table[2:] = np.maximum(table[2:], 2 - (draw.rand(states - 2, 256) < 0.05))
        table[0], table[1] = 0, 1
        texts = [random.Random(i).randbytes(i) for i in range(150)]
        expected = []
        for text in texts:
            state = 2
            for byte in text:
                state = table[state, byte]
            expected.append(state)
        found = code(texts, table)
        assert found.dtype == np.int32 and found.tolist() == expected


def test_nothing_and_what_is_no_bytes(code):
    table = np.zeros((3, 256), np.int32)
    assert code([], table).shape == (0,)
    for strange in ("text", None, 3, np.bytes_(b"x")):
        assert code([b"a", strange], table) is None


def test_kernels_are_offered_it_where_there_is_a_native_tier(monkeypatch):
    offers.offer_all()
    assert isinstance(string_code.text_automata(), TextAutomata)
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert string_code.text_automata() is None
