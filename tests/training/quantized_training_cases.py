"""Graphs whose products are quantised; each function takes the module `tf`. TensorFlow runs them too."""

from __future__ import annotations

from typing import Any


def layers(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [1, 4, 4, 2], name="x")
    h = tf.nn.conv2d(x, variable(tf, "kernel", [1, 1, 2, 3]), [1, 1, 1, 1], "SAME", name="conv")
    h = tf.nn.relu6(h, name="relu6")
    h = tf.reshape(h, [1, 48], name="flat")
    h = tf.matmul(h, variable(tf, "w", [48, 4]), name="product")
    h = tf.nn.relu(h, name="relu")
    h = tf.matmul(h, tf.constant([[1.0] * 4] * 4, name="c"), name="second")
    tf.matmul(h, h, transpose_b=True, name="gradients/other")


def ranges(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [1, 2, 2, 1], name="x")
    c = tf.constant([[1.0]], name="c")
    for name in ("sigmoid", "tanh", "relu"):
        h = getattr(tf.nn, name)(x, name=name)
        h = tf.nn.max_pool(h, [1, 1, 1, 1], [1, 1, 1, 1], "SAME", name=name + "_pool")
        h = tf.concat([h, x], 0, name=name + "_concat")
        tf.matmul(tf.reshape(h, [-1, 1], name=name + "_flat"), c, name=name + "_product")


def twice(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [3, 3], name="x")
    tf.matmul(x, x, name="product")


def variable(tf: Any, name: str, shape: list[int]) -> Any:
    return tf.raw_ops.VariableV2(shape=shape, dtype=tf.float32, name=name)


def without_details(node: Any, case: str, is_new: bool) -> Any:
    """A node as it is compared: attributes matter of the new ones of one case, and of those that round."""
    if not is_new or (case != "twice" and node.op not in ("Const", "QuantizeAndDequantizeV2")):
        node.ClearField("attr")
    return node


CASES = {"layers": layers, "ranges": ranges, "twice": twice}
