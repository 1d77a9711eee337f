"""`tf.contrib.graph_editor` against what TensorFlow 1.15 did to the same graph, and copies that run."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import numpy as np
import pytest
from tests.contrib.graph_editor.editor_programs import PROGRAMS, edges, run, small_graph

import flowstone as tf

ge = tf.contrib.graph_editor
GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "contrib_graph_editor" / "programs.json"
EXPECTED = json.loads(GOLDEN.read_text())
# What TensorFlow's own mistake in making the message turned into another error.
OTHER_ERRORS = {"AttributeError": "ValueError"}


@pytest.mark.parametrize("index", range(len(PROGRAMS)))
def test_as_tensorflow(index: int) -> None:
    found, expected = json.loads(json.dumps(run(tf, PROGRAMS[index]))), EXPECTED[index]
    if isinstance(expected["result"], str):
        expected["result"] = OTHER_ERRORS.get(expected["result"], expected["result"])
    assert found == expected


def _loop() -> Any:
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [], name="x")
        done = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [tf.constant(0), x])
        result = tf.identity(done[1], name="result")
        tf.add_to_collection("results", result)
    return graph


def test_loops_are_copied_with_collections() -> None:
    graph, other = _loop(), tf.Graph()
    view, info = ge.copy(graph, other, dst_scope="copied")
    assert [each.name for each in other.get_collection("copied/results")] == ["copied/result:0"]
    assert info.transformed("x").name == "copied/x"
    assert info.original("copied/result").name == "result"
    assert "result => copied/result" in str(info)
    with tf.Session(graph=view.graph) as session:
        assert session.run("copied/result:0", {"copied/x:0": 2.0}) == 16.0


def test_replacing_gives_the_values_of_the_other_tensor() -> None:
    graph = small_graph(tf)
    with graph.as_default():
        new = tf.constant([10.0, 20.0])
    replaced = ge.graph_replace(
        {"f": graph.get_tensor_by_name("f:0")}, {graph.get_tensor_by_name("a:0"): new}
    )
    with tf.Session(graph=graph) as session:
        np.testing.assert_array_equal(session.run(replaced["f"]), [13 * 10 - 13, 24 * 20 - 24])


def test_rewired_operations_compute_the_new_values() -> None:
    graph = small_graph(tf)
    tensor = graph.get_tensor_by_name
    with tf.Session(graph=graph) as session:
        assert ge.reroute_ts(tensor("a:0"), tensor("foo/b:0")) == 1
        np.testing.assert_array_equal(session.run("foo/in/c:0"), [2, 4])


def test_handlers_of_both_eras() -> None:
    for handler in (
        lambda info, op: ge.copy_op_handler(info, op),
        lambda info, op, new_inputs: ge.copy_op_handler(info, op, new_inputs),
    ):
        graph, seen = small_graph(tf), []
        transformer = ge.Transformer()
        transformer.transform_op_handler = handler
        transformer.transform_external_input_handler = ge.keep_t_if_possible_handler
        transformer.assign_collections_handler = lambda info, one, other, seen=seen: seen.append(other.name)
        transformer(ge.make_view_from_scope("foo", graph), graph, "q", "foo")
        assert edges(graph)["q/in/c"] == ["a:0", "q/b:0"]
        assert edges(graph)["q/e"] == ["q/in/c:0", "^q/d"]
        assert "q/d:0" in seen


def test_a_node_can_be_changed_while_it_is_copied() -> None:
    def changed(node: Any) -> Any:
        node.op = "Sub"
        return node

    graph = small_graph(tf)
    transformer = ge.Transformer()
    transformer.transform_op_handler = lambda info, op, inputs: ge.copy_op_handler(
        info, op, inputs, nodedef_fn=changed if op.type == "Mul" else None
    )
    view, _ = transformer(graph, tf.Graph(), "")
    with tf.Session(graph=view.graph) as session:
        np.testing.assert_array_equal(session.run("foo/d:0"), [3, 4])


def test_placeholders_and_expressions() -> None:
    graph = small_graph(tf)
    with graph.as_default():
        assert ge.ph(tf.int32, [2]).name == "geph:0"
        made = ge.make_placeholder_from_tensor(graph.get_tensor_by_name("foo/in/c:0"), scope="x")
        assert made.name == "x/geph__c_0:0"
        assert ge.make_placeholder_from_dtype_and_shape(tf.int32, scope="q").shape.dims is None
    assert ge.make_regex("a.*") == re.compile("a.*")
    assert ge.can_be_regex(re.compile("a"))
    assert not ge.can_be_regex(3)
    assert ge.check_cios(True) == (True, None)
    controls = ge.ControlOutputs(graph)
    d, e = graph.get_operation_by_name("foo/d"), graph.get_operation_by_name("foo/e")
    assert controls.get_all() == {d: [e]}
    assert controls.get(e) == ()
    assert ge.check_cios(control_ios=controls) == (True, controls)
    assert str(ge.SubGraphView()) == "SubGraphView: empty"
    assert "  foo/d" in str(ge.make_view(d))
    assert not ge.SubGraphView()


def test_operations_of_two_graphs_are_refused() -> None:
    one, other = small_graph(tf), small_graph(tf)
    with pytest.raises(ValueError, match="does not belong"):
        ge.make_list_of_op([*one.get_operations(), *other.get_operations()])
    with pytest.raises(ValueError, match="wrong graph"):
        ge.reroute_inputs(one, other)
    with pytest.raises(TypeError, match="Expected a tf\\.Graph"):
        ge.ControlOutputs(3)


def test_what_can_be_iterated_over_lists_operations_and_tensors() -> None:
    """A dictionary's keys and values reroute, as gpt-2-simple's gradients that save memory pass them."""
    graph, a, b = tf.Graph(), 2.0, 5.0
    with graph.as_default():
        first, second = tf.constant(a), tf.constant(b)
        result = first * 3.0
        swapped = {first: second}
        assert ge.make_list_of_t(swapped.values()) == [second]
        assert ge.make_list_of_t(tensor for tensor in (first, second)) == [first, second]
        assert ge.make_list_of_op(swapped.keys(), ignore_ts=True) == []
        assert result.op in ge.get_forward_walk_ops({first.op: None}.keys())
        with pytest.raises(TypeError):
            ge.make_list_of_op(swapped.keys())
        ge.reroute_ts(swapped.values(), swapped.keys(), can_modify={result.op: None}.keys())
    with tf.Session(graph=graph) as session:
        assert session.run(result) == 15.0
