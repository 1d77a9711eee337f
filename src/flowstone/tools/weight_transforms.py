"""Transforms of weights, which make a graph's file smaller, compressed or not: see `graph_transforms.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.tools.transform_parts import Arguments, one, with_nodes

__all__ = ["quantize_weights", "round_weights"]

_LEAST = 15  # constants of so many elements stay as they are
_SMALLEST = np.finfo(np.float32).tiny


def round_weights(graph: Any, inputs: list[str], outputs: list[str], arguments: Arguments) -> Any:
    """Rounds large constants to `num_steps` values (256), in the middles of equal parts of their range."""
    steps = int(one(arguments, "num_steps", "256"))
    made = with_nodes(graph, list(graph.node))
    for node in made.node:
        if (values := _floats(node)) is not None and values.size > _LEAST:
            _set_value(node, _rounded(values, steps))
    return made


def _rounded(values: Any, steps: int) -> Any:
    least, most = values.min(), values.max()
    span = most - least if most > least else max(abs(least), _SMALLEST)
    width = np.float32(span / np.float32(steps))
    numbers = np.floor((values - least) / width)
    return (least + (numbers + np.float32(0.5)) * width).astype(np.float32)


def quantize_weights(graph: Any, inputs: list[str], outputs: list[str], arguments: Arguments) -> Any:
    """Makes constants of at least `minimum_size` elements (1024) bytes, which a node Dequantize reads."""
    size = int(one(arguments, "minimum_size", "1024"))

    def nodes() -> Iterator[Any]:
        for node in graph.node:
            values = _floats(node)
            if values is None or values.size < size:
                yield node
            else:
                yield from _quantized(node, values)

    return with_nodes(graph, list(nodes()))


def _quantized(node: Any, values: Any) -> Iterator[Any]:
    """The constants of a node's bytes and of their range, and what makes floats of them, by its name."""
    least, most = np.float32(min(values.min(), 0)), np.float32(max(values.max(), _SMALLEST))
    scale = 255.0 / (float(most) - float(least))
    numbers = np.round(values.astype(np.float64) * scale) - np.round(float(least) * scale)
    kind = tf.quint8
    parts = {
        "const": np.clip(numbers, 0, 255).astype(np.uint8).view(kind.as_numpy_dtype),
        "min": least,
        "max": most,
    }
    for part, value in parts.items():
        made = tf.NodeDef(name=f"{node.name}_quantized_{part}", op="Const", device=node.device)
        made.attr["dtype"].type = (kind if part == "const" else tf.float32).as_datatype_enum
        _set_value(made, value)
        yield made
    made = tf.NodeDef(name=node.name, op="Dequantize", device=node.device)
    made.input.extend(f"{node.name}_quantized_{part}" for part in parts)
    made.attr["T"].type = kind.as_datatype_enum
    made.attr["mode"].s = b"MIN_FIRST"
    yield made


def _floats(node: Any) -> Any:
    """The value of a constant of type float32; None for other nodes."""
    if node.op != "Const" or node.attr["dtype"].type != tf.float32.as_datatype_enum:
        return None
    return tf.make_ndarray(node.attr["value"].tensor)


def _set_value(node: Any, value: Any) -> None:
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
