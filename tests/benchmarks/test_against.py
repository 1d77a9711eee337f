"""Two checkouts beside each other: ratios of rounds, and where a checkout is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent.parent / "benchmarks"


@pytest.fixture
def against(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(str(HERE))
    import against

    return against


def test_ratios_are_those_of_the_rounds(against) -> None:  # type: ignore[no-untyped-def]
    figures = {"w|step|ms": [[1.0, 1.1], [2.0, 1.0], [4.0, 4.0]], "w|nothing|ms": [[0.0, 1.0]]}
    assert against.rows(figures) == [["w", "step", "ms", "2", "1.1", "1.000", "0.500 to 1.100"]]


def test_a_checkout_is_a_folder_or_a_commit_and_both_are_measured(against, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for name in "ab":
        (tmp_path / name / "src" / "flowstone").mkdir(parents=True)
        (tmp_path / name / "src" / "flowstone" / "__init__.py").touch()
    command = [sys.executable, str(HERE / "against.py"), *(str(tmp_path / name) for name in "ab")]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    more = ["--workloads", "import_time", "--rounds", "2"]
    done = subprocess.run([*command, *more], env=environment, capture_output=True, text=True, check=True)
    assert "| import_time | import | s |" in done.stdout
    with against.checkout(str(tmp_path)) as folder:
        assert folder == tmp_path.resolve()
