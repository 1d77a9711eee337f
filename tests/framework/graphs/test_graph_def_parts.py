"""`tf.graph_util`: parts of GraphDefs, and constants for variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def model() -> None:
    """A graph with a variable of either kind, whose values three operations take."""
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    v = tf.get_variable("v", initializer=[[1.0, 2.0], [3.0, 4.0]], use_resource=True)
    u = tf.get_variable("u", initializer=[1.0, 2.0], use_resource=False)
    y = tf.identity(tf.matmul(x, v) + u, name="y")
    tf.gather(v, [1, 0], name="z")
    with tf.control_dependencies([y]):
        tf.no_op(name="done")


def ops(graph_def: Any) -> dict[str, str]:
    return {node.name: node.op for node in graph_def.node}


def frozen(graph: Any, outputs: list[str], **arguments: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return tf.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), outputs, **arguments
        )


def test_a_frozen_graph_needs_no_variables(graph: Any) -> None:
    model()
    result = frozen(graph, ["y", "z"])
    found = ops(result)
    assert not {"VariableV2", "VarHandleOp", "ReadVariableOp", "Assign"} & set(found.values())
    assert found["v"] == found["u"] == "Const"
    assert "done" not in found
    assert result.versions == graph.as_graph_def().versions
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(result, name="")
        y, z = session.run(["y:0", "z:0"], {"x:0": [[1.0, 1.0]]})
    np.testing.assert_array_equal(y, [[5.0, 8.0]])
    np.testing.assert_array_equal(z, [[3.0, 4.0], [1.0, 2.0]])


def test_variables_in_a_loop_are_frozen(graph: Any) -> None:
    w = tf.get_variable("w", initializer=2.0, use_resource=True)
    tf.identity(w)
    x = tf.placeholder(tf.float32, [], name="x")
    tf.while_loop(lambda a: a < 9.0, lambda a: a * w, [x], name="loop")
    result = frozen(graph, ["loop/Exit"])
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(result, name="")
        assert session.run("loop/Exit:0", {"x:0": 3.0}) == 12.0


def test_chosen_variables_are_frozen(graph: Any) -> None:
    model()
    only = ops(frozen(graph, ["y"], variable_names_whitelist=["u"]))
    assert (only["u"], only["v"]) == ("Const", "VarHandleOp")
    without = ops(frozen(graph, ["y"], variable_names_blacklist=["u"]))
    assert (without["u"], without["v"]) == ("VariableV2", "Const")
    assert "ReadVariableOp" not in without.values()


def test_variables_without_a_value_and_those_that_change_are_refused(graph: Any) -> None:
    model()
    definition = graph.as_graph_def()
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError):
        tf.graph_util.convert_variables_to_constants(session, definition, ["y"])
    assign = tf.assign(tf.global_variables()[0], [[0.0, 0.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match=r"needs the variable 'v', not its value"):
        frozen(graph, [assign.op.name])


def test_extraction(graph: Any) -> None:
    model()
    definition = graph.as_graph_def()
    found = ops(tf.graph_util.extract_sub_graph(definition, ["done"]))
    assert {"x", "y", "done"} <= set(found)
    assert "z" not in found
    with pytest.raises(AssertionError, match="nope is not in graph"):
        tf.graph_util.extract_sub_graph(definition, ["nope"])
    with pytest.raises(TypeError, match="dest_nodes must be a list"):
        tf.graph_util.extract_sub_graph(definition, "y")
    with pytest.raises(TypeError, match=r"must be a graph_pb2\.GraphDef proto"):
        tf.graph_util.extract_sub_graph(3, ["y"])


def test_nodes_for_training_are_removed(graph: Any) -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    checked = tf.check_numerics(tf.identity(x, name="before"), "text", name="checked")
    waited = tf.identity(checked, name="waited")
    with tf.control_dependencies([waited]):
        tf.add(tf.identity(waited, name="kept"), 1.0, name="sum")
    definition = graph.as_graph_def()
    result = tf.graph_util.remove_training_nodes(definition)
    inputs = {node.name: list(node.input) for node in result.node}
    assert not {"before", "checked"} & set(inputs)
    assert inputs["waited"] == ["x"]
    assert "checked" in ops(tf.graph_util.remove_training_nodes(definition, ["checked"]))
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(result, name="")
        assert session.run("sum:0", {"x:0": 2.0}) == 3.0


def test_where_nodes_must_run() -> None:
    on_host = tf.graph_util.must_run_on_cpu
    assert on_host(tf.constant("a").op)
    assert on_host(tf.constant(1).op.node_def)
    assert not on_host(tf.constant(1.0).op)
    assert on_host(tf.dynamic_stitch([[0]], [[1]]).op)
    variable = tf.get_variable("u", initializer=1.0, use_resource=False)
    assert not on_host(variable.op)
    assert on_host(variable.op, pin_variables_on_cpu=True)


def test_shapes_by_names(graph: Any) -> None:
    model()
    shape = tf.graph_util.tensor_shape_from_node_def_name
    assert shape(graph, "y").as_list() == shape(graph, "y:0").as_list() == [None, 2]
    with pytest.raises(KeyError, match="does not exist"):
        shape(graph, "absent")
