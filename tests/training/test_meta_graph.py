"""MetaGraphDefs: what TensorFlow exported is differentiated here, and ours says what TensorFlow's says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import meta_graph_programs
from flowstone.io.proto import control_flow_pb2
from flowstone.training.checkpoints import meta_graph_import

pytestmark = pytest.mark.usefixtures("graph")

GOLDEN = Path(__file__).parents[1] / "golden" / "meta_graphs"
VALUES = json.loads((GOLDEN / "values.json").read_text())


def contexts(meta: Any) -> list[Any]:
    """The messages of a MetaGraphDef's contexts, without what is inside for the graph's sake alone."""
    kinds = {
        "cond_context": control_flow_pb2.CondContextDef,
        "while_context": control_flow_pb2.WhileContextDef,
    }
    return [
        kinds[key].FromString(data)
        for key in sorted(kinds)
        for data in meta.collection_def[key].bytes_list.value
    ]


# ---- contexts, with TensorFlow


@pytest.mark.parametrize("scope", meta_graph_programs.SCOPES)
@pytest.mark.parametrize("name", meta_graph_programs.PROGRAMS)
def test_what_tensorflow_exported_is_differentiated(name: str, scope: str) -> None:
    found = meta_graph_programs.imported(tf, str(GOLDEN / f"{name}.pb"), scope)
    np.testing.assert_allclose(found, VALUES[name], rtol=1e-6)


@pytest.mark.parametrize("scope", meta_graph_programs.SCOPES)
@pytest.mark.parametrize("name", meta_graph_programs.PROGRAMS)
def test_what_is_exported_is_differentiated(name: str, scope: str, tmp_path: Path) -> None:
    """`VALUES` is what TensorFlow made of such a message."""
    path = str(tmp_path / "graph.pbtxt")
    meta_graph_programs.exported(tf, name, path)
    np.testing.assert_allclose(meta_graph_programs.imported(tf, path, scope), VALUES[name], rtol=1e-6)


@pytest.mark.parametrize("name", meta_graph_programs.PROGRAMS)
def test_contexts_are_named_as_tensorflow_names_them(name: str) -> None:
    golden = meta_graph_import.read_meta_graph_file(str(GOLDEN / f"{name}.pb"))
    ours = meta_graph_programs.exported(tf, name)
    for own, theirs in zip(contexts(ours), contexts(golden), strict=True):
        own.values_def.Clear()
        theirs.values_def.Clear()
        own.ClearField("nested_contexts")
        theirs.ClearField("nested_contexts")
        assert own == theirs


@pytest.mark.parametrize("name", meta_graph_programs.PROGRAMS)
def test_an_imported_context_is_exported_as_it_was(name: str) -> None:
    golden = str(GOLDEN / f"{name}.pb")
    tf.train.import_meta_graph(golden)
    again = tf.train.export_meta_graph()
    theirs = contexts(meta_graph_import.read_meta_graph_file(golden))
    for own, given in zip(contexts(again), theirs, strict=True):
        assert own.context_name == given.context_name
        assert dict(own.values_def.external_values) == dict(given.values_def.external_values)
        assert len(own.nested_contexts) == len(given.nested_contexts)


def test_a_loop_is_imported_twice() -> None:
    golden = str(GOLDEN / "loop_with_condition.pb")
    for scope in ("a", "b"):
        tf.train.import_meta_graph(golden, import_scope=scope)
    x1, y1, x2, y2 = tf.get_collection("ends")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([y1, tf.gradients(y1, x1)[0], y2, tf.gradients(y2, x2)[0]], {x1: 1.5, x2: 3.0})
    expected = VALUES["loop_with_condition"]
    np.testing.assert_allclose(found, [*expected[1][:2], *expected[2][:2]])


def test_a_context_of_tensors_that_are_not_there_is_refused() -> None:
    meta = meta_graph_import.read_meta_graph_file(str(GOLDEN / "conditionals.pb"))
    held = meta.collection_def["cond_context"].bytes_list.value
    message = control_flow_pb2.CondContextDef.FromString(held[0])
    message.pred_name = "absent:0"
    held[0] = message.SerializeToString()
    with pytest.raises(ValueError, match="'cond/cond_text' names 'absent:0', which is not in the graph"):
        tf.train.import_meta_graph(meta)


def test_a_loop_in_a_scope_is_exported_alone() -> None:
    with tf.name_scope("part"):
        a = tf.placeholder(tf.float32, [], name="a")
        tf.while_loop(lambda b: b < 9.0, lambda b: b * a, [a], name="loop")
    tf.cond(a > 0.0, lambda: a, lambda: -a, name="outside")
    meta = tf.train.export_meta_graph(export_scope="part")
    (loop,) = contexts(meta)
    assert (loop.context_name, loop.pivot_name) == ("loop/while_context", "loop/LoopCond:0")
    with tf.Graph().as_default() as other:
        tf.train.import_meta_graph(meta, import_scope="new")
        a, result = (other.get_tensor_by_name(name) for name in ("new/a:0", "new/loop/Exit:0"))
        with tf.Session() as session:
            assert session.run([result, tf.gradients(result, a)[0]], {a: 2.0}) == [16.0, 32.0]


# ---- files, scopes and collections


@pytest.mark.parametrize("as_text", [False, True])
def test_a_graph_in_a_file(tmp_path: Path, as_text: bool) -> None:
    tf.Variable([1.0], name="v")
    path = tmp_path / "below" / "graph.meta"
    meta = tf.train.export_meta_graph(str(path), as_text=as_text)
    assert path.read_bytes().startswith(b"meta_info_def {") is as_text
    assert meta_graph_import.read_meta_graph_file(str(path)) == meta


def test_files_that_hold_no_graph(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"File .*absent does not exist"):
        tf.train.import_meta_graph(str(tmp_path / "absent"))
    (tmp_path / "broken").write_bytes(b"\xff\xfe no graph")
    with pytest.raises(OSError, match=r"Cannot parse file .*broken"):
        tf.train.import_meta_graph(str(tmp_path / "broken"))


def test_inputs_from_outside_a_scope_must_be_given() -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.name_scope("part"):
        y = tf.multiply(x, 2.0, name="y")
    tf.add_to_collection("ends", y)
    meta = tf.train.export_meta_graph(export_scope="part")
    assert meta.collection_def["unbound_inputs"].bytes_list.value == [b"$unbound_inputs_x"]
    assert meta.collection_def["ends"].node_list.value == ["y:0"]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Graph contains unbound inputs"):
        tf.train.import_meta_graph(meta, import_scope="new")
    with tf.Graph().as_default():
        given = tf.constant(4.0)
        tf.train.import_meta_graph(meta, import_scope="new", input_map={"$unbound_inputs_x": given})
        (imported,) = tf.get_collection("ends")
        assert imported.name == "new/y:0"
        with tf.Session() as session:
            assert session.run(imported) == 8.0


def test_devices_are_cleared() -> None:
    with tf.device("/device:CPU:0"):
        tf.constant(1.0, name="c")
    assert tf.train.export_meta_graph().graph_def.node[0].device == "/device:CPU:0"
    assert tf.train.export_meta_graph(clear_devices=True).graph_def.node[0].device == ""


def test_operations_of_other_savers_are_left_out() -> None:
    tf.Variable([1.0], name="v")
    first, second = tf.train.Saver(), tf.train.Saver()
    tf.add_to_collection(tf.GraphKeys.SAVERS, first)
    tf.add_to_collection(tf.GraphKeys.SAVERS, second)
    meta = first.export_meta_graph(clear_extraneous_savers=True)
    names = [node.name for node in meta.graph_def.node]
    assert any(name.startswith("save/") for name in names)
    assert not any(name.startswith("save_1/") for name in names)
    assert len(meta.collection_def["savers"].bytes_list.value) == 1


def test_default_attributes_are_stripped() -> None:
    tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]), name="product")

    def attributes(meta: Any) -> set[str]:
        return next(set(node.attr) for node in meta.graph_def.node if node.name == "product")

    assert "transpose_a" in attributes(tf.train.export_meta_graph())
    meta = tf.train.export_meta_graph(strip_default_attrs=True)
    assert meta.meta_info_def.stripped_default_attrs
    assert not attributes(meta) & {"transpose_a", "transpose_b"}
    with tf.Graph().as_default() as other:
        tf.train.import_meta_graph(meta)
        assert other.get_operation_by_name("product").get_attr("transpose_a") is False


def test_the_kinds_of_collections_come_back() -> None:
    tensor = tf.constant(1.0, name="c")
    kinds = {"texts": ["a", b"b"], "numbers": [1, 2], "reals": [0.5], "nodes": [tensor, tensor.op]}
    for key, values in kinds.items():
        for value in values:
            tf.add_to_collection(key, value)
    tf.add_to_collection("unknown", object())
    meta = tf.train.export_meta_graph(collection_list=[*kinds, "unknown"])
    assert "unknown" not in meta.collection_def
    with tf.Graph().as_default() as other:
        tf.train.import_meta_graph(meta)
        assert tf.get_collection("texts") == [b"a", b"b"]
        assert tf.get_collection("numbers") == [1, 2]
        assert tf.get_collection("reals") == [0.5]
        op = other.get_operation_by_name("c")
        assert tf.get_collection("nodes") == [op.outputs[0], op]


def test_an_unknown_op_is_named() -> None:
    meta = tf.train.export_meta_graph()
    meta.graph_def.node.add(name="n", op="NoSuchOp")
    with pytest.raises(tf.errors.NotFoundError, match="NoSuchOp"):
        tf.train.import_meta_graph(meta)


def test_a_graph_of_a_newer_consumer_is_refused() -> None:
    meta = tf.train.export_meta_graph()
    meta.graph_def.versions.min_consumer = 100_000
    with pytest.raises(ValueError, match="min consumer version 100000 above current version"):
        tf.train.import_meta_graph(meta)


# ---- scopes


def _saved_model(folder: Path) -> str:
    """The prefix of the checkpoint of a graph with a loop, whose collections have a text."""
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=3.0)
        _, y = tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * w), [0, w])
        tf.add_to_collection("train", tf.train.GradientDescentOptimizer(0.01).minimize(y))
        tf.add_to_collection("y", y)
        tf.add_to_collection("texts", "w:0")
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(folder / "model"))


def _trained(saver: Any, path: str) -> tuple[float, float]:
    """The last imported graph's result before and after a step."""
    step, y = tf.get_collection("train")[-1], tf.get_collection("y")[-1]
    with tf.Session() as session:
        saver.restore(session, path)
        before = session.run(y)
        session.run(step)
        return before, session.run(y)


@pytest.mark.parametrize("scope", [None, "inner"])
def test_a_graph_is_imported_into_the_current_scope(scope: str | None, tmp_path: Path) -> None:
    path = _saved_model(tmp_path)
    prefix = f"outer/{scope}" if scope else "outer"
    with tf.name_scope("outer"):
        saver = tf.train.import_meta_graph(f"{path}.meta", import_scope=scope)
    assert [v.name for v in tf.global_variables()] == [f"{prefix}/w:0"]
    assert all(op.name.startswith(f"{prefix}/") for op in tf.get_default_graph().get_operations())
    assert tf.get_collection("texts") == [f"{prefix}/w:0"]
    assert _trained(saver, path) == pytest.approx((27.0, (3.0 - 0.27) ** 3))


def test_a_scope_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    path = _saved_model(tmp_path)
    for prefix in ("there", "there_1"):
        saver = tf.train.import_meta_graph(f"{path}.meta", import_scope="there")
        assert tf.global_variables()[-1].name == f"{prefix}/w:0"
        with tf.Session() as session:
            saver.restore(session, path)
            assert session.run(tf.get_collection("y")[-1]) == 27.0


def test_collections_of_a_scope_have_what_is_in_it() -> None:
    step = tf.train.get_or_create_global_step()
    with tf.name_scope("model"):
        inside = tf.constant(1.0, name="inside")
    tf.add_to_collection("tensors", inside)
    tf.add_to_collection("tensors", tf.constant(2.0, name="outside"))
    tf.add_to_collection("others", tf.constant(3.0))
    for text in ("model/inside", "text"):
        tf.add_to_collection("texts", text)
    tf.add_to_collection("numbers", 7)
    found = tf.train.export_meta_graph(export_scope="model").collection_def
    assert sorted(found) == ["numbers", "tensors", "texts"]
    assert list(found["tensors"].node_list.value) == ["inside:0"]
    assert list(found["texts"].bytes_list.value) == [b"model/inside"]
    assert step.aggregation is tf.VariableAggregation.ONLY_FIRST_REPLICA


def test_variables_keep_how_replicas_are_aggregated() -> None:
    tf.train.get_or_create_global_step()
    meta = tf.train.export_meta_graph()
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        found = tf.train.get_global_step()
        assert found.aggregation is tf.VariableAggregation.ONLY_FIRST_REPLICA
        assert found.synchronization is tf.VariableSynchronization.AUTO
