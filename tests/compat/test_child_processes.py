"""Processes that a program spawns run over flowstone, too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import multiprocessing

def double(x):
    import tensorflow as tf
    with tf.Session() as session:
        return tf.__name__, int(session.run(tf.constant(x) * 2))

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [1, 2]))
"""


def test_a_spawned_process_has_the_name_tensorflow(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    run = [sys.executable, "-m", "flowstone", "run", str(path)]
    result = subprocess.run(run, capture_output=True, text=True, timeout=100)
    assert result.stdout == "[('flowstone', 2), ('flowstone', 4)]\n", result.stderr
