"""The nodes and variables of small programs are called what TensorFlow calls them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.golden.name_programs import DIFFERENCES, PROGRAMS, name_lines

import flowstone as tf

GOLDEN = Path(__file__).parent / "golden" / "names" / "programs.txt"


def golden_lines() -> dict[str, list[str]]:
    programs: dict[str, list[str]] = {}
    for line in GOLDEN.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            programs[line[2:]] = lines = []
        else:
            lines.append(line)
    return programs


GOLDENS = golden_lines()


def test_every_program_has_its_names() -> None:
    assert list(GOLDENS) == list(PROGRAMS)
    assert set(DIFFERENCES) <= set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_names_are_tensorflows(name: str) -> None:
    expected, found = set(GOLDENS[name]), set(name_lines(tf, PROGRAMS[name]))
    meant = DIFFERENCES.get(name, {})
    differing = {line: [node for node in meant if is_below(line, node)] for line in expected ^ found}
    assert sorted(line for line, nodes in differing.items() if not nodes) == []
    assert {node for nodes in differing.values() for node in nodes} == set(meant), "a difference is gone"


def is_below(line: str, node: str) -> bool:
    return f"{line.split()[0]}/".startswith(f"{node}/")
