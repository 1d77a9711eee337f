"""A compiled model as an Estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _seed(keras_graph: None) -> None:
    np.random.seed(0)


def model(optimizer: Any) -> Any:
    layers = tf.keras.layers
    made = tf.keras.Sequential(
        [layers.Dense(8, "relu", input_shape=(4,)), layers.BatchNormalization(), layers.Dense(3, "softmax")]
    )
    if optimizer is not None:
        made.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return made


@pytest.mark.parametrize("of_tensorflow", [False, True])
def test_it_trains_evaluates_and_predicts(of_tensorflow: bool, tmp_path: Path) -> None:
    compiled = model(tf.train.AdamOptimizer(0.02) if of_tensorflow else "adam")
    name = compiled.input_names[0]
    x = np.random.randn(64, 4).astype("f")
    y = np.argmax(x[:, :3], 1)

    def once() -> Any:
        return tf.data.Dataset.from_tensor_slices(({name: x}, y)).batch(32)

    estimator = tf.keras.estimator.model_to_estimator(compiled, model_dir=str(tmp_path))
    before = compiled.evaluate(x, y, verbose=0)[0]
    estimator.train(lambda: once().repeat(10))
    found = estimator.evaluate(once)
    assert found["global_step"] == 20
    assert found["loss"] < before
    assert 0 <= found["acc"] <= 1
    predicted = next(estimator.predict(once))
    np.testing.assert_allclose(predicted[compiled.output_names[0]].sum(), 1, rtol=1e-5)
    names = [name for name, _ in tf.train.list_variables(str(tmp_path))]
    assert f"{compiled.layers[0].name}/kernel" in names
    assert ("beta1_power" in names) == of_tensorflow


def test_it_begins_with_the_models_weights(tmp_path: Path) -> None:
    compiled = tf.keras.Sequential([tf.keras.layers.Dense(3, "softmax", input_shape=(4,))])
    compiled.compile(tf.keras.optimizers.SGD(0.0), "sparse_categorical_crossentropy")
    path = str(tmp_path / "model.h5")
    compiled.save(path)
    x = np.random.randn(6, 4).astype("f")
    expected = compiled.predict(x)
    estimator = tf.keras.estimator.model_to_estimator(keras_model_path=path, model_dir=str(tmp_path / "run"))

    def inputs() -> Any:
        return tf.data.Dataset.from_tensor_slices((x, np.zeros(6, int))).batch(6)

    estimator.train(inputs)
    found = [next(iter(values.values())) for values in estimator.predict(inputs)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_bad_models() -> None:
    with pytest.raises(ValueError, match="has not been compiled"):
        tf.keras.estimator.model_to_estimator(model(None))
    with pytest.raises(ValueError, match="either keras_model or keras_model_path"):
        tf.keras.estimator.model_to_estimator()
