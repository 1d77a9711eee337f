"""Transforms of `TransformGraph` that make constant weights smaller, or easier to compress."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.tools.transform_parts import Arguments, invalid, one, with_nodes

__all__ = ["quantize_weights", "round_weights"]

LEAST_MAXIMUM = np.finfo(np.float32).tiny
"""TensorFlow takes no maximum below this one, also of negative weights."""

FEWEST_ROUNDED = 16
"""Constants of fewer numbers are not rounded."""


def quantize_weights(graph: Any, inputs: list[str], outputs: list[str], arguments: Arguments) -> Any:
    """Keeps float constants of `minimum_size` numbers or more (by default 1024) as bytes.

    The constant `w` becomes `Dequantize(w_quantized_const, w_quantized_min, w_quantized_max)` of its name,
    in the mode MIN_FIRST. The range is that of the numbers and zero.
    """
    fewest = _number(arguments, "minimum_size", "1024")
    nodes = []
    for node in graph.node:
        values = _floats(node)
        nodes += [node] if values is None or values.size < max(fewest, 1) else _quantized(node, values)
    return with_nodes(graph, nodes)


def round_weights(graph: Any, inputs: list[str], outputs: list[str], arguments: Arguments) -> Any:
    """Leaves about `num_steps` (by default 256) different numbers in float constants of 16 numbers or more:
    the middles of as many equal parts of their range, of which the largest number begins one more."""
    steps = _number(arguments, "num_steps", "256")
    if steps < 1:
        raise invalid(f"round_weights needs num_steps of at least 1, and has {steps}.")
    nodes = []
    for node in graph.node:
        values = _floats(node)
        is_rounded = values is not None and values.size >= FEWEST_ROUNDED
        nodes.append(_constant(node.name, node, _rounded(values, steps)) if is_rounded else node)
    return with_nodes(graph, nodes)


def _number(arguments: Arguments, name: str, default: str) -> int:
    text = one(arguments, name, default)
    try:
        return int(text)
    except ValueError:
        raise invalid(f"Couldn't interpret the {name} argument as a number: {text}") from None


def _floats(node: Any) -> Any:
    """The numbers of a constant of type float32; None for other nodes."""
    if node.op != "Const" or node.attr["dtype"].type != tf.float32.as_datatype_enum:
        return None
    return tf.make_ndarray(node.attr["value"].tensor)


def _constant(name: str, like: Any, values: Any, dtype: Any = tf.float32) -> Any:
    node = tf.NodeDef(name=name, op="Const", device=like.device, input=like.input)
    node.attr["dtype"].type = dtype.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(values, dtype=dtype))
    return node


def _rounded(values: Any, steps: int) -> Any:
    lowest = values.min()
    highest = max(values.max(), LEAST_MAXIMUM)
    if lowest == highest:
        lowest = np.float32(0)
    width = (highest - lowest) / np.float32(steps)
    return (lowest + width * (np.floor((values - lowest) / width) + np.float32(0.5))).astype(np.float32)


def _quantized(node: Any, values: Any) -> list[Any]:
    lowest, highest = min(values.min(), np.float32(0)), max(values.max(), LEAST_MAXIMUM)
    with tf.Graph().as_default(), tf.Session() as session:
        codes = session.run(tf.quantize_v2(values, lowest, highest, tf.quint8, mode="MIN_FIRST").output)
    parts = [
        _constant(f"{node.name}_quantized_const", node, codes, tf.quint8),
        _constant(f"{node.name}_quantized_min", node, lowest),
        _constant(f"{node.name}_quantized_max", node, highest),
    ]
    made = tf.NodeDef(name=node.name, op="Dequantize", device=node.device)
    made.input.extend(part.name for part in parts)
    made.attr["T"].type = tf.quint8.as_datatype_enum
    made.attr["mode"].s = b"MIN_FIRST"
    return [*parts, made]
