"""Estimators are exported as session bundles, which load again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib.session_bundle import constants, exporter, gc, manifest_pb2, session_bundle
from flowstone.io.any_messages import unpack

learn, export = tf.contrib.learn, tf.contrib.learn.utils.export


def inputs() -> Any:
    return {"a": tf.constant([[1.0, 2.0]])}, tf.constant([1.0])


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    del labels
    weights = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    scores = tf.matmul(features["a"], weights)
    predictions = {
        "scores": scores,
        "classes": tf.constant(["x"]),
        "probabilities": tf.concat([1 - scores, scores], 1),
    }
    step = tf.assign_add(tf.train.get_global_step(), 1)
    return learn.ModelFnOps(mode, predictions, tf.reduce_mean(scores), step)


@pytest.fixture(scope="module")
def model() -> Any:
    return learn.Estimator(model_fn).fit(input_fn=inputs, steps=3)


def signatures(bundle: bytes) -> Any:
    meta = session_bundle._read(bundle.decode())
    (packed,) = meta.collection_def[constants.SIGNATURES_KEY].any_list.value
    assert packed.type_url == "type.googleapis.com/tensorflow.serving.Signatures"
    return unpack(packed, manifest_pb2.Signatures)


@pytest.mark.parametrize(
    ("name", "kind", "tensors"),
    [
        ("classification_signature_fn", "classification_signature", {"classes": "Const"}),
        ("classification_signature_fn_with_prob", "classification_signature", {"scores": "concat:0"}),
        ("regression_signature_fn", "regression_signature", {"output": "MatMul:0"}),
        ("logistic_regression_signature_fn", "regression_signature", {"output": "strided_slice:0"}),
    ],
)
def test_signatures(model: Any, tmp_path: Path, name: str, kind: str, tensors: dict[str, str]) -> None:
    found = signatures(model.export(str(tmp_path), signature_fn=getattr(export, name)))
    signature = getattr(found.default_signature, kind)
    assert signature.input.tensor_name == "input_example_tensor:0" and not found.named_signatures
    for field, tensor in tensors.items():
        assert getattr(signature, field).tensor_name.startswith(tensor)
    assert len(signature.ListFields()) == 2


def test_a_bundle_of_an_estimator_serves_serialized_examples(model: Any, tmp_path: Path) -> None:
    bundle = model.export(str(tmp_path), default_batch_size=None)
    assert os.path.basename(bundle) == b"00000003"
    assert sorted(os.listdir(bundle)) == [
        b"checkpoint", b"export.data-00000-of-00001", b"export.index", b"export.meta",
    ]  # fmt: skip
    names = signatures(bundle).default_signature.generic_signature.map
    assert set(names) == {"inputs", "scores", "classes", "probabilities"}
    session, meta = session_bundle.load_session_bundle_from_path(bundle)
    assert constants.INIT_OP_KEY in meta.collection_def
    example = tf.train.Example()
    example.features.feature["a"].float_list.value.extend([2.0, 3.0])
    feeds = {names["inputs"].tensor_name: [example.SerializeToString()] * 2}
    assert session.run(names["scores"].tensor_name, feeds).tolist() == [[5.0], [5.0]]
    session.close()


def test_exports_of_the_newer_kind_of_input_function(model: Any, tmp_path: Path) -> None:
    def get() -> Any:
        return {"a": tf.placeholder(tf.float32, [1, 2]), "e": tf.placeholder(tf.string, [1], name="zz")}, None

    bundle = model.export(
        str(tmp_path), get, "e", False, export.regression_signature_fn, prediction_key="scores"
    )
    found = signatures(bundle).default_signature.regression_signature
    assert (found.input.tensor_name, found.output.tensor_name) == ("zz:0", "MatMul:0")


def test_the_latest_exports_are_kept(tmp_path: Path) -> None:
    model = learn.Estimator(model_fn)
    for _ in range(3):
        model.fit(input_fn=inputs, steps=1)
        learn.utils.export_estimator(model, str(tmp_path), exports_to_keep=2)
    assert sorted(os.listdir(tmp_path)) == ["00000002", "00000003"]


def test_what_cannot_be_exported(model: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Couldn't find trained model"):
        learn.Estimator(model_fn).export(str(tmp_path))
    again = learn.Estimator(model_fn, model_dir=model.model_dir)
    with pytest.raises(ValueError, match="Features information missing"):
        again.export(str(tmp_path))
    with pytest.raises(ValueError, match="examples cannot be None"):
        export.regression_signature_fn(None, {}, None)


# ---- the exporter itself


def small_graph() -> Any:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    with tf.device("/cpu:0"):
        y = tf.matmul(x, tf.Variable([[1.0], [2.0]], name="w"), name="y")
    return x, y, tf.Variable(7, name="step", dtype=tf.int64)


def test_a_graph_is_exported_with_its_files(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("v")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x, y, step = small_graph()
        name = tf.constant(str(tmp_path / "vocab.txt"))
        text = tf.Variable("", name="text", collections=[tf.GraphKeys.LOCAL_VARIABLES])
        read = tf.assign(text, tf.read_file(name)).op
        session.run(tf.global_variables_initializer())
        export = exporter.Exporter(tf.train.Saver(sharded=True))
        with pytest.raises(RuntimeError, match="init must be called first"):
            export.export(str(tmp_path / "all"), step)
        export.init(
            graph.as_graph_def(),
            init_op=read,
            clear_devices=True,
            default_graph_signature=exporter.classification_signature(x, scores_tensor=y),
            named_graph_signatures={"outputs": exporter.generic_signature({"y": y})},
            assets_collection=[name],
        )
        with pytest.raises(RuntimeError, match="init should be called only once"):
            export.init()
        bundle = export.export(str(tmp_path / "all"), step, exports_to_keep=gc.largest_export_versions(1))
        with pytest.raises(RuntimeError, match="Duplicate export dir"):
            export.export(str(tmp_path / "all"), step, session)
    assert bundle.endswith(b"00000007") and session_bundle.maybe_session_bundle_dir(bundle)
    found = signatures(bundle)
    assert found.default_signature.classification_signature.scores.tensor_name == "y:0"
    assert found.named_signatures["outputs"].generic_signature.map["y"].tensor_name == "y:0"
    (tmp_path / "vocab.txt").unlink()
    loaded, meta = session_bundle.load_session_bundle_from_path(bundle)
    assert not any(node.device for node in meta.graph_def.node)
    np.testing.assert_array_equal(loaded.run("y:0", {"x:0": [[1, 1]]}), [[3]])
    assert loaded.run("text:0") == b"v"
    loaded.close()


def test_a_bundle_of_tensorflow_loads() -> None:
    bundle = Path(__file__).parents[2] / "golden" / "contrib_learn" / "bundle"
    session, _ = session_bundle.load_session_bundle_from_path(str(bundle))
    found = signatures(str(bundle).encode())
    names = found.default_signature.regression_signature
    values = session.run(names.output.tensor_name, {names.input.tensor_name: [[1, 1], [0, 2]]})
    assert values.tolist() == [[3], [4]]
    assert found.named_signatures["outputs"].generic_signature.map["y"].tensor_name == "y:0"
    assert session.run("text:0") == b"words"
    session.close()


def test_signatures_that_say_nothing() -> None:
    x = tf.placeholder(tf.float32, name="x")
    with pytest.raises(ValueError, match="classes_tensor and scores_tensor are both None"):
        exporter.classification_signature(x)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="must be a constant"):
        small_graph()
        export = exporter.Exporter(tf.train.Saver())
        export.init(assets_collection=[tf.placeholder(tf.string, [])])


def test_a_folder_without_a_bundle(tmp_path: Path) -> None:
    assert not session_bundle.maybe_session_bundle_dir(str(tmp_path))
    with pytest.raises(RuntimeError, match="Expected meta graph file missing"):
        session_bundle.load_session_bundle_from_path(str(tmp_path))
