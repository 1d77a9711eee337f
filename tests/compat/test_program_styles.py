"""Programs as people wrote them for TensorFlow 0.6 to 1.15, run as they are, print what TensorFlow 1.15 does.

Each file of `programs` is one style, with data of its own; numbers are compared where they do not depend on
random draws, which the programs turn into trends. `tests/golden/make_program_goldens.py` made the goldens.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from installed_programs import SOURCE
from printed_lines import difference

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
GOLDENS = HERE.parent / "golden" / "programs"

Serve = Callable[[str, Path, Path], int]


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    """Does a command of flowstone's on a program: its exit status."""
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    environment["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, str(HERE / "program_server.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as server:  # type: ignore[call-overload]

        def ask(what: str, program: Path, output: Path) -> int:
            print(what, program, output, sep="\t", file=server.stdin, flush=True)
            return int(server.stdout.readline())

        yield ask
        server.stdin.close()


def test_each_program_has_tensorflows_output() -> None:
    assert [path.stem for path in PROGRAMS] == sorted(path.stem for path in GOLDENS.glob("*.txt"))
    assert len(PROGRAMS) >= 30


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_it_prints_what_tensorflow_prints(program: Path, serve: Serve, tmp_path: Path) -> None:
    output = tmp_path / "printed"
    status = serve("run", program, output)
    assert status == 0, Path(f"{output}.err").read_text()[-3000:]
    differs = difference(output.read_text(), (GOLDENS / f"{program.stem}.txt").read_text())
    assert differs is None, differs


def test_nothing_is_said_of_programs_that_run(serve: Serve, tmp_path: Path) -> None:
    output = tmp_path / "printed"
    assert serve("check", HERE / "programs", output) == 0, output.read_text()


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
