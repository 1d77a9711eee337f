"""Every name of `tf` that more than one source of real programs uses is found by a program that runs here."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import forked

NAMES = (Path(__file__).parents[1] / "golden" / "public_names" / "used_names.txt").read_text().split()
OF_KERAS = [name for name in NAMES if name.startswith(("tf.keras.", "tf.optimizers."))]
PROGRAM = """
import importlib, sys
import tensorflow as tf

def found(name):
    value, path = tf, "tensorflow"
    for part in name.split(".")[1:]:
        path += "." + part
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(path)

for name in sys.argv[1:]:
    try:
        found(name)
    except Exception as error:
        print(name, error)
"""


def missing(names: list[str], tmp_path: Path) -> str:
    """What a program prints that looks for the names."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    result = forked.run(["run", str(path), *names])
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_names_of_tensorflow_and_of_contrib(tmp_path: Path) -> None:
    names = [name for name in NAMES if name not in OF_KERAS]
    assert len(names) > 600 and "tf.contrib.slim.conv2d" in names
    assert missing(names, tmp_path) == ""


def test_a_name_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert missing(["tf.nonsense"], tmp_path).startswith("tf.nonsense ")


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="needs the extra keras")
def test_names_of_keras(tmp_path: Path) -> None:
    assert len(OF_KERAS) > 50
    assert missing(OF_KERAS, tmp_path) == ""
