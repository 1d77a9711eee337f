"""Runs `forest_tests.py` in a process of its own, in which `tensorflow` is another name of flowstone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).with_name("forest_tests.py")


def test_forests_in_a_process_of_their_own() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(TESTS)]
    places = [str(TESTS.parents[3]), str(TESTS.parents[3] / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=TESTS.parents[3], env=environment
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
