"""Dropout and uniform numbers: nodes and values are TensorFlow 1.15.5's, where only the graph has a seed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.golden.dropout_forms import FORMS, lines_of, values_of

import flowstone as tf
from flowstone.framework import flags

GOLDEN = Path(__file__).parents[2] / "golden" / "ops"
LINES = json.loads((GOLDEN / "dropout.json").read_text())


def test_every_form_has_its_golden_lines() -> None:
    assert list(LINES) == list(FORMS)


@pytest.mark.parametrize("name", FORMS)
def test_nodes_are_those_of_tensorflow(name: str) -> None:
    expected, found = LINES[name], lines_of(tf, name)
    if any(line.startswith("Switch ") for line in expected):
        # Values enter a branch before what takes them, in TensorFlow after it.
        expected, found = sorted(expected), sorted(found)
    assert found == expected


@pytest.mark.parametrize("tier", [0, 1])
@pytest.mark.parametrize("name", FORMS)
def test_values_are_those_of_tensorflow(name: str, tier: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinity times 0 is NaN, and zeros have signs; what is created later draws the same numbers, too."""
    monkeypatch.setattr(flags, "NATIVE", tier)
    with np.load(GOLDEN / "dropout.npz") as golden, tf.device("/cpu:0"):
        found = values_of(tf, name)
        assert f"{name}/{len(found)}" not in golden
        for i, value in enumerate(found):
            expected = golden[f"{name}/{i}"]
            np.testing.assert_allclose(value, expected, rtol=1e-3 if value.dtype == np.float16 else 1e-6)
            is_number = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(value)[is_number], np.signbit(expected)[is_number])
