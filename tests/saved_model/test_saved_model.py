"""SavedModels: written and served here and by TensorFlow, their signatures, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import saved_model_programs
from flowstone.saved_model.loader import read_saved_model

pytestmark = pytest.mark.usefixtures("graph")

GOLDEN = Path(__file__).parents[1] / "golden" / "saved_model"
EXPECTED = [240.0, 80.0, 320.0]
signatures = tf.saved_model.signature_def_utils


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Session() as session:
        yield session


def doubling(session: Any) -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.multiply(x, tf.Variable(2.0, name="v"), name="y")
    session.run(tf.global_variables_initializer())
    return x, y


# ---- both ways


@pytest.mark.parametrize("scope", [None, "there"])
def test_what_tensorflow_saved_is_served(scope: str | None) -> None:
    assert saved_model_programs.served(tf, str(GOLDEN), scope) == EXPECTED


@pytest.mark.parametrize("as_text", [False, True])
def test_what_is_saved_is_served(tmp_path: Path, as_text: bool) -> None:
    saved_model_programs.save(tf, str(tmp_path / "model"), as_text)
    assert saved_model_programs.served(tf, str(tmp_path / "model")) == EXPECTED


def test_a_model_is_served_where_it_was_moved(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "moved")
    assert saved_model_programs.served(tf, str(tmp_path / "moved")) == EXPECTED


def test_the_files_are_those_that_tensorflow_writes(tmp_path: Path) -> None:
    saved_model_programs.save(tf, str(tmp_path / "model"))

    def files(folder: Path) -> list[str]:
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))

    assert files(tmp_path / "model") == files(GOLDEN)
    ours, theirs = read_saved_model(tmp_path / "model"), read_saved_model(GOLDEN)
    assert ours.saved_model_schema_version == theirs.saved_model_schema_version
    for own, golden in zip(ours.meta_graphs, theirs.meta_graphs, strict=True):
        assert own.meta_info_def.tags == golden.meta_info_def.tags
        assert own.signature_def == golden.signature_def
        assert set(own.collection_def) == set(golden.collection_def)
        for key in ("saved_model_assets", "saved_model_main_op", "asset_filepaths"):
            assert own.collection_def[key] == golden.collection_def[key]


def test_simple_save(tmp_path: Path, session: Any) -> None:
    x, y = doubling(session)
    tf.saved_model.simple_save(session, str(tmp_path / "model"), {"in": x}, {"out": y})
    with tf.Graph().as_default() as other, tf.Session() as served:
        meta = tf.saved_model.load(served, [tf.saved_model.SERVING], str(tmp_path / "model"))
        signature = meta.signature_def["serving_default"]
        names = signature.inputs["in"].name, signature.outputs["out"].name
        np.testing.assert_array_equal(served.run(names[1], {names[0]: [1.0, 3.0]}), [2.0, 6.0])
        assert served.graph is other


def test_a_graph_without_variables(tmp_path: Path, session: Any) -> None:
    tf.constant(5.0, name="five")
    builder = tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "model"))
    builder.add_meta_graph_and_variables(session, ["serve"])
    builder.save()
    with tf.Graph().as_default(), tf.Session() as served:
        tf.saved_model.loader.load(served, ["serve"], str(tmp_path / "model"))
        assert served.run("five:0") == 5.0


def test_assets_of_one_name_are_kept_apart(tmp_path: Path, session: Any) -> None:
    assets = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "words").write_text(folder)
        assets.append(tf.constant(str(tmp_path / folder / "words")))
    builder = tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "model"))
    builder.add_meta_graph_and_variables(session, ["serve"], assets_collection=[*assets, assets[0]])
    kept = {path.name: path.read_text() for path in (tmp_path / "model" / "assets").iterdir()}
    assert kept == {"words": "a", "words_1": "b"}


def test_main_ops(session: Any) -> None:
    v = tf.Variable(1.0)
    local = tf.Variable(3.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    restore = tf.assign(v, 7.0, name="restore").op
    session.run(tf.saved_model.main_op.main_op())
    assert session.run([v, local]) == [1.0, 3.0]
    session.run(tf.saved_model.main_op.main_op_with_restore(restore))
    assert session.run(local) == 3.0


# ---- what is refused


def test_a_builder_refuses(tmp_path: Path, session: Any) -> None:
    x, y = doubling(session)
    builder = tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "model"))
    with pytest.raises(AssertionError, match="has not been saved yet"):
        builder.add_meta_graph(["serve"])
    incomplete = signatures.predict_signature_def({"x": x}, {"y": y})
    incomplete.inputs["x"].dtype = 0
    with pytest.raises(AssertionError, match="must have the dtype field set"):
        builder.add_meta_graph_and_variables(session, ["serve"], {"s": incomplete})
    incomplete.inputs["x"].ClearField("name")
    with pytest.raises(AssertionError, match="must have one of the 'encoding' fields"):
        builder.add_meta_graph_and_variables(session, ["serve"], {"s": incomplete})
    with pytest.raises(TypeError, match="main_op needs to be an Operation: 3"):
        builder.add_meta_graph_and_variables(session, ["serve"], main_op=3)
    with pytest.raises(TypeError, match=r"Asset path tensor must be of dtype string"):
        builder.add_meta_graph_and_variables(session, ["serve"], assets_collection=[tf.constant(3)])
    for key in ("__saved_model_init_op", "__saved_model_train_op"):
        with pytest.raises(KeyError, match="is reserved for"):
            builder.add_meta_graph_and_variables(session, ["serve"], {key: type(incomplete)()})
    with pytest.raises(TypeError, match="must be a constant scalar"):
        builder.add_meta_graph_and_variables(session, ["a"], assets_collection=[tf.placeholder(tf.string)])
    builder.add_meta_graph_and_variables(session, ["serve"], main_op=tf.no_op())
    with pytest.raises(AssertionError, match="has already been saved"):
        builder.add_meta_graph_and_variables(session, ["serve"])
    with pytest.raises(ValueError, match="Graph already contains one or more main ops"):
        builder.add_meta_graph(["other"], legacy_init_op=tf.no_op())
    builder.save()
    with pytest.raises(AssertionError, match="Export directory already exists, and isn't empty"):
        tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "model"))


def test_a_loader_refuses(tmp_path: Path, session: Any) -> None:
    with pytest.raises(RuntimeError, match=r"tags 'nope' could not be found in SavedModel"):
        tf.saved_model.loader.load(session, ["nope"], str(GOLDEN))
    with pytest.raises(OSError, match=r"SavedModel file does not exist at: .*absent"):
        tf.saved_model.loader.load(session, ["serve"], str(tmp_path / "absent"))
    (tmp_path / "saved_model.pbtxt").write_text("zork {")
    with pytest.raises(OSError, match=r"Cannot parse file .*saved_model\.pbtxt.*1:1"):
        tf.saved_model.loader.load(session, ["serve"], str(tmp_path))
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff")
    with pytest.raises(OSError, match=r"Cannot parse file .*saved_model\.pb"):
        tf.saved_model.loader.load(session, ["serve"], str(tmp_path))
    assert not session.graph.get_operations()


def test_a_damaged_model_is_never_more_than_an_error(tmp_path: Path) -> None:
    """Every prefix of a model's file is refused or holds fewer graphs."""
    content = (GOLDEN / "saved_model.pb").read_bytes()
    for size in range(1, len(content), 997):
        (tmp_path / "saved_model.pb").write_bytes(content[:size])
        try:
            found = len(read_saved_model(tmp_path).meta_graphs)
        except OSError as error:
            assert str(tmp_path) in str(error)
        else:
            assert found < 2


def test_a_model_that_lost_its_variables_is_not_loaded(tmp_path: Path, session: Any) -> None:
    v = tf.Variable(1.0)
    session.run(v.initializer)
    tf.saved_model.simple_save(session, str(tmp_path / "model"), {"x": tf.placeholder(tf.float32)}, {"v": v})
    shutil.rmtree(tmp_path / "model" / "variables")
    with tf.Graph().as_default(), tf.Session() as other, pytest.raises(ValueError, match="not a valid check"):
        tf.saved_model.loader.load(other, ["serve"], str(tmp_path / "model"))


def test_folders_with_models(tmp_path: Path) -> None:
    assert tf.saved_model.loader.maybe_saved_model_directory(str(GOLDEN))
    assert not tf.saved_model.loader.maybe_saved_model_directory(str(tmp_path))


# ---- signatures


def test_signatures_name_their_tensors() -> None:
    text, number = tf.constant("a", name="text"), tf.constant([1.0], name="number")
    regression = signatures.regression_signature_def(text, number)
    assert regression.method_name == "tensorflow/serving/regress"
    assert (regression.inputs["inputs"].name, regression.outputs["outputs"].name) == ("text:0", "number:0")
    assert [dim.size for dim in regression.outputs["outputs"].tensor_shape.dim] == [1]
    both = signatures.classification_signature_def(text, text, number)
    assert sorted(both.outputs) == ["classes", "scores"]
    predict = signatures.predict_signature_def({"a": number}, {"b": text})
    scores = signatures.classification_signature_def(text, None, number)
    assert all(signatures.is_valid_signature(each) for each in (regression, both, predict, scores))
    assert not signatures.is_valid_signature(signatures.build_signature_def({}, {}, "other"))
    empty = signatures.build_signature_def(method_name="tensorflow/serving/predict")
    assert not signatures.is_valid_signature(empty)


def test_signatures_refuse_other_types() -> None:
    text, number = tf.constant("a"), tf.constant(1.0)
    cases = [
        (
            lambda: signatures.predict_signature_def({}, {"a": text}),
            "inputs cannot be None or empty",
        ),
        (
            lambda: signatures.predict_signature_def({"a": text}, {}),
            "outputs cannot be None or empty",
        ),
        (lambda: signatures.regression_signature_def(None, number), "Regression examples cannot be None"),
        (lambda: signatures.regression_signature_def(text, None), "Regression predictions cannot be None"),
        (lambda: signatures.regression_signature_def(number, number), "must be a string Tensor"),
        (lambda: signatures.regression_signature_def(text, text), "Regression output must be a float Tensor"),
        (lambda: signatures.classification_signature_def(None, text, None), "examples cannot be None"),
        (lambda: signatures.classification_signature_def(text, None, None), "cannot both be None"),
        (
            lambda: signatures.classification_signature_def(text, number, None),
            "classes must be a string",
        ),
        (lambda: signatures.classification_signature_def(text, text, text), "scores must be a float Tensor"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()


def test_a_sparse_tensor_is_named_by_its_parts(graph: Any) -> None:
    sparse = tf.SparseTensor([[0, 1]], [1.0], [2, 2])
    info = tf.saved_model.utils.build_tensor_info(sparse)
    found = tf.saved_model.utils.get_tensor_from_tensor_info(info, graph)
    assert (found.indices, found.values, found.dense_shape) == (
        sparse.indices,
        sparse.values,
        sparse.dense_shape,
    )
    with pytest.raises(ValueError, match=r"Invalid TensorInfo\.encoding: None"):
        tf.saved_model.utils.get_tensor_from_tensor_info(tf.TensorInfo())
