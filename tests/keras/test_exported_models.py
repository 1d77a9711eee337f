"""Models as SavedModels: written and read, those of TensorFlow 1.15 (make_keras_goldens.py) read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

GOLDEN = Path(__file__).parents[1] / "golden" / "keras"
X = np.arange(6.0, dtype="float32").reshape(2, 3)
pytestmark = [with_keras, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("keras_graph")]


def _trained() -> Any:
    layers = [tf.keras.layers.Dense(2, input_shape=(3,)), tf.keras.layers.BatchNormalization()]
    model = tf.keras.Sequential(layers)
    model.compile("adam", "mse", metrics=["acc"])
    model.fit(X, np.ones((2, 2)), epochs=2, verbose=0)
    return model


def _step(model: Any) -> float:
    return float(model.fit(X, np.ones((2, 2)), verbose=0).history["loss"][0])


def test_a_saved_model_of_tensorflow_1_15_goes_on_training() -> None:
    expected = np.load(GOLDEN / "saved_values.npz")
    model = tf.keras.models.load_model(str(GOLDEN / "saved"))
    np.testing.assert_allclose(model.predict(expected["inputs"]), expected["outputs"], rtol=1e-5, atol=1e-6)
    assert _step(model) == pytest.approx(float(expected["loss"][0]), rel=1e-5)


def test_an_exported_model_of_tensorflow_1_15_is_read() -> None:
    expected = np.load(GOLDEN / "saved_values.npz")
    model = tf.keras.experimental.load_from_saved_model(str(GOLDEN / "exported"))
    np.testing.assert_allclose(model.predict(expected["inputs"]), expected["outputs"], rtol=1e-5, atol=1e-6)


def test_a_saved_model_goes_on_training_and_serves(tmp_path: Path) -> None:
    model, folder = _trained(), str(tmp_path / "saved")
    model.save(folder, save_format="tf")
    outputs, loss = model.predict(X), _step(model)
    tf.keras.backend.clear_session()
    again = tf.keras.models.load_model(folder)
    np.testing.assert_allclose(again.predict(X), outputs, rtol=1e-6, atol=1e-6)
    assert _step(again) == pytest.approx(loss, rel=1e-6)
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], folder)
        signature = meta.signature_def["serving_default"]
        (name,), (fed,) = list(signature.outputs), signature.inputs.values()
        assert name == "batch_normalization"
        served = session.run(signature.outputs[name].name, {fed.name: X})
    np.testing.assert_allclose(served, outputs, rtol=1e-6, atol=1e-6)


def test_a_saved_model_of_several_inputs_and_outputs(tmp_path: Path) -> None:
    layers = tf.keras.layers
    a, b = tf.keras.Input((3,), name="a"), tf.keras.Input((2,), name="b")
    outputs = [layers.Dense(2, name="one")(layers.concatenate([a, b])), layers.Dense(1, name="two")(b)]
    model = tf.keras.Model([a, b], outputs)
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    model.compile(optimizer, {"one": "mse", "two": "mae"}, loss_weights=[1.0, 0.5])
    data = [X, X[:, :2]], [X[:, :2], X[:, :1]]
    model.train_on_batch(*data)
    model.save(str(tmp_path / "saved"), save_format="tf")
    expected = model.train_on_batch(*data)
    tf.keras.backend.clear_session()
    again = tf.keras.models.load_model(str(tmp_path / "saved"))
    np.testing.assert_allclose(again.train_on_batch(*data), expected, rtol=1e-6)


def test_an_exported_model_has_graphs_of_all_modes(tmp_path: Path) -> None:
    model, folder = _trained(), str(tmp_path / "new" / "exported")
    tf.keras.experimental.export_saved_model(model, folder)
    for tag, names in {"train": ["train"], "eval": ["eval"], "serve": ["serving_default"]}.items():
        with tf.Graph().as_default(), tf.Session() as session:
            meta = tf.saved_model.loader.load(session, [tag], folder)
            assert [name for name in meta.signature_def if not name.startswith("__")] == names
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["eval"], folder)
        signature = meta.signature_def["eval"]
        feeds = {signature.inputs["dense_input"].name: X}
        feeds[signature.inputs["batch_normalization_target"].name] = np.ones((2, 2))
        loss = session.run(signature.outputs["loss"].name, feeds)
    assert loss == pytest.approx(model.evaluate(X, np.ones((2, 2)), verbose=0)[0], rel=1e-6)
    outputs = model.predict(X)
    # TensorFlow 1.15 reads the weights from there, and only by the graph of objects.
    stored = {name for name, _ in tf.train.list_variables(f"{folder}/variables/variables")}
    assert {"_CHECKPOINTABLE_OBJECT_GRAPH", "dense/kernel"} <= stored
    assert "layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE" in stored
    assert [name.name for name in (Path(folder) / "assets").iterdir()] == ["saved_model.json"]
    tf.keras.backend.clear_session()
    again = tf.keras.experimental.load_from_saved_model(folder)
    np.testing.assert_allclose(again.predict(X), outputs, rtol=1e-6)
    with pytest.raises(AssertionError, match="already exists, and isn't empty"):
        tf.keras.experimental.export_saved_model(again, folder)


def test_a_model_of_a_programs_class_is_only_served(tmp_path: Path) -> None:
    class Net(tf.keras.Model):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = tf.keras.layers.Dense(2)

        def call(self, x: Any) -> Any:
            return self.dense(x)

    net, folder = Net(), str(tmp_path / "net")
    with pytest.raises(ValueError, match="input shapes have not been set"):
        tf.keras.experimental.export_saved_model(net, folder, serving_only=True)
    outputs = net.predict(X)
    with pytest.raises(NotImplementedError, match="serving_only=True"):
        tf.keras.experimental.export_saved_model(net, folder)
    tf.keras.experimental.export_saved_model(net, folder, serving_only=True)
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], folder)
        signature = meta.signature_def["serving_default"]
        (fetched,), (fed,) = signature.outputs.values(), signature.inputs.values()
        np.testing.assert_allclose(session.run(fetched.name, {fed.name: X}), outputs, rtol=1e-6)
    with pytest.raises(ValueError, match=r"not of a tf.keras model; use"):
        tf.keras.models.load_model(folder)


def test_formats_and_existing_folders(tmp_path: Path) -> None:
    model, folder = _trained(), str(tmp_path / "saved")
    with pytest.raises(ValueError, match="Unknown format 'onnx'"):
        model.save(folder, save_format="onnx")
    tf.keras.models.save_model(model, folder, save_format="tf")
    with pytest.raises(OSError, match="overwrite is False"):
        model.save(folder, overwrite=False, save_format="tf")
    tf.keras.models.save_model(model, folder, include_optimizer=False, save_format="tf")
    assert not hasattr(tf.keras.models.load_model(folder), "total_loss")
    assert json.loads((tmp_path / "saved/assets/saved_model.json").read_text())["class_name"] == "Sequential"
    model.save(str(tmp_path / "model.h5"))
    assert tf.keras.models.load_model(str(tmp_path / "model.h5")).optimizer is not None


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="from which the model could be made"):
        tf.keras.experimental.load_from_saved_model(str(tmp_path))


def test_contrib_has_them_by_other_names() -> None:
    assert tf.contrib.saved_model.save_keras_model is tf.keras.experimental.export_saved_model
    assert tf.contrib.saved_model.load_keras_model is tf.keras.experimental.load_from_saved_model
