"""Transforms of weights and names: the values and nodes are those of TensorFlow 1.15."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.tools.graph_transforms import TransformGraph


def constant(values: Any) -> Any:
    """The graph of `out = identity(c)`."""
    with tf.Graph().as_default() as graph:
        tf.identity(tf.constant(np.array(values, "float32"), name="c"), name="out")
    return graph.as_graph_def()


def result(graph_def: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        return session.run("out:0")


@pytest.mark.parametrize(
    ("values", "steps", "rounded"),
    [
        (np.linspace(-1.3, 2.1, 16), 4, [-0.875, -0.025, 0.825, 1.675, 2.525]),
        (np.linspace(0.5, 3, 20), 5, [0.75, 1.25, 1.75, 2.25, 2.75, 3.25]),
        (np.full(20, 0.7), 4, [0.7875]),
        (np.zeros(16), 4, [1.469368e-39]),
    ],
)
def test_rounded_weights(values: Any, steps: int, rounded: list[float]) -> None:
    made = TransformGraph(constant(values), [], ["out"], [f"round_weights(num_steps={steps})"])
    np.testing.assert_allclose(
        np.unique(tf.make_ndarray(made.node[0].attr["value"].tensor)), rounded, rtol=1e-5
    )


def test_few_weights_are_not_rounded_and_many_have_256_values() -> None:
    few = TransformGraph(constant(range(15)), [], ["out"], ["round_weights(num_steps=4)"])
    assert result(few).tolist() == list(range(15))
    many = TransformGraph(constant(np.linspace(-1.3, 2.1, 600)), [], ["out"], ["round_weights"])
    assert len(np.unique(result(many))) == 257


@pytest.mark.parametrize(
    ("values", "codes", "least", "most"),
    [
        ([-3, -2, -1], [0, 85, 170], -3, 1.1754943508222875e-38),
        ([1, 1.5, 2], [128, 191, 255], 0, 2),
        (np.linspace(-1, 1, 7), [0, 43, 85, 128, 171, 213, 255], -1, 1),
        ([5], [255], 0, 5),
    ],
)
def test_quantized_weights(values: Any, codes: list[int], least: float, most: float) -> None:
    made = TransformGraph(constant(values), [], ["out"], ["quantize_weights(minimum_size=1)"])
    nodes = {node.name: node for node in made.node}
    kept = [
        tf.make_ndarray(nodes[f"c_quantized_{part}"].attr["value"].tensor) for part in ("const", "min", "max")
    ]
    assert np.asarray(kept[0]).astype(int).tolist() == codes
    assert (float(kept[1]), float(kept[2])) == (least, most)
    assert nodes["c"].op == "Dequantize" and nodes["c"].attr["mode"].s == b"MIN_FIRST"
    np.testing.assert_allclose(result(made), values, atol=0.02)


@pytest.mark.parametrize(("size", "ops"), [(1023, 2), (1024, 5)])
def test_small_weights_are_not_quantized(size: int, ops: int) -> None:
    made = TransformGraph(constant(np.ones(size)), [], ["out"], ["quantize_weights"])
    assert len(made.node) == ops


def test_obfuscated_names_are_numbers_of_62_digits_that_inputs_and_outputs_leave() -> None:
    with tf.Graph().as_default() as graph:
        items = [tf.constant(1.0, name=f"n{i}") for i in range(130)]
        tf.add_n([*items, tf.constant(1.0, name="3")], name="5")
    made = TransformGraph(graph.as_graph_def(), ["3"], ["5"], ["obfuscate_names"])
    names = [node.name for node in made.node]
    assert names[:7] == ["0", "1", "2", "4", "6", "7", "8"]
    assert (names[60:63], names[120:123]) == (["10", "11", "12"], ["1Y", "1Z", "20"])
    assert names[-2:] == ["3", "5"] and list(made.node[-1].input) == names[:-1]


def test_obfuscated_inputs_keep_their_indices_and_marks() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        with tf.control_dependencies([tf.constant(1.0, name="first")]):
            places = tf.unique(x).idx
        tf.identity(places, name="out")
    made = TransformGraph(graph.as_graph_def(), ["x"], ["out"], ["obfuscate_names"])
    inputs = {node.op: list(node.input) for node in made.node if node.op in ("Unique", "Identity")}
    assert inputs == {"Unique": ["x", "^0"], "Identity": ["1:1"]}


def test_default_attributes_are_added() -> None:
    with tf.Graph().as_default() as graph:
        a = tf.placeholder(tf.float32, [2, 2], name="a")
        tf.matmul(a, a, name="out")
    graph_def = graph.as_graph_def()
    for node in graph_def.node:
        for name in ("transpose_a", "transpose_b", "shape"):
            node.attr.pop(name, None)
    made = TransformGraph(graph_def, ["a"], ["out"], ["add_default_attributes"])
    found = {node.name: sorted(set(node.attr) - {"_output_shapes"}) for node in made.node}
    assert found == {"a": ["dtype", "shape"], "out": ["T", "transpose_a", "transpose_b"]}


@pytest.mark.parametrize(
    "text", ["round_weights(num_steps=x)", "quantize_weights(minimum_size=1, minimum_size=2)"]
)
def test_numbers_that_are_refused(text: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        TransformGraph(constant([1]), [], ["out"], [text])
