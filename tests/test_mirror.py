"""Every file of these packages has the test file of its name in the same folder of `tests`."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "flowstone"
MIRRORED = ("rewriting", "runtime", "lowering", "partition", "placement")

# What is tested in the file of another, because it is seen only through that.
ELSEWHERE = {
    "lowering/recurrences/lstm_cells.py": (
        "lowering/recurrences/test_lstm_layers.py",
        "cells are found for layers, and seen only there",
    ),
    "lowering/recurrences/lstm_kernels.py": (
        "lowering/recurrences/test_lstm_layers.py",
        "takes packed weights, which only plans make",
    ),
    "lowering/recurrences/lstm_loop_layers.py": (
        "lowering/recurrences/test_lstm_loops.py",
        "layers of loops are found for loops, and seen only there",
    ),
    "rewriting/match_compilation.py": (
        "rewriting/test_matching.py",
        "closures that patterns are compiled to, and seen only through them",
    ),
    "rewriting/match_terms.py": ("rewriting/test_matching.py", "what patterns are made of"),
    "runtime/plan_options.py": ("runtime/test_plan.py", "fields that planning reads"),
    "runtime/unit_program.py": ("runtime/test_reliability.py", "drives units for sessions' steps"),
}


def sources(package: str) -> list[str]:
    """The package's files, relative to the source."""
    paths = (SOURCE / package).rglob("*.py")
    return sorted(path.relative_to(SOURCE).as_posix() for path in paths if path.name != "__init__.py")


def test_file(source: str) -> Path:
    """Where the tests of a source file are."""
    path = TESTS / source
    return path.with_name(f"test_{path.name}")


test_file.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize("package", MIRRORED)
def test_every_file_has_the_test_file_of_its_name(package: str) -> None:
    files = sources(package)
    assert files, f"{package} has no files"
    missing = [each for each in files if each not in ELSEWHERE and not test_file(each).exists()]
    assert not missing, f"no test file bears the name of {', '.join(missing)}"


@pytest.mark.parametrize("source", sorted(ELSEWHERE))
def test_exemptions_are_needed_and_lead_to_tests(source: str) -> None:
    tested_in, reason = ELSEWHERE[source]
    assert (SOURCE / source).exists() and not test_file(source).exists(), f"{source} needs no exemption"
    assert "def test_" in (TESTS / tested_in).read_text(encoding="utf-8") and reason
