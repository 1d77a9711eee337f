"""Input pipelines are built as TensorFlow builds them, and deliver their input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.training import pipeline_programs

import flowstone as tf

GOLDEN = Path(__file__).parents[1] / "golden" / "training" / "pipelines.txt"


def golden_lines() -> dict[str, list[str]]:
    sections = GOLDEN.read_text(encoding="utf-8").split("# ")[1:]
    return {lines[0]: lines[1:] for lines in (section.strip().split("\n") for section in sections)}


GOLDENS = golden_lines()


def test_every_program_has_its_description() -> None:
    assert list(GOLDENS) == list(pipeline_programs.PROGRAMS)


@pytest.mark.parametrize("name", pipeline_programs.PROGRAMS)
def test_graph(name: str) -> None:
    assert pipeline_programs.described(tf, name) == GOLDENS[name]
