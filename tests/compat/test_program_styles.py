"""Programs as people wrote them for TensorFlow 0.6 to 1.15, run as they are, print what TensorFlow 1.15 does.

Each file of `programs` is one style, with data of its own; numbers are compared where they do not depend on
random draws, which the programs turn into trends. `tests/golden/make_program_goldens.py` made the goldens.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import forked
from printed_lines import difference

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
GOLDENS = HERE.parent / "golden" / "programs"

_ROOMS = "layers rnn seq2seq slim training"
LOADED = (*(f"flowstone.contrib.{room}" for room in _ROOMS.split()), "flowstone.estimator")  # by most of them


def test_each_program_has_tensorflows_output() -> None:
    assert [path.stem for path in PROGRAMS] == sorted(path.stem for path in GOLDENS.glob("*.txt"))
    assert len(PROGRAMS) >= 30


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_it_prints_what_tensorflow_prints(program: Path, tmp_path: Path) -> None:
    ran = forked.run(["run", str(program)], folder=tmp_path, loaded=LOADED)
    assert ran.returncode == 0, ran.stderr[-3000:]
    differs = difference(ran.stdout, (GOLDENS / f"{program.stem}.txt").read_text())
    assert differs is None, differs


def test_nothing_is_said_of_programs_that_run(tmp_path: Path) -> None:
    checked = forked.run(["check", str(HERE / "programs")], folder=tmp_path, loaded=LOADED)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        ("loss 0.50004 at 3", "loss 0.5 at 3", None),
        ("loss 0.51 at 3", "loss 0.5 at 3", "line 1"),
        ("loss 0.5 at 4", "loss 0.5 at 3", "line 1"),
        ("a\nb 1", "a\nc 1", "line 2"),
        ("a", "a\nb", "1 lines, TensorFlow prints 2"),
    ],
)
def test_what_counts_as_the_same(got: str, expected: str, said: str | None) -> None:
    found = difference(got, expected)
    assert found is None if said is None else found is not None and found.startswith(said)
