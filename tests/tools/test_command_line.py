"""The command `flowstone`: each case starts it as a user would."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import forked
from flowstone.tools.command_line import SUBCOMMANDS, build_parser

TELLS_ITS_SURROUNDINGS = """\
import sys
import tensorflow as tf
print(__name__, sys.argv, repr(sys.path[0]), tf.__name__)
"""


def flowstone(*arguments: str, folder: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return forked.run(arguments, folder=folder, given=stdin or "")


def test_version_and_help(tmp_path: Path) -> None:
    version = flowstone("--version", folder=tmp_path)
    assert version.returncode == 0
    assert version.stdout.startswith("flowstone ")
    summary = flowstone("-h", folder=tmp_path)
    assert summary.returncode == 0
    assert all(name in summary.stdout for name in SUBCOMMANDS)


def test_a_subcommand_is_required(tmp_path: Path) -> None:
    result = flowstone(folder=tmp_path)
    assert result.returncode == 2
    assert "usage: flowstone" in result.stderr


def test_everything_after_the_program_is_the_programs() -> None:
    options = build_parser().parse_args(["run", "program.py", "-m", "--steps", "3", "-h", "--", "-"])
    assert (options.program, options.as_module) == ("program.py", False)
    assert options.arguments == ["-m", "--steps", "3", "-h", "--", "-"]
    options = build_parser().parse_args(["run", "-m", "package.module", "--help"])
    assert (options.program, options.as_module, options.arguments) == ("package.module", True, ["--help"])


def test_a_file_sees_its_own_surroundings(tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "beside.py").write_text("VALUE = 7\n")
    program = folder / "program.py"
    program.write_text(TELLS_ITS_SURROUNDINGS + "import beside\nprint(beside.VALUE)\n")
    result = flowstone("run", str(program), "--steps", "3", "-h", folder=tmp_path)
    assert result.stdout.splitlines() == [
        f"__main__ {[str(program), '--steps', '3', '-h']} {str(folder)!r} flowstone",
        "7",
    ], result.stderr
    assert result.returncode == 0


def test_a_module_is_found_from_the_current_folder(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "module.py").write_text(TELLS_ITS_SURROUNDINGS)
    result = flowstone("run", "-m", "package.module", "a", folder=tmp_path)
    file = str(package / "module.py")
    assert result.stdout.strip() == f"__main__ {[file, 'a']} {str(tmp_path)!r} flowstone", result.stderr


def test_a_program_from_standard_input(tmp_path: Path) -> None:
    result = flowstone("run", "-", "a", folder=tmp_path, stdin=TELLS_ITS_SURROUNDINGS)
    assert result.stdout.strip() == "__main__ ['-', 'a'] '' flowstone", result.stderr


@pytest.mark.parametrize(("call", "status"), [("sys.exit(3)", 3), ("sys.exit()", 0), ("sys.exit('why')", 1)])
def test_the_programs_exit_status_passes_through(tmp_path: Path, call: str, status: int) -> None:
    result = flowstone("run", "-", folder=tmp_path, stdin=f"import sys\n{call}\n")
    assert result.returncode == status
    assert result.stderr == ("why\n" if "why" in call else "")


@pytest.mark.parametrize("way", ["file", "module", "standard input"])
def test_a_traceback_begins_in_the_program(tmp_path: Path, way: str) -> None:
    source = "def divide():\n    return 1 / 0\n\ndivide()\n"
    (tmp_path / "broken.py").write_text(source)
    arguments = {"file": ["broken.py"], "module": ["-m", "broken"], "standard input": ["-"]}[way]
    result = flowstone("run", *arguments, folder=tmp_path, stdin=source)
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].endswith(", line 4, in <module>"), result.stderr
    assert any(line.endswith(", line 2, in divide") for line in lines), result.stderr
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "runpy" not in result.stderr
    assert "flowstone" not in result.stderr


def test_a_syntax_error_is_shown_alone(tmp_path: Path) -> None:
    result = flowstone("run", "-", folder=tmp_path, stdin="x = = 1\n")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("SyntaxError")
    assert "Traceback" not in result.stderr


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = flowstone("run", "absent.py", folder=tmp_path)
    assert result.returncode == 2
    assert result.stderr == "flowstone run: no such file: absent.py\n"
