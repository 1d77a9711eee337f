"""Programs with monitored sessions and supervisors do what they do in TensorFlow, in its order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.training import session_programs

import flowstone as tf

GOLDEN = Path(__file__).parents[1] / "golden" / "training" / "sessions.txt"


def golden_lines() -> dict[str, list[str]]:
    sections = GOLDEN.read_text(encoding="utf-8").split("# ")[1:]
    return {lines[0]: lines[1:] for lines in (section.strip().split("\n") for section in sections)}


GOLDENS = golden_lines()


def test_every_program_has_its_lines() -> None:
    assert list(GOLDENS) == list(session_programs.PROGRAMS)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    tf.logging.set_verbosity(tf.logging.FATAL)
    yield
    tf.logging.set_verbosity(tf.logging.WARN)
    tf.reset_default_graph()


@pytest.mark.parametrize("name", session_programs.PROGRAMS)
def test_program(name: str, tmp_path: Path) -> None:
    assert session_programs.record(tf, name, str(tmp_path)) == GOLDENS[name]
