"""A compiled model as an Estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]

D_KERNEL = [[0.3108323, 0.5582911], [-0.5248297, -0.5776747]]
O_KERNEL = [[-0.4487638, 0.8090962], [0.5746449, -1.010731]]
TRAINED = [[-0.4427433, 0.6714187], [0.3361624, -0.7568032]]


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
    assert ("training/beta1_power" in names) == of_tensorflow


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


def test_it_begins_with_the_weights_that_its_seed_draws(tmp_path: Path) -> None:
    """What TensorFlow 1.15.5 prints for this model, which no session has seen, and this seed."""
    layers = tf.keras.layers
    made = tf.keras.Sequential(
        [layers.Dense(2, input_shape=(2,), name="d"), layers.Dropout(0.5), layers.Dense(2, name="o")]
    )
    made.compile(tf.train.GradientDescentOptimizer(0.05), "mse")
    config = tf.estimator.RunConfig(tf_random_seed=5, model_dir=str(tmp_path))
    estimator = tf.keras.estimator.model_to_estimator(made, config=config, checkpoint_format="saver")

    def inputs() -> Any:
        return tf.data.Dataset.from_tensors(([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]])).repeat()

    start = tf.train.load_checkpoint(f"{tmp_path}/keras/keras_model.ckpt")
    estimator.train(inputs, steps=2)
    np.testing.assert_allclose(start.get_tensor("d/kernel"), D_KERNEL, atol=1e-6)
    np.testing.assert_allclose(start.get_tensor("o/kernel"), O_KERNEL, atol=1e-6)
    np.testing.assert_allclose(estimator.get_variable_value("o/kernel"), TRAINED, atol=1e-5)


def test_statistics_of_batches_begin_anew_and_weights_do_not(tmp_path: Path) -> None:
    trained = model(tf.train.AdamOptimizer(0.02))
    x, y = np.random.randn(64, 4).astype("f"), np.random.randint(0, 3, 64)
    trained.fit(x, y, verbose=0)
    estimator = tf.keras.estimator.model_to_estimator(trained, model_dir=str(tmp_path))
    estimator.train(lambda: tf.data.Dataset.from_tensors((x, y)), steps=1)
    start = tf.train.load_checkpoint(f"{tmp_path}/model.ckpt-0")
    normalized = trained.layers[1].name
    np.testing.assert_array_equal(start.get_tensor(f"{normalized}/moving_mean"), np.zeros(8))
    np.testing.assert_array_equal(start.get_tensor(f"{normalized}/beta"), trained.get_weights()[3])
    assert "training/beta1_power" in start.get_variable_to_shape_map()


def test_bad_models() -> None:
    with pytest.raises(ValueError, match="has not been compiled"):
        tf.keras.estimator.model_to_estimator(model(None))
    with pytest.raises(ValueError, match="Either `keras_model` or `keras_model_path`"):
        tf.keras.estimator.model_to_estimator()
    with pytest.raises(ValueError, match="but not both"):
        tf.keras.estimator.model_to_estimator(model("sgd"), "model.h5")
    with pytest.raises(ValueError, match="by their names"):
        tf.keras.estimator.model_to_estimator(model("sgd"), checkpoint_format="checkpoint")
    own = tf.keras.Model()
    own.compile("sgd", "mse")
    with pytest.raises(ValueError, match="functional or Sequential"):
        tf.keras.estimator.model_to_estimator(own)
