"""Datasets against TensorFlow 1.15: elements, types, shapes and errors (`pipelines.py`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import flowstone as tf
import pipelines

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "data" / "pipelines.json").read_text())


def test_every_program_has_its_results() -> None:
    assert list(GOLDEN) == list(pipelines.PROGRAMS)


@pytest.mark.parametrize("name", pipelines.PROGRAMS)
def test_elements_are_tensorflows(name: str) -> None:
    assert pipelines.run(tf, name) == GOLDEN[name]
