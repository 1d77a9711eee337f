"""`flowstone check`: what it finds in programs, which it never runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import forked

PROGRAM = """
import tensorflow as tf
from tensorflow.contrib import kfac
import tensorflow.contrib.nonsense
from tensorflow.python.ops import array_ops

raise SystemExit("the program was run")
x = tf.placeholder(tf.float32, [None, 3], name="x")
y = tf.matmul(x, array_ops.ones([3, 2]), nonsense=True)
tf.nn.weighted_cross_entropy_with_logits(x, y, 2.0)
tf.nn.weighted_cross_entropy_with_logits(targets=x, logits=y, pos_weight=2.0)
tf.io.RaggedFeature(tf.int64, "a")
tf.lite.TFLiteConverter()
tf.no_such_name
x.no_such_attribute
tf.scalar_summary("a", 1.0)
tf.distribute.experimental.TPUStrategy()
tf.contrib.distribute.initialize_tpu_system()
"""


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return forked.run(["check", *arguments])


def test_findings(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    result = check(str(path))
    assert result.returncode == 1, result.stderr
    lines = {line.partition(": ")[0].rpartition(":")[2]: line for line in result.stdout.splitlines()[:-1]}
    assert set(lines) == {"3", "4", "9", "10", "12", "13", "14", "17", "18"}
    assert f"{path}:3: missing: tf.contrib.kfac: " in lines["3"] and "tf.contrib.nonsense" in lines["4"]
    assert ": differs: tf.matmul: " in lines["9"] and "nonsense" in lines["9"]
    assert ": ambiguous: " in lines["10"] and "name the arguments" in lines["10"]
    assert ": refused: tf.io.RaggedFeature: " in lines["12"]
    assert "TensorFlow 1.13 and later had: use flowstone freeze" in lines["13"]
    assert "flowstone does not have the name tf.no_such_name" in lines["14"]
    assert ": refused: tf.distribute.experimental.TPUStrategy: " in lines["17"]
    assert ": refused: tf.contrib.distribute.initialize_tpu_system: " in lines["18"]
    assert result.stdout.splitlines()[-1].endswith("names of TensorFlow in 1 files; 9 need a change.")


def test_names_that_fit_and_data(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import tensorflow as tf\ntf.nn.relu(1.0)\n")
    (tmp_path / "b.py").write_text("import os\n")
    result = check(str(tmp_path), "--names")
    assert result.returncode == 0 and f"{tmp_path / 'a.py'}:2: fits: tf.nn.relu" in result.stdout
    data = json.loads(check("--json", "--names", str(tmp_path)).stdout)
    assert [(each["line"], each["kind"], each["name"]) for each in data] == [
        (1, "fits", "tf"),
        (2, "fits", "tf.nn.relu"),
    ]
    assert json.loads(check("--json", str(tmp_path)).stdout) == []


def test_files_that_are_no_python_3(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("import tensorflow as tf\nprint 'x'\n")
    (tmp_path / "wrong.py").write_text("x = = 1\n")
    result = check(str(tmp_path))
    assert result.returncode == 1
    assert f"old.py:2: python 2: a print statement: flowstone convert {tmp_path / 'old.py'}" in result.stdout
    assert "wrong.py:1: no python: Python cannot read the file" in result.stdout
    assert check(str(tmp_path / "absent.py")).returncode == 2
