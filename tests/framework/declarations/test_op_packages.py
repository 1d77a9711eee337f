"""Packages that add ops: found by their entry points, also by GraphDefs; and compiled libraries, refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import flowstone as tf

MODULE = """
import torch

from flowstone.framework.types import dtypes
from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.framework.declarations.operation import op

fourth_power = op("FourthPower", "x: T -> y: T", T=(dtypes.float32,), elementwise=True)
fourth_power.infer(lambda node: node.dims(0))
fourth_power.kernel(CPU, GPU)(lambda node, env: lambda x: torch.pow(x, 4))
fourth_power.no_gradient()
"""
PROGRAM = """
import flowstone as tf
message = tf.GraphDef()
x = message.node.add(name="x", op="Placeholder")
x.attr["dtype"].type = tf.float32.as_datatype_enum
y = message.node.add(name="y", op="FourthPower", input=["x"])
y.attr["T"].type = tf.float32.as_datatype_enum
(y,) = tf.import_graph_def(message, return_elements=["y:0"])
with tf.Session() as session:
    print(session.run(y, {"import/x:0": [2.0, 3.0]}).tolist())
"""


def run_with_package(folder: Path, module: str) -> subprocess.CompletedProcess[str]:
    """What a program prints where a package is installed that declares ops."""
    (folder / "power_ops.py").write_text(module)
    metadata = folder / "power_ops-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: power_ops\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[flowstone.ops]\npower = power_ops\n")
    path = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    return subprocess.run([sys.executable, "-c", path + PROGRAM], capture_output=True, text=True)


def test_a_graph_has_ops_of_installed_packages(tmp_path: Path) -> None:
    result = run_with_package(tmp_path, MODULE)
    assert result.stdout.splitlines() == ["[16.0, 81.0]"], result.stderr


def test_a_package_that_fails_is_a_warning_and_other_ops_stay(tmp_path: Path) -> None:
    result = run_with_package(tmp_path, "raise ValueError('broken')\n")
    assert "the ops of entry point power_ops cannot be used: ValueError('broken')" in result.stderr
    assert "Op type not registered 'FourthPower'" in result.stderr


def test_compiled_libraries_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match=r"nothing\.so: cannot open shared object file"):
        tf.load_op_library(str(tmp_path / "nothing.so"))
    library = tmp_path / "word2vec_ops.so"
    library.write_bytes(b"\x7fELF")
    advice = r"Declare the ops in Python.*docs/adding_an_op\.md"
    for load in (tf.load_op_library, tf.load_library, tf.load_file_system_library):
        with pytest.raises(tf.errors.NotFoundError, match=advice):
            load(library)
