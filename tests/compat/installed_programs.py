"""Runs programs in which tensorflow is flowstone. Each is a process, since installing changes one."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

SOURCE = str(Path(__file__).parents[2] / "src")


def run(program: str) -> str:
    """The output of a program in which tensorflow is flowstone."""
    start = "from flowstone.compat import tensorflow_name as t; t.install(); t.install()\n"
    return run_bare(start + textwrap.dedent(program))


def run_bare(program: str) -> str:
    """The output of a program that has imported flowstone and nothing else of it."""
    start = f"import sys; sys.path.insert(0, {SOURCE!r}); import flowstone\n"
    result = subprocess.run(
        [sys.executable, "-c", start + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def run_as_program(text: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """What `flowstone run` makes of a program."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    command = [sys.executable, "-m", "flowstone", "run", str(path)]
    environment = {"PYTHONPATH": SOURCE, "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
