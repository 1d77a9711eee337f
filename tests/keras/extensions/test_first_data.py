"""Models that get their inputs by the first data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def test_a_model_whose_layers_add_the_loss_is_trained_without_targets() -> None:
    class Model(tf.keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)

        def call(self, inputs: Any) -> Any:
            outputs = self.dense(inputs["x"])
            with tf.GradientTape() as tape:
                tape.watch(inputs["x"])
                loss = tf.reduce_mean((self.dense(inputs["x"]) - inputs["y"]) ** 2)
            slope = tape.gradient(loss, inputs["x"])
            self.add_loss(loss + 0 * tf.reduce_sum(slope))
            return outputs

    model = Model()
    model.compile("sgd")
    x = np.arange(8, dtype=np.float32).reshape(4, 2) / 8
    history = model.fit({"x": x, "y": np.zeros([4, 1], np.float32)}, epochs=3, verbose=0).history["loss"]
    np.testing.assert_allclose(history[0], np.mean(x.sum(1) ** 2), rtol=1e-5)
    assert history[2] < history[1] < history[0]
