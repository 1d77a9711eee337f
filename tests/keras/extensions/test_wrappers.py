"""`tf.keras.layers.Wrapper`: its `build` makes the weights of the layer within, in its own scope."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def test_building_a_wrapper_builds_the_layer_within() -> None:
    wrapper = gated(tf.keras.layers.Dense(2), name="outer")
    wrapper(tf.ones([1, 3]))
    assert wrapper.layer.built
    assert [v.name for v in wrapper.weights] == [
        "outer/gate:0",
        "outer/kernel:0",
        "outer/bias:0",
        "outer/calls:0",
    ]
    wrapper.trainable = False
    assert not wrapper.trainable_weights and len(wrapper.non_trainable_weights) == 4


def gated(layer: Any, **options: Any) -> Any:
    class Gated(tf.keras.layers.Wrapper):  # type: ignore[misc]
        def build(self, input_shape: Any) -> None:
            super().build(input_shape)
            self.gate = self.add_weight("gate", [], initializer="ones")
            self.calls = self.add_weight("calls", [], initializer="zeros", trainable=False)
            self.add_loss(tf.reduce_sum(self.layer.kernel) + self.gate)

        def call(self, x: Any) -> Any:
            self.add_update(self.calls.assign_add(1.0))
            return self.layer(x) * self.gate

    return Gated(layer, **options)


def test_a_wrappers_own_weights_losses_and_updates_count() -> None:
    """Besides those of the layer within, each once."""
    inputs = tf.keras.Input((3,))
    wrapper = gated(tf.keras.layers.Dense(2, kernel_initializer="ones", kernel_regularizer="l2"))
    model = tf.keras.Model(inputs, wrapper(inputs))
    assert len(model.losses) == len(wrapper.losses) == 2 and len(model.updates) == 1
    model.compile("sgd", "mse")
    history = model.fit(np.zeros([4, 3]), np.zeros([4, 2]), batch_size=2, shuffle=False, verbose=0)
    gate, kernel, _, calls = model.get_weights()
    assert calls == 2 and gate == np.float32(0.98) and (kernel < 1).all()
    first = 6 * 0.01 + 6 + 1
    assert first - 0.1 < history.history["loss"][0] < first


def test_a_layer_that_is_built_keeps_its_weights() -> None:
    dense = tf.keras.layers.Dense(2)
    dense.build((None, 3))
    kernel = dense.kernel
    wrapper = tf.keras.layers.TimeDistributed(dense)
    wrapper(tf.ones([1, 4, 3]))
    assert wrapper.layer.kernel is kernel and wrapper.built
