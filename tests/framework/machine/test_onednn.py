"""oneDNN's kernels: named in one place, and missed by nobody where torch has none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flowstone.framework.machine import onednn

SOURCE = Path(__file__).parents[3] / "src" / "flowstone"
NAMES = (
    "product",
    "convolve",
    "convolve_onto",
    "transpose_convolve",
    "reordered_weights",
    "reordered_filter",
)

STRIPPED = """
import sys, types, torch
sys.path[:0] = {paths!r}
from conftest import strip
strip(torch)
import flowstone as tf
from flowstone.framework.machine import machine, onednn
x = tf.placeholder(tf.float32, [32, 64])
w = tf.get_variable("w", [64, 2048])
f = tf.get_variable("f", [3, 3, 64, 64])
y = tf.nn.relu(tf.matmul(x, w) + 1.0)
images = tf.nn.conv2d(tf.reshape(y, [4, 16, 16, 64]), f, [1, 1, 1, 1], "SAME")
images = tf.nn.lrn(tf.nn.max_pool(tf.nn.relu(images), [1, 2, 2, 1], [1, 2, 2, 1], "SAME"))
outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(64), tf.reshape(images, [4, 64, 64]), dtype=tf.float32)
loss = tf.reduce_sum(tf.square(outputs))
step = tf.train.GradientDescentOptimizer(1e-5).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    feed = {{x: [[0.01 * i] * 64 for i in range(32)]}}
    losses = [session.run([loss, step], feed)[0] for _ in range(3)]
    assert losses[2] < losses[0], losses
    assert "mkldnn" not in session.explain(step, feed)
assert not (onednn.is_available() or machine.current().has_onednn)
print("trained")
"""


def test_one_file_names_onednns_operators() -> None:
    found = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if "torch.ops.mkldnn" in path.read_text() or "mkldnn_rnn_layer" in path.read_text()
    ]
    assert found == ["framework/machine/onednn.py"]


@pytest.mark.needs_onednn
def test_all_kernels_are_there() -> None:
    assert onednn.is_available()
    assert all(getattr(onednn, name) is not None for name in NAMES)


def test_a_program_trains_where_torch_has_no_onednn() -> None:
    """A process of its own, whose torch is stripped before flowstone is imported."""
    program = STRIPPED.format(paths=[str(SOURCE.parent), str(Path(__file__).parents[2])])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout == "trained\n", done.stderr[-2000:]
