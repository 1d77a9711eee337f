"""Nodes are written with the attributes that TensorFlow 1.15 knows, which refuses graphs with others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.attributes import REQUIRED
from flowstone.framework.declarations.registry import registry
from flowstone.framework.graphs.later_attributes import LATER_ATTRIBUTES

IMAGE = np.ones([1, 4, 4, 2], "float32")
FILTERS = np.ones([2, 2, 2, 1], "float32")
ONES = np.ones([2, 2], "float32")
VECTOR = np.ones(2, "float32")

CASES = {
    "MatMul": (lambda: tf.matmul(ONES, ONES), "T transpose_a transpose_b"),
    "MaxPool": (lambda: tf.nn.max_pool(IMAGE, 2, 1, "SAME"), "T data_format ksize padding strides"),
    "DepthwiseConv2dNative": (
        lambda: tf.nn.depthwise_conv2d_native(IMAGE, FILTERS, [1, 1, 1, 1], "SAME"),
        "T data_format dilations padding strides",
    ),
    "TopKV2": (lambda: tf.nn.top_k(ONES), "T sorted"),
    "RFFT": (lambda: tf.spectral.rfft(VECTOR), ""),
    "ScatterNd": (lambda: tf.scatter_nd([[0]], VECTOR[:1], [2]), "T Tindices"),
    "SparseSegmentSum": (lambda: tf.sparse_segment_sum(ONES, [0, 1], [0, 0]), "T Tidx"),
    "QuantizeV2": (lambda: tf.quantize_v2(ONES, 0.0, 1.0, tf.quint8), "T mode round_mode"),
    "Dequantize": (
        lambda: tf.dequantize(tf.placeholder(tf.quint8, [2]), 0.0, 1.0),
        "T mode",
    ),
}
"""An op of each type, and the attributes of TensorFlow 1.15's node."""


@pytest.mark.parametrize("op", CASES)
def test_nodes_have_the_attributes_of_1_15(op: str) -> None:
    make, names = CASES[op]
    with tf.Graph().as_default() as graph:
        make()
    (node,) = [node for node in graph.as_graph_def().node if node.op == op]
    assert sorted(node.attr) == names.split()


def test_values_other_than_the_default_are_written_and_read() -> None:
    with tf.Graph().as_default() as graph:
        tf.raw_ops.MatMul(a=ONES, b=ONES, grad_a=True, name="product")
    graph_def = graph.as_graph_def()
    (node,) = [node for node in graph_def.node if node.name == "product"]
    assert node.attr["grad_a"].b and "grad_b" not in node.attr
    with tf.Graph().as_default() as again:
        tf.import_graph_def(graph_def, name="")
    operation = again.get_operation_by_name("product")
    assert (operation.get_attr("grad_a"), operation.get_attr("grad_b")) == (True, False)


def test_each_is_declared_with_a_default() -> None:
    registry.load_late()
    declared: dict[str, Any] = {op: registry[op].attributes for op in LATER_ATTRIBUTES}
    wrong = [
        f"{op}.{name}"
        for op, names in LATER_ATTRIBUTES.items()
        for name in names
        if name not in declared[op] or declared[op][name].default is REQUIRED
    ]
    assert not wrong
