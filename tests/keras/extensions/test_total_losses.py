"""Losses that are not reduced train by each example's loss, as in TensorFlow 1.15, which gave the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]

X = np.random.RandomState(0).randn(6, 2).astype("f")
Y = np.random.RandomState(1).randn(6, 1).astype("f")
WEIGHTS = np.linspace(0.5, 2, 6).astype("f")


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None:
    if not hasattr(tf.keras.losses, "MeanSquaredError"):
        pytest.skip("losses are functions in Keras 2.2")


def _model(reduction: str, regularizer: Any = None) -> Any:
    x = tf.keras.Input((2,))
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones", activity_regularizer=regularizer, name="a")
    model = tf.keras.Model(x, dense(x))
    model.compile("sgd", tf.keras.losses.MeanSquaredError(reduction=reduction), metrics=["mae"])
    return model


def _losses(model: Any, weights: Any = 1.0) -> Any:
    return np.ravel((X @ model.get_weights()[0] + model.get_weights()[1] - Y) ** 2) * weights


def test_weights_are_those_of_a_sum() -> None:
    trained = {}
    for reduction in ("none", "sum"):
        tf.keras.backend.clear_session()
        model = _model(reduction)
        for _ in range(3):
            loss, _ = model.train_on_batch(X, Y, sample_weight=WEIGHTS)
        trained[reduction] = [np.sum(loss), *model.get_weights()]
    for a, b in zip(trained["none"], trained["sum"], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_steps_give_the_loss_of_each_example() -> None:
    model = _model("none")
    expected = _losses(model, WEIGHTS)
    for step in (model.test_on_batch, model.train_on_batch):
        loss, error = step(X, Y, sample_weight=WEIGHTS)
        np.testing.assert_allclose(loss, expected, rtol=1e-5)
        assert np.shape(error) == ()


def test_epochs_give_means_over_batches() -> None:
    model = _model("none")
    expected = _losses(model).reshape(3, 2).mean(0)
    batches = [(X[i : i + 2], Y[i : i + 2]) for i in (0, 2, 4)]
    for found in (model.evaluate(X, Y, batch_size=2, verbose=0), model.evaluate_generator(iter(batches), 3)):
        np.testing.assert_allclose(found[0], expected, rtol=1e-5)
    history = model.fit(X, Y, batch_size=2, validation_data=(X, Y), verbose=0).history
    np.testing.assert_allclose(np.mean(history["val_loss"][0]), _losses(model).mean(), rtol=1e-5)
    assert history["loss"][0].shape == (2,)
    with pytest.raises(ValueError, match=r"\(4,\) \(2,\)"):
        model.fit(X, Y, batch_size=4, verbose=0)


def test_losses_of_layers_are_added_to_each() -> None:
    model = _model("none", tf.keras.regularizers.l1(0.1))
    added = 0.1 * np.abs(X @ model.get_weights()[0]).mean()
    np.testing.assert_allclose(model.test_on_batch(X, Y)[0], _losses(model) + added, rtol=1e-5)


def test_outputs_are_weighted() -> None:
    x = tf.keras.Input((2,))
    outputs = [tf.keras.layers.Dense(1, kernel_initializer="ones", name=name)(x) for name in "ab"]
    model = tf.keras.Model(x, outputs)
    loss = tf.keras.losses.MeanSquaredError
    model.compile("sgd", [loss(reduction="none"), loss()], loss_weights=[0.5, 2.0])
    squares = np.ravel((X.sum(1, keepdims=True) - Y) ** 2)
    total, *of_outputs = model.test_on_batch(X, [Y, Y])
    np.testing.assert_allclose(total, 0.5 * squares + 2 * squares.mean(), rtol=1e-5)
    np.testing.assert_allclose(of_outputs, [squares.mean()] * 2, rtol=1e-5)


def test_without_a_loss() -> None:
    x = tf.keras.Input((2,))
    model = tf.keras.Model(x, tf.keras.layers.Dense(1)(x))
    with pytest.raises(ValueError, match="no loss to optimize"):
        model.compile("sgd")
