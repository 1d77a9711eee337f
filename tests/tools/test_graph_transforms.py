"""`TransformGraph`: the nodes that each transform leaves are those of TensorFlow 1.15; results stay equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tools.transform_programs import answers

import flowstone as tf
from flowstone.tools.graph_transforms import TransformGraph

ANSWERS = json.loads((Path(__file__).parents[1] / "golden" / "tools" / "transforms.json").read_text())
X = np.random.RandomState(0).rand(1, 4, 4, 2)


@pytest.fixture(scope="module")
def graph_def() -> Any:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [1, 4, 4, 2], name="x")
        w = tf.constant(np.arange(36).reshape(3, 3, 2, 2).astype("float32") / 10, name="w")
        c = tf.nn.conv2d(tf.identity(x, name="id"), w, [1, 1, 1, 1], "SAME", name="c")
        scaled = tf.multiply(c, tf.constant([2.0, 3.0], name="scale"), name="bnmul")
        three = tf.add(tf.constant(1.0, name="k1"), tf.constant(2.0, name="k2"), name="k3")
        one = tf.constant(1.0, name="k1dup")
        with graph.device("/cpu:0"):
            total = tf.add(scaled, tf.multiply(three, one, name="mul"), name="add")
            tf.identity(tf.check_numerics(total, "m", name="chk"), name="out")
        tf.sqrt(c, name="unused")
    return graph.as_graph_def()


def _result(graph_def: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        return session.run("out:0", {"x:0": X})


ALL = {"x", "w", "id", "c", "scale", "bnmul", "k1", "k2", "k3", "k1dup", "mul", "add", "chk", "out", "unused"}


@pytest.mark.parametrize(
    ("transforms", "gone"),
    [
        (["strip_unused_nodes"], "unused"),
        (['strip_unused_nodes(type=float, shape="1,4,4,2")'], "unused"),
        (["remove_nodes(op=Identity, op=CheckNumerics)"], "id chk"),
        (["fold_constants(ignore_errors=true)"], "k1 k2 k3 k1dup unused"),
        (["fold_batch_norms"], ""),  # the convolution is taken twice
        (["merge_duplicate_nodes"], "k1dup"),
        (["sort_by_execution_order"], ""),
        (["remove_device"], ""),
        (["remove_control_dependencies"], ""),
        (
            ["strip_unused_nodes", "remove_nodes(op=CheckNumerics)", "fold_constants", "fold_batch_norms"],
            "k1 k2 k3 k1dup unused chk c scale",
        ),
    ],
)
def test_nodes_that_are_left(graph_def: Any, transforms: list[str], gone: str) -> None:
    before = graph_def.SerializeToString(deterministic=True)
    made = TransformGraph(graph_def, ["x"], ["out"], transforms)
    assert {node.name for node in made.node} == ALL - set(gone.split())
    np.testing.assert_allclose(_result(made), _result(graph_def), rtol=1e-5)
    assert graph_def.SerializeToString(deterministic=True) == before


def test_what_inputs_become(graph_def: Any) -> None:
    text = 'strip_unused_nodes(type=float, shape="1,3")'
    for name, dims in (
        ("x", _node(graph_def, "x").attr["shape"].shape),
        ("c", tf.TensorShape([1, 3]).as_proto()),
    ):
        made = _node(TransformGraph(graph_def, [name], ["out"], [text]), name)
        assert (made.op, made.attr["shape"].shape) == ("Placeholder", dims)
    with pytest.raises(tf.errors.InvalidArgumentError, match="the output nowhere"):
        TransformGraph(graph_def, ["x"], ["nowhere"], [text])


def _node(graph_def: Any, name: str) -> Any:
    return next(node for node in graph_def.node if node.name == name)


def test_order_devices_and_attributes(graph_def: Any) -> None:
    def transformed(text: str) -> Any:
        return {node.name: node for node in TransformGraph(graph_def, ["x"], ["out"], [text]).node}

    places = {name: i for i, name in enumerate(transformed("sort_by_execution_order"))}
    for node in graph_def.node:
        assert all(places[name.partition(":")[0]] < places[node.name] for name in node.input)
    assert not any(node.device for node in transformed("remove_device").values())
    assert {node.device for node in transformed('set_device(device="/gpu:0")').values()} == {"/gpu:0"}
    kept = transformed('set_device(device="/gpu:0", if_default=true)')
    assert (kept["out"].device, kept["c"].device) == ("/device:CPU:0", "/gpu:0")
    without = transformed("remove_attribute(attribute_name=T, op_name=Mul)")
    assert "T" not in without["mul"].attr and "T" in without["c"].attr
    renamed = transformed("rename_attribute(old_attribute_name=T, new_attribute_name=S, op_name=Sqrt)")
    assert sorted(renamed["unused"].attr) == ["S"]
    assert transformed("rename_op(old_op_name=Sqrt, new_op_name=Rsqrt)")["unused"].op == "Rsqrt"
    moved = transformed("rename_node(old_node_name=c, new_node_name=conv)")
    assert "c" not in moved and list(moved["unused"].input) == ["conv"]


def test_a_folded_constant_has_the_value_that_was_computed(graph_def: Any) -> None:
    made = TransformGraph(graph_def, ["x"], ["out"], ["fold_constants"])
    (node,) = [node for node in made.node if node.name == "mul"]
    assert node.op == "Const" and tf.make_ndarray(node.attr["value"].tensor) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "Transform 'nonsense' not recognized"),
        ("remove_nodes(op=", "malformed"),
        ("remove_attribute", "one argument attribute_name, and has 0"),
        ("rename_node(old_node_name=c, new_node_name=w)", "named w is in the graph already"),
    ],
)
def test_what_is_refused(graph_def: Any, text: str, words: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        TransformGraph(graph_def, ["x"], ["out"], [text])


def test_weights_names_and_prints_are_those_of_tensorflow() -> None:
    assert answers(tf, TransformGraph) == ANSWERS


def test_quantized_weights_are_read_back() -> None:
    with tf.Graph().as_default() as graph:
        weights = np.linspace(-1, 3, 2000, dtype=np.float32)
        tf.identity(tf.constant(weights, name="w"), name="out")
    made = TransformGraph(graph.as_graph_def(), [], ["out"], ["quantize_weights"])
    assert made.ByteSize() < 2500
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(made, name="")
        np.testing.assert_allclose(session.run("out:0"), weights, atol=4 / 255)


def test_constants_of_a_loop_stay_outside_it() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [], name="x")
        step = tf.add(tf.constant(1.0), tf.constant(2.0), name="step")
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * step), [0, x])
        tf.identity(y, name="out")
    made = TransformGraph(graph.as_graph_def(), ["x"], ["out"], ["fold_constants"])
    assert [node.op for node in made.node if node.name == "step"] == ["Const"]
    assert sum(node.op == "Enter" for node in made.node) == 3
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(made, name="")
        assert session.run("out:0", {"x:0": 2.0}) == 54
