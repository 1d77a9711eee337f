"""A trained model without its masks: the products of weights and masks as constants."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf

__all__ = ["graph_def_from_checkpoint", "strip_pruning_vars_fn"]


def graph_def_from_checkpoint(checkpoint_dir: str, output_node_names: list[str]) -> Any:
    """The latest checkpoint's graph up to these nodes, its variables as constants.

    Raises ValueError if the folder has no checkpoint.
    """
    checkpoint = tf.train.latest_checkpoint(checkpoint_dir)
    if checkpoint is None:
        raise ValueError(f"Could not find a checkpoint at: {checkpoint_dir}.")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{checkpoint}.meta", clear_devices=True)
        saver.restore(session, checkpoint)
        return tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), output_node_names)


def strip_pruning_vars_fn(input_graph_def: Any, output_node_names: list[str]) -> Any:
    """A graph of constants with each masked weight as one constant in place of weight, mask and product."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.import_graph_def(input_graph_def, name="")
        names = [op.name for op in graph.get_operations() if op.name.endswith("/masked_weight")]
        values = session.run([f"{name}:0" for name in names])
    constants = dict(zip(names, values, strict=True))
    stripped = tf.GraphDef()
    for node in input_graph_def.node:
        copied = stripped.node.add()
        if node.name in constants:
            _make_constant(copied, node.name, constants[node.name])
        else:
            copied.CopyFrom(node)
    return tf.graph_util.extract_sub_graph(stripped, output_node_names)


def _make_constant(node: Any, name: str, value: np.ndarray) -> None:
    node.name, node.op = name, "Const"
    node.attr["dtype"].type = tf.as_dtype(value.dtype).as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
