"""`tf.saved_model.save`: what a session serves and `load_v2` gives back, and TensorFlow 1.15.5's refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.saved_model.loader import read_saved_model
from flowstone.training.checkpoints.tracking import AutoTrackable

pytestmark = pytest.mark.usefixtures("graph")

VECTOR = [tf.TensorSpec([None], tf.float32)]
WORDS = [tf.TensorSpec([None], tf.string)]


class Model(tf.Module):
    """A variable, and functions with results of several forms."""

    def __init__(self, use_resource: bool = True) -> None:
        super().__init__()
        self.v = tf.Variable(3.0, use_resource=use_resource, name="scale")

    @tf.function(input_signature=VECTOR)
    def __call__(self, x: Any) -> Any:
        return x * self.v

    @tf.function
    def traced(self, x: Any, factor: int = 2) -> Any:
        return x * factor, {"a": x}

    @tf.function(input_signature=VECTOR)
    def pair(self, x: Any) -> Any:
        return x + 1.0, x

    @tf.function(input_signature=VECTOR)
    def nested(self, x: Any) -> Any:
        return {"r": {"a": x}}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def summed(self, n: Any) -> Any:
        i, s = tf.constant(0), tf.constant(0.0)
        while i < n:
            s += self.v
            i += 1
        return s


def save(value: Any, path: Path, signatures: Any = None) -> Any:
    """Saves from a session in which all is initialised; the MetaGraphDef."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        tf.saved_model.save(value, path, signatures=signatures)
    return read_saved_model(path).meta_graphs[0]


def served(path: Path, key: str, **feeds: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.load(session, ["serve"], str(path))
        signature = meta.signature_def[key]
        fetches = {name: info.name for name, info in signature.outputs.items()}
        return session.run(fetches, {signature.inputs[name].name: value for name, value in feeds.items()})


def test_functions_and_values_come_back(tmp_path: Path) -> None:
    model = Model()
    model.traced(tf.constant([1.0]))
    model.traced(tf.constant([[1.0]]), factor=5)
    save(model, tmp_path, model.__call__)
    with tf.Graph().as_default(), tf.Session() as session:
        loaded = tf.saved_model.load_v2(tmp_path)
        session.run(tf.global_variables_initializer())
        assert session.run(loaded(tf.constant([2.0]))).tolist() == [6]
        assert session.run(loaded.traced(tf.constant([2.0])))[0].tolist() == [4]
        assert session.run(loaded.traced(tf.constant([[2.0]]), factor=5))[1]["a"].tolist() == [[2]]
        assert session.run(loaded.summed(4)) == 12
        assert (loaded.v.op.name, loaded.v.trainable) == ("scale", True)
    assert served(tmp_path, "serving_default", x=[1.0, 2.0])["output_0"].tolist() == [3, 6]


def test_signatures_have_the_names_of_tensorflow(tmp_path: Path) -> None:
    model = Model()
    meta = save(model, tmp_path, model.pair)
    children = [child.local_name for child in meta.object_graph_def.nodes[0].children]
    assert children == ["v", "signatures", "__call__", "nested", "pair", "summed", "traced"]
    signature = meta.signature_def["serving_default"]
    assert [(key, info.name) for key, info in signature.inputs.items()] == [("x", "serving_default_x:0")]
    assert sorted(signature.outputs) == ["output_0", "output_1"]
    assert list(meta.signature_def["__saved_model_init_op"].outputs) == ["__saved_model_init_op"]
    assert meta.object_graph_def.nodes[1].variable.name == "scale"


def test_the_only_function_is_the_signature(tmp_path: Path) -> None:
    value = AutoTrackable()
    value.v = tf.Variable([1.0, 2.0], use_resource=True)
    value.one = tf.function(lambda x: x * value.v, input_signature=[tf.TensorSpec([2], tf.float32, "given")])
    save(value, tmp_path)
    assert served(tmp_path, "serving_default", given=[3.0, 3.0])["output_0"].tolist() == [3, 6]
    assert "serving_default" not in save(Model(), tmp_path / "several").signature_def


def test_tables_assets_and_constants(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("a\nb\n")
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "words.txt"
    other.write_text("other")
    index = tf.lookup.TextFileIndex
    value: Any = AutoTrackable()
    value.asset, value.other = tf.saved_model.Asset(str(words)), tf.saved_model.Asset(str(other))
    lines = tf.lookup.TextFileInitializer(
        value.asset.asset_path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    value.lines = tf.lookup.StaticVocabularyTable(lines, 1)
    value.pairs = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["p"], [5]), -1)

    def ids(s: Any) -> Any:
        path = value.other.asset_path
        return {"lines": value.lines.lookup(s), "pairs": value.pairs.lookup(s), "text": tf.read_file(path)}

    value.ids = tf.function(ids, input_signature=WORDS)
    save(value, tmp_path / "model", value.ids)
    words.unlink()
    other.unlink()
    moved = (tmp_path / "model").rename(tmp_path / "moved")
    found = served(moved, "serving_default", s=["b", "p"])
    assert (found["lines"].tolist(), found["pairs"].tolist(), found["text"]) == ([1, 2], [-1, 5], b"other")
    with tf.Graph().as_default(), tf.Session() as session:
        again = tf.saved_model.load_v2(moved).ids(tf.constant(["a", "p"]))
        session.run(tf.tables_initializer())
        found = session.run(again)
    assert (found["lines"].tolist(), found["pairs"].tolist(), found["text"]) == ([0, 2], [-1, 5], b"other")


def test_slots_of_optimisers_are_kept(tmp_path: Path) -> None:
    value: Any = AutoTrackable()
    value.v, value.optimizer = tf.Variable(1.0, use_resource=True), tf.train.MomentumOptimizer(0.1, 0.9)
    value.optimizer.minimize(value.v * 2.0)
    meta = save(value, tmp_path)
    (slot,) = meta.object_graph_def.nodes[2].slot_variables
    assert (slot.slot_name, slot.original_variable_node_id) == ("momentum", 1)
    tf.saved_model.load_v2(tmp_path)


def test_checkpoints_are_roots_once_they_have_their_counter(tmp_path: Path) -> None:
    value: Any = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0], use_resource=True))
    value.double = tf.function(lambda x: x * value.v, input_signature=[tf.TensorSpec([2], tf.float32)])
    assert value.save_counter is not None
    save(value, tmp_path)
    assert served(tmp_path, "serving_default", x=[1.0, 1.0])["output_0"].tolist() == [1, 2]


def test_refusals_are_those_of_tensorflow(tmp_path: Path) -> None:
    model, other = Model(), tf.Variable(5.0, use_resource=True)
    for value in (3, "x", [model.v]):
        with pytest.raises(ValueError, match="Expected a Trackable object"):
            save(value, tmp_path)
    for given in (model.traced, {"a": 3}, {"a": lambda x: x}):
        with pytest.raises(ValueError, match=r"Only `tf.functions` with an input signature or concrete"):
            save(model, tmp_path, given)
    with pytest.raises(ValueError, match="non-flat outputs"):
        save(model, tmp_path, model.traced.get_concrete_function(VECTOR[0]))
    with pytest.raises(ValueError, match="containing non-Tensor value"):
        save(model, tmp_path, model.nested)
    with pytest.raises(ValueError, match=r"symbolic Tensor .* not a simple constant"):
        save(Model(use_resource=False), tmp_path)
    value: Any = AutoTrackable()
    value.f = tf.function(lambda x: x * other, input_signature=VECTOR)
    with pytest.raises(AssertionError, match="references untracked object"):
        save(value, tmp_path)
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value scale"):
        tf.saved_model.save(model, tmp_path)
    with pytest.raises(AssertionError, match="inside a traced"):
        tf.function(lambda: tf.saved_model.save(model, tmp_path))()


def test_results_are_named_by_their_places(tmp_path: Path) -> None:
    """Of a model without variables, whose graph has no operations; as TensorFlow 1.15.5 names them."""
    module, spec = tf.Module(), tf.TensorSpec([None, 2], tf.float32, name="x")
    module.whole = tf.function(lambda x: {"a": x, "b": (x * 2.0, [x + 1.0])}, input_signature=[spec])
    module.plain = tf.function(lambda x: x * 2.0, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path / "model"), signatures={"plain": module.plain})
    loaded = tf.saved_model.load_v2(str(tmp_path / "model"))
    (whole,), (plain,) = loaded.whole.concrete_functions, loaded.plain.concrete_functions
    a, (first, (second,)) = (whole.structured_outputs[key] for key in "ab")
    assert [each.name for each in (a, first, second, plain.structured_outputs)] == ["a", "b/0", "b/1/0", None]
    assert loaded.signatures["plain"].structured_outputs["output_0"].name == "output_0"
