"""Weights of examples come into a model with the first that a program gives; values are TensorFlow 1.15's."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import flowstone as tf

if find_spec("keras") is None:
    pytest.skip("needs flowstone[keras]", allow_module_level=True)

if version("keras") < "2.3":
    pytest.skip("models of Keras 2.2 have weights at once", allow_module_level=True)

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("keras_graph")]


def model() -> Any:
    tf.set_random_seed(7)
    layers = tf.keras.layers
    made = tf.keras.Sequential(
        [layers.Dense(8, activation="relu", input_shape=(6,)), layers.Dense(3, activation="softmax")]
    )
    made.compile("sgd", "categorical_crossentropy", metrics=["accuracy"], weighted_metrics=["mae"])
    return made


def data() -> tuple[Any, Any]:
    np.random.seed(0)
    return np.random.rand(32, 6).astype("f"), np.eye(3)[np.random.randint(0, 3, 32)]


def losses(history: Any) -> list[float]:
    return [*history.history["loss"], *history.history["weighted_mean_absolute_error"]]


def test_what_weights_change_is_tensorflows() -> None:
    np.random.seed(0)
    (x, y), trained = data(), model()
    np.random.seed(0)
    assert not trained._feed_sample_weights
    weighted = trained.fit(x, y, batch_size=8, verbose=0, class_weight={0: 1.0, 1: 2.0, 2: 0.5})
    assert np.allclose(losses(weighted), [1.2845876, 0.4128305], atol=1e-5)
    assert np.allclose(losses(trained.fit(x, y, batch_size=8, verbose=0)), [1.0511588, 0.4292334], atol=1e-5)
    weighted = trained.fit(x, y, epochs=2, verbose=0, sample_weight=np.arange(32.0))
    assert np.allclose(losses(weighted), [16.501341, 16.447792, 0.4325758, 0.4317248], atol=1e-4)
    found = trained.evaluate(x, y, verbose=0, sample_weight=np.arange(32.0))
    assert np.allclose(found, [16.399139, 0.53125, 0.4309399], atol=1e-4)
    assert np.allclose(trained.evaluate(x, y, verbose=0), [1.0440804, 0.53125, 0.4272287], atol=1e-4)


def test_validation_alone_may_have_weights() -> None:
    (x, y), trained = data(), model()
    history = trained.fit(x, y, verbose=0, validation_data=(x, y, np.full(32, 2.0)))
    plain = trained.evaluate(x, y, verbose=0)
    assert history.history["val_loss"] == pytest.approx([2 * plain[0]], rel=1e-5)
    assert history.history["val_acc"] == pytest.approx([plain[1]])


def test_only_outputs_with_a_mode_have_weights_at_once() -> None:
    layers = tf.keras.layers
    x = tf.keras.Input((4, 2))
    made = tf.keras.Model(x, [layers.Dense(1, name="a")(x), layers.Dense(1, name="b")(x)])
    made.compile("sgd", "mse", sample_weight_mode={"a": "temporal", "b": None})
    assert [w is not None for w in made.sample_weights] == [True, False]
    ones = np.ones((3, 4, 1))
    first = made.train_on_batch(np.zeros((3, 4, 2)), [ones, ones])
    assert first == pytest.approx([2, 1, 1])
    weighted = made.test_on_batch(
        np.zeros((3, 4, 2)), [ones, ones], sample_weight=[np.zeros((3, 4)), np.full(3, 2.0)]
    )
    assert weighted[1] == 0 and weighted[2] > 0 and len(made._feed_sample_weights) == 2


def test_weights_of_examples_are_checked_by_tensorflows_nodes() -> None:
    """As many as TensorFlow 1.15.5 makes of a weighted metric and a loss."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
    model.compile("sgd", "mse", weighted_metrics=["mse"])
    model.train_on_batch(np.ones((4, 3)), np.ones((4, 2)), sample_weight=np.ones(4))
    names = [op.name for op in tf.get_default_graph().get_operations()]
    assert sum(name.startswith("metrics_1/weighted_mean_squared_error/") for name in names) == 83
    assert sum(name.startswith("loss_1/") for name in names) == 80
    assert "keras_learning_phase" in names
