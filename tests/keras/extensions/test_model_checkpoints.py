"""When `ModelCheckpoint` saves, and what a run begins with, as in TensorFlow 1.15."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]
X = np.random.RandomState(0).rand(12, 3).astype("f")


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def fit(path: str, epochs: int = 3, **options: Any) -> list[float]:
    tf.keras.backend.clear_session()
    layer = tf.keras.layers.Dense(1, kernel_initializer="ones", input_shape=(3,))
    model = tf.keras.Sequential([layer])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    callback = tf.keras.callbacks.ModelCheckpoint(path, **options)
    history = model.fit(
        X, X[:, :1], batch_size=4, epochs=epochs, verbose=0, shuffle=False, callbacks=[callback]
    )
    losses: list[float] = history.history["loss"]
    return losses


def test_of_a_model_of_a_programs_class_only_the_weights_are_saved(tmp_path: Path) -> None:
    class Doubled(tf.keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = tf.keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.dense(x) * 2.0

    model = Doubled()
    model.compile("sgd", "mse")
    callback = tf.keras.callbacks.ModelCheckpoint(f"{tmp_path}/w.ckpt")
    model.fit(X, X[:, :1], epochs=1, verbose=0, callbacks=[callback])
    kept = tf.train.latest_checkpoint(str(tmp_path))
    assert "dense/kernel/.ATTRIBUTES/VARIABLE_VALUE" in dict(tf.train.list_variables(kept))


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["1", "2", "3"]),
        ({"period": 2}, ["2"]),
        ({"save_freq": 24}, ["2"]),
        ({"save_freq": 12, "save_best_only": True, "monitor": "loss"}, ["1", "2"]),
    ],
)
def test_when_it_saves(tmp_path: Path, options: dict[str, Any], names: list[str]) -> None:
    fit(f"{tmp_path}/m{{epoch}}.h5", **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"m{name}.h5" for name in names]


def test_names_of_batches(tmp_path: Path) -> None:
    fit(f"{tmp_path}/m{{epoch}}_{{batch}}.h5", save_freq=8)
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == ["m1_1.h5", "m2_0.h5", "m2_2.h5", "m3_1.h5"]


@pytest.mark.parametrize("name", ["w{epoch:02d}", "w{epoch:02d}.h5"])
def test_training_goes_on_from_what_was_saved(tmp_path: Path, name: str) -> None:
    options = {"load_weights_on_restart": True, "save_weights_only": True}
    losses = [fit(f"{tmp_path}/{name}", 2, **options) for _ in range(2)]
    np.testing.assert_allclose(losses, [[0.8487, 0.1073], [0.0568, 0.0491]], atol=1e-4)


def test_another_frequency_is_refused() -> None:
    with pytest.raises(ValueError, match="Unrecognized save_freq: batch"):
        tf.keras.callbacks.ModelCheckpoint("a", save_freq="batch")
