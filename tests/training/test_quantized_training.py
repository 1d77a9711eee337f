"""`do_quantize_training_on_graphdef`: the graph that TensorFlow 1.15.5 makes, and what it computes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import flowstone as tf
import quantized_training_cases as cases

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/quantized_training.json").read_text())
quantize = tf.train.do_quantize_training_on_graphdef


def plain(node: Any) -> Any:
    """A node whose tensor has its values as a list: messages write one value in two ways."""
    if "value" in node.attr:
        tensor = node.attr["value"].tensor
        values = tf.make_ndarray(tensor)
        tensor.ClearField("tensor_content")
        (tensor.float_val if values.dtype == np.float32 else tensor.int_val)[:] = values.ravel().tolist()
    return node


@pytest.mark.parametrize("name", cases.CASES)
def test_graphs(name: str) -> None:
    with tf.Graph().as_default() as graph:
        cases.CASES[name](tf)
    before = graph.as_graph_def()
    after = quantize(before, 8)
    old = {node.name: node for node in before.node}
    assert before == graph.as_graph_def()
    assert [node.name for node in after.node][: len(before.node)] == list(old)
    found = {node.name: node for node in after.node if old.get(node.name) != node}
    assert set(found) == set(GOLDEN[name])
    for each, text in GOLDEN[name].items():
        expected = text_format.Parse(text, tf.NodeDef())
        assert plain(cases.without_details(found[each], name, each not in old)) == plain(expected)


def test_trains_with_moving_ranges() -> None:
    with tf.Graph().as_default() as graph:
        cases.twice(tf)
    after = quantize(graph.as_graph_def(), 3)
    first = np.float32([[0, 1, 2], [3, 4, 7], [0, 0, 0]])
    second = np.float32([[0, 1, 2], [3, 4, 70], [0, 0, 0]])
    names = ["x:0", "x/QuantizeAndDequantizeV2:0", "product:0", "x/Max/Variable:0"]
    with tf.Graph().as_default(), tf.Session() as session:
        x, rounded, product, largest = tf.import_graph_def(after, name="", return_elements=names)
        (gradient,) = tf.gradients(product, x)
        values, squares, slopes = session.run([rounded, product, gradient], {x: first})
        np.testing.assert_allclose(values, np.round(first * 3 / 7) * 7 / 3, rtol=1e-6)
        np.testing.assert_allclose(squares, values @ values, rtol=1e-6)
        np.testing.assert_allclose(slopes, values.sum(1) + values.sum(0)[:, None], rtol=1e-6)
        assert session.run(largest) == 7
        values = session.run(rounded, {x: second})
        np.testing.assert_allclose(session.run(largest), 7 + 0.001 * 63, rtol=1e-6)
        assert values.max() == pytest.approx(7.063)  # what lies above the range is cut off


def test_bad_requests() -> None:
    with tf.Graph().as_default() as graph:
        cases.twice(tf)
    for bits in (0, 64, -1):
        with pytest.raises(tf.errors.OutOfRangeError, match=f"but is: {bits}"):
            quantize(graph.as_graph_def(), bits)
    with tf.Graph().as_default() as graph:
        a = tf.placeholder(tf.float64, [3, 3])
        tf.matmul(a, a, name="wide")
    with pytest.raises(tf.errors.InvalidArgumentError, match="wide multiplies float64"):
        quantize(graph.as_graph_def(), 8)
    with tf.Graph().as_default() as graph:
        for _ in range(3):
            tf.matmul(tf.placeholder(tf.float32, [3, 3], name="a"), tf.constant([[1.0] * 3] * 3))
    with pytest.raises(tf.errors.UnimplementedError, match="a_2"):
        quantize(graph.as_graph_def(), 8)
