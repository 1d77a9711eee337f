"""Models that tf.keras of TensorFlow 1.15 trained and saved, for tests/keras.

    python tests/golden/make_keras_goldens.py     # with TensorFlow 1.15

Writes tests/golden/keras: model.h5, its weights as a checkpoint, and inputs with the model's outputs; another
model as two SavedModels, `saved` and `exported`, with its outputs and its loss in one more step; and a model
of a class of its own, `own_class`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import tensorflow as tf

FOLDER = Path(__file__).parent / "keras"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    np.random.seed(1)
    tf.set_random_seed(1)
    keras = tf.keras
    image = keras.Input((6, 6, 2))
    h = keras.layers.Conv2D(3, 3, 2, activation="relu", padding="same")(image)
    h = keras.layers.BatchNormalization()(h)
    h = keras.layers.Reshape((9, 3))(h)
    h = keras.layers.Bidirectional(keras.layers.LSTM(2))(h)
    model = keras.Model(image, keras.layers.Dense(3, activation="softmax")(h))
    model.compile("rmsprop", "categorical_crossentropy", metrics=["accuracy"])
    images = np.random.rand(8, 6, 6, 2).astype("float32")
    model.fit(images, np.eye(3)[np.arange(8) % 3], verbose=0)
    model.save(str(FOLDER / "model.h5"), include_optimizer=False)
    model.save_weights(str(FOLDER / "weights"), save_format="tf")
    np.savez(FOLDER / "values.npz", inputs=images[:2], outputs=model.predict(images[:2]))


def saved_models() -> None:
    keras = tf.keras
    tf.set_random_seed(2)
    layers = [keras.layers.Dense(2, input_shape=(3,)), keras.layers.BatchNormalization()]
    model = keras.Sequential(layers)
    model.compile("adam", "mse", metrics=["acc"])
    x, y = np.arange(6.0, dtype="float32").reshape(2, 3), np.ones((2, 2))
    model.fit(x, y, epochs=3, verbose=0)
    outputs = model.predict(x)
    for name in ("saved", "exported"):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    model.save(str(FOLDER / "saved"), save_format="tf")
    keras.experimental.export_saved_model(model, str(FOLDER / "exported"), serving_only=True)
    history = model.fit(x, y, verbose=0)
    np.savez(FOLDER / "saved_values.npz", inputs=x, outputs=outputs, loss=history.history["loss"])


def own_class() -> None:
    """Writes `own_class`, a model of a class of this program, and what it computes."""

    class Doubled(tf.keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(name="doubled")
            self.inner = tf.keras.layers.Dense(3, activation="tanh")
            self.outer = tf.keras.layers.Dense(2)

        def call(self, x: tf.Tensor) -> tf.Tensor:
            return 2.0 * self.outer(self.inner(x))

    model = Doubled()
    x = np.arange(6.0, dtype="float32").reshape(2, 3)
    model.compile("sgd", "mse")
    outputs = model.predict(x)
    shutil.rmtree(FOLDER / "own_class", ignore_errors=True)
    model.save(str(FOLDER / "own_class"), save_format="tf")
    loss = model.evaluate(x, np.ones((2, 2)), verbose=0)
    np.savez(FOLDER / "own_class_values.npz", inputs=x, outputs=outputs, loss=loss)


if __name__ == "__main__":
    main()
    tf.keras.backend.clear_session()
    saved_models()
    tf.keras.backend.clear_session()
    own_class()
