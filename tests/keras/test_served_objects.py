"""Models of `tf.keras` that `tf.saved_model.load_v2` makes callable objects of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

X = np.random.RandomState(0).randn(4, 6).astype("f")
pytestmark = [with_keras, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("keras_graph")]


def _normalized() -> Any:
    layers = tf.keras.layers
    dense = layers.Dense(3, input_shape=(6,), kernel_regularizer=tf.keras.regularizers.l2(0.5))
    return tf.keras.Sequential([dense, layers.BatchNormalization(), layers.Dropout(0.5)])


def _recurrent() -> Any:
    layers = tf.keras.layers
    reshaped = layers.Reshape((3, 2), input_shape=(6,))
    cells = layers.Bidirectional(layers.GRU(2, return_sequences=True))
    return tf.keras.Sequential([reshaped, cells, layers.LSTM(3)])


def _branched() -> Any:
    given = [tf.keras.Input((6,), name=name) for name in "pq"]
    shared = tf.keras.layers.Dense(2, name="shared")
    total = tf.keras.layers.Add(name="total")([shared(x) for x in given])
    return tf.keras.Model(given, [total, tf.keras.layers.Dense(1, name="last")(total)])


def _of_a_class() -> Any:
    class Model(tf.keras.Model):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.last = tf.keras.layers.Dense(2)

        def call(self, inputs: Any) -> Any:
            return self.last(inputs)

    model = Model()
    model.predict(X)
    return model


@pytest.mark.parametrize("make", [_normalized, _recurrent, _branched, _of_a_class])
def test_a_loaded_model_is_called(make: Any, tmp_path: Path) -> None:
    model, folder = make(), str(tmp_path / "saved")
    inputs = [X, X + 1] if make is _branched else X
    expected = model.predict(inputs)
    nodes, updates = len(model.layers[-1]._inbound_nodes), len(model.updates)
    model.save(folder, save_format="tf")
    assert (len(model.layers[-1]._inbound_nodes), len(model.updates)) == (nodes, updates)
    np.testing.assert_allclose(model.predict(inputs)[0], expected[0], rtol=1e-6)
    names = [[v.op.name for v in each] for each in (model.weights, model.trainable_weights)]
    with tf.Graph().as_default(), tf.Session() as session:
        restored = tf.saved_model.load_v2(folder)
        outputs = restored(tf.nest.map_structure(tf.constant, inputs), training=False)
        served = restored.signatures["serving_default"]
        session.run(tf.global_variables_initializer())
        found = session.run(outputs)
        assert [
            [v.op.name for v in each] for each in (restored.variables, restored.trainable_variables)
        ] == names
        if make is _branched:
            by_name = session.run(served(p=tf.constant(X), q=tf.constant(X + 1)))
            np.testing.assert_allclose(by_name["last"], expected[1], rtol=1e-5, atol=1e-6)
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_training_and_the_losses_of_regularisers(tmp_path: Path) -> None:
    model, folder = _normalized(), str(tmp_path / "saved")
    kernel = model.get_weights()[0]
    model.save(folder, save_format="tf")
    with tf.Graph().as_default(), tf.Session() as session:
        restored = tf.saved_model.load_v2(folder)
        trained = restored(tf.constant(X), training=True)
        (loss,) = restored.regularization_losses
        loss, means = loss(), restored.variables[4]
        session.run(tf.global_variables_initializer())
        assert session.run(loss) == pytest.approx(0.5 * np.sum(kernel**2), rel=1e-5)
        before = session.run(means)
        assert np.count_nonzero(session.run(trained)) < len(X) * 3  # dropout
        assert np.all(session.run(means) != before)


def test_a_model_with_a_table_is_served(tmp_path: Path) -> None:
    words = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b"])
    column = tf.feature_column.indicator_column(words)
    given = {"word": tf.keras.Input((1,), name="word", dtype=tf.string)}
    features = tf.keras.layers.DenseFeatures([column])(given)
    model = tf.keras.Model(given, tf.keras.layers.Dense(1, kernel_initializer="ones")(features))
    folder = str(tmp_path / "saved")
    model.save(folder, save_format="tf")
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], folder)
        signature = meta.signature_def["serving_default"]
        (fed,), (fetched,) = signature.inputs.values(), signature.outputs.values()
        values = session.run(fetched.name, {fed.name: [["b"], ["c"]]})
    np.testing.assert_allclose(values, [[1.0], [0.0]])
