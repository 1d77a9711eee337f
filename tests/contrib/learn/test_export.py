"""Exports of tf.contrib.learn: signatures, folders and strategies; signatures are those of TensorFlow
1.15.5."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.contrib.learn import learn_models

import flowstone as tf
from flowstone.contrib.learn.utils import gc, input_fn_utils
from flowstone.contrib.learn.utils import saved_model_export_utils as utils


def columns() -> list[Any]:
    layers = tf.contrib.layers
    return [layers.real_valued_column("a", dimension=2), layers.sparse_column_with_hash_bucket("s", 10)]


@pytest.fixture
def trained() -> Any:
    get = learn_models.input_fn(tf, learn_models.NUMBERS)
    return tf.contrib.learn.LinearRegressor(columns()).fit(input_fn=get, steps=1)


def serving() -> Any:
    spec = tf.contrib.layers.create_feature_spec_for_parsing(columns())
    return tf.contrib.learn.build_parsing_serving_input_fn(spec)


def signatures(folder: Any) -> dict[str, Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        loaded = tf.saved_model.loader.load(session, ["serve"], folder)
        assert set(loaded.collection_def["input_feature_keys"].bytes_list.value) == {b"a", b"s"}
        return {
            name: (
                each.method_name.rpartition("/")[2],
                {key: value.name for key, value in each.inputs.items()},
                {key: value.name for key, value in each.outputs.items()},
            )
            for name, each in loaded.signature_def.items()
        }


def test_a_regressor_is_served_from_examples(trained: Any, tmp_path: Path) -> None:
    folder = trained.export_savedmodel(str(tmp_path), serving())
    expected = (
        "regress", {"inputs": "input_example_tensor:0"},
        {"outputs": "linear/regression_head/predictions/Identity:0"},
    )  # fmt: skip
    assert signatures(folder) == {"serving_default": expected, "default_input_alternative:None": expected}
    assert os.listdir(tmp_path) == [os.path.basename(folder.decode())]


def test_placeholders_of_features_make_a_prediction(trained: Any, tmp_path: Path) -> None:
    def input_fn() -> Any:
        found = {"a": tf.placeholder(tf.float32, [None, 2], name="a"), "s": tf.sparse_placeholder(tf.string)}
        return tf.contrib.learn.InputFnOps(found, None, found)

    kind, inputs, outputs = signatures(trained.export_savedmodel(str(tmp_path), input_fn))["serving_default"]
    assert (kind, inputs["a"], sorted(outputs)) == ("predict", "a:0", ["scores"])


def test_a_classifier_is_served_from_examples(tmp_path: Path) -> None:
    get = learn_models.input_fn(tf, learn_models.TWO)
    model = tf.contrib.learn.LinearClassifier(columns()).fit(input_fn=get, steps=1)
    kind, _, outputs = signatures(model.export_savedmodel(str(tmp_path), serving()))["serving_default"]
    head = "linear/binary_logistic_head"
    assert (kind, outputs) == (
        "classify",
        {
            "scores": f"{head}/predictions/probabilities:0",
            "classes": f"{head}/_classification_output_alternatives/classes_tensor:0",
        },
    )


def test_exports_that_cannot_be_are_refused(trained: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="serving_input_fn must be defined"):
        trained.export_savedmodel(str(tmp_path), None)
    with pytest.raises(ValueError, match="Requested default_output_alternative: other"):
        trained.export_savedmodel(str(tmp_path), serving(), default_output_alternative_key="other")
    with pytest.raises(tf.contrib.learn.NotFittedError):
        tf.contrib.learn.LinearRegressor(columns()).export_savedmodel(str(tmp_path), serving())
    specs = (type(trained).export_savedmodel.__defaults__[4][0]._replace(transforms=("quantize",)),)
    with pytest.raises(tf.errors.UnimplementedError, match="graph transforms"):
        trained.export_savedmodel(str(tmp_path), serving(), graph_rewrite_specs=specs)


def test_features_themselves_as_inputs() -> None:
    with tf.Graph().as_default():
        features = {"a": tf.ones([3, 2], name="a"), "b": tf.ones([4], tf.int64, name="b")}
        found = input_fn_utils.build_default_serving_input_fn(features)()
        assert found.default_inputs == found.features and found.labels is None
        assert found.features["a"].shape.as_list() == [None, 2] and found.features["b"].dtype == tf.int64


def test_a_strategy_keeps_the_latest_exports(trained: Any, tmp_path: Path) -> None:
    for old in ("1000000001", "1000000002", "other"):
        (tmp_path / old).mkdir()
    strategy = tf.contrib.learn.make_export_strategy(serving(), exports_to_keep=2)
    assert isinstance(strategy, tf.contrib.learn.ExportStrategy) and strategy.name == "Servo"
    made = strategy.export(trained, str(tmp_path)).decode()
    assert {each.name for each in tmp_path.iterdir()} == {"1000000002", os.path.basename(made), "other"}
    assert utils.get_most_recent_export(str(tmp_path)).path == made
    assert utils.get_temp_export_dir(b"/a/123") == b"/a/temp-123"
    utils.garbage_collect_exports(str(tmp_path), None)
    assert utils.get_timestamped_export_dir(str(tmp_path)) > made.encode()


def test_only_better_models_are_exported(trained: Any, tmp_path: Path) -> None:
    strategy = utils.make_best_model_export_strategy(serving())
    assert strategy.export(trained, str(tmp_path), None, {"loss": 1.0})
    assert strategy.export(trained, str(tmp_path), None, {"loss": 2.0}) == ""
    selector = utils.BestModelSelector(lambda best, now: now["a"] > best["a"])
    assert selector.update("x", {"a": 1}) == ("x", {"a": 1})
    assert selector.update("y", {"a": 0}) == (None, None)
    with tf.summary.FileWriter(str(tmp_path / "eval")) as writer:
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=0.5)]), 1)
    logged = utils.BestModelSelector(str(tmp_path / "eval" / "events*"))
    assert logged.update("z", {"loss": 0.7}) == (None, None) and logged.update("z", {"loss": 0.3})[0] == "z"
    with pytest.raises(ValueError, match="must have the metric loss"):
        utils._has_smaller_loss({}, {"loss": 1.0})


def test_an_export_is_worked_on(trained: Any, tmp_path: Path) -> None:
    base = utils.make_parsing_export_strategy(columns())

    def moved(export: Any, folder: Any) -> Any:
        target = os.path.join(folder, "done")
        tf.gfile.Rename(export.decode(), target)
        return target

    strategy = utils.extend_export_strategy(base, moved, "post")
    assert strategy.name == "post"
    assert "serving_default" in signatures(strategy.export(trained, str(tmp_path)))
    with pytest.raises(ValueError, match="below the folder"):
        utils.extend_export_strategy(base, lambda export, folder: "/elsewhere").export(trained, str(tmp_path))


def test_signatures_of_alternatives() -> None:
    with tf.Graph().as_default():
        examples, values = tf.placeholder(tf.string, [None]), tf.ones([2])
        model_fn_ops = tf.contrib.learn.ModelFnOps("infer", values)
        outputs, default = utils.get_output_alternatives(model_fn_ops)
        assert outputs == {"default_output_alternative": (0, {"output": model_fn_ops.predictions})}
        inputs, features = utils.get_input_alternatives(({"f": values}, None, {"examples": examples}))
        assert features == {"f": values}
        found = utils.build_all_signature_defs(inputs, outputs, default)
        assert sorted(found) == ["default_input_alternative:default_output_alternative", "serving_default"]
        with pytest.raises(ValueError, match="input_fn must provide default_inputs"):
            utils.get_input_alternatives(({}, None, None))
        with pytest.raises(ValueError, match="input_tensors must be provided"):
            utils.build_standardized_signature_def({}, {"a": values}, 0)
        several = {"x": (0, {"v": values}), "y": (0, {"v": values})}
        with pytest.raises(ValueError, match="Please specify a default_output_alternative"):
            utils.get_output_alternatives(
                tf.contrib.learn.ModelFnOps("infer", values, output_alternatives=several)
            )


def test_which_exports_stay(tmp_path: Path) -> None:
    paths = [gc.Path(f"/{n}", n) for n in (1, 3, 4, 6, 8)]

    def versions(chosen: Any) -> list[int]:
        return [path.export_version for path in chosen(paths)]

    assert versions(gc.largest_export_versions(2)) == [6, 8]
    assert versions(gc.negation(gc.largest_export_versions(2))) == [1, 3, 4]
    assert versions(gc.mod_export_version(3)) == [3, 6]
    assert versions(gc.one_of_every_n_export_versions(4)) == [4, 8]
    assert versions(gc.union(gc.mod_export_version(3), gc.largest_export_versions(1))) == [3, 6, 8]
    for name in ("5", "7", "x"):
        (tmp_path / name).mkdir()

    def parsed(path: Any) -> Any:
        name = os.path.basename(path.path)
        return path._replace(export_version=int(name)) if name.isdigit() else None

    assert [each.export_version for each in gc.get_paths(str(tmp_path), parsed)] == [5, 7]
