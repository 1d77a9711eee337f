"""What both rewriting passes ask of a graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flowstone as tf

__all__ = ["LAYER_TYPES", "quantization_step", "reroute", "scope_of"]

_STEP = "__fake_quantization_step"
LAYER_TYPES = ("Conv2D", "DepthwiseConv2dNative", "MatMul")


def scope_of(op: Any) -> str:
    """The name scope of an operation: all of its name but the last part."""
    return str(op.name.rpartition("/")[0])


def reroute(old: Any, new: Any, consumers: Iterable[Any]) -> int:
    """Has the operations take `new` where they took `old`; returns how many inputs that were."""
    count = 0
    for op in dict.fromkeys(consumers):
        for index, tensor in enumerate(list(op.inputs)):
            if tensor is old:
                op._update_input(index, new)
                count += 1
    return count


def quantization_step(graph: Any) -> Any:
    """The count of the runs of a rewritten graph: a scalar int64 tensor, made when first asked for.

    The variable is `fake_quantization_step`; whatever depends on the tensor counts.
    """
    made = graph.get_collection(_STEP)
    if made:
        return made[0]
    with tf.variable_scope(tf.VariableScope(False), auxiliary_name_scope=False), tf.name_scope(None):
        variable = tf.get_variable(
            "fake_quantization_step",
            shape=[],
            dtype=tf.int64,
            initializer=tf.zeros_initializer(),
            trainable=False,
            use_resource=False,
            collections=[tf.GraphKeys.GLOBAL_VARIABLES],
        )
        with tf.name_scope("fake_quantization_step/"):
            count = tf.identity(tf.assign_add(variable, 1), name="Identity")
    graph.add_to_collection(_STEP, count)
    return count
