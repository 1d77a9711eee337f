"""Estimators with a seed draw TensorFlow 1.15's numbers: random operations have its seeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.golden.estimator_seeds import ESTIMATORS, GOLDEN, seeds

import flowstone as tf

EXPECTED = json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("name", ESTIMATORS)
def test_random_operations_have_tensorflows_seeds(name: str, tmp_path: Path) -> None:
    assert len(EXPECTED[name]) > 2
    assert seeds(tf, name, str(tmp_path)) == EXPECTED[name]
