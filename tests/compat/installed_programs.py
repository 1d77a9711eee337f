"""Runs programs in which tensorflow is flowstone. Each is a process, since installing changes one."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import forked
from forked import SOURCE

__all__ = ["SOURCE", "run", "run_as_program", "run_bare"]


def run(program: str) -> str:
    """The output of a program in which tensorflow is flowstone."""
    start = "from flowstone.compat import tensorflow_name as t; t.install(); t.install()\n"
    return run_bare(start + textwrap.dedent(program))


def run_bare(program: str) -> str:
    """The output of a program that has imported flowstone and nothing else of it."""
    start = f"import sys; sys.path.insert(0, {SOURCE!r}); import flowstone\n"
    result = forked.run(code=start + textwrap.dedent(program))
    assert result.returncode == 0, result.stderr
    return result.stdout


def run_as_program(text: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """What `flowstone run` makes of a program."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    return forked.run(["run", str(path)])
