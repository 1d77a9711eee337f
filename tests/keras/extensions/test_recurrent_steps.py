"""Layers of `tf.keras` have TensorFlow 1.15's nodes, so that seeds after them are its seeds, too."""

from __future__ import annotations

import json
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]

GOLDEN = Path(__file__).parents[2] / "golden"


def _maker() -> Any:
    spec = spec_from_file_location("make_keras_node_goldens", GOLDEN / "make_keras_node_goldens.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = _maker()
EXPECTED = json.loads((GOLDEN / "keras" / "layer_nodes.json").read_text())


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


@pytest.mark.parametrize("case", MAKER.CASES)
def test_nodes_are_tensorflows(case: str) -> None:
    if version("keras").startswith("2.2"):
        pytest.skip("needs Keras 2.3")
    count, names = MAKER.result(tf, case)
    assert count == EXPECTED[case][0]
    assert names == EXPECTED[case][1] or case in MAKER.OTHER_NAMES


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN"])
def test_unrolled_looped_and_backward_layers_agree(kind: str) -> None:
    layers = tf.keras.layers
    x = np.random.RandomState(0).randn(2, 5, 3).astype("f")
    x[1, 3:] = 0
    found = []
    for how in ({}, {"unroll": True}, {"go_backwards": True}, {"go_backwards": True, "unroll": True}):
        layer = getattr(layers, kind)(4, return_sequences=True, return_state=True, **how)
        inputs = tf.keras.Input((5, 3))
        model = tf.keras.Model(inputs, layer(layers.Masking()(inputs)))
        draw = np.random.RandomState(1)
        model.set_weights([draw.randn(*w.shape).astype("f") * 0.4 for w in model.get_weights()])
        given = x[:, ::-1] if how.get("go_backwards") else x
        found.append(model.predict(given))
    for others in found[1:]:
        for one, other in zip(found[0], others):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_both_implementations_agree_and_train() -> None:
    layers, x = tf.keras.layers, np.random.RandomState(0).randn(6, 5, 3).astype("f")
    for kind, options in (("LSTM", {}), ("GRU", {}), ("GRU", {"reset_after": True})):
        results = []
        for implementation in (1, 2):
            layer = getattr(layers, kind)(4, implementation=implementation, **options)
            model = tf.keras.Sequential([layers.InputLayer((5, 3)), layer, layers.Dense(1)])
            draw = np.random.RandomState(1)
            model.set_weights([draw.randn(*w.shape).astype("f") * 0.4 for w in model.get_weights()])
            model.compile(tf.train.GradientDescentOptimizer(0.1), "mse")
            losses = [model.train_on_batch(x, x[:, 0, :1]) for _ in range(4)]
            results.append([*losses, *model.get_weights()])
        for one, other in zip(*results):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def test_the_masks_of_a_call_are_not_those_of_the_call_before() -> None:
    layers = tf.keras.layers
    layer = layers.RNN(layers.LSTMCell(4, dropout=0.5))
    first, second = (tf.placeholder(tf.float32, [2, 3, size]) for size in (3, 3))
    for inputs in (first, second):
        outputs = layer(inputs, training=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(outputs, {second: np.ones((2, 3, 3))}).shape == (2, 4)  # `first` is not fed


def test_losses_of_weights_are_computed_when_asked_for() -> None:
    layer = tf.keras.layers.Dense(2, kernel_regularizer=tf.keras.regularizers.l2(0.5))
    layer(tf.zeros([1, 3]))
    graph = tf.get_default_graph()
    before = len(graph.get_operations())
    losses = layer.losses
    assert len(losses) == 1 and len(graph.get_operations()) > before
    assert losses[0].op.name.startswith("dense/kernel/Regularizer/")
    assert layer.losses == losses == layer.get_losses_for(None)


def test_convolved_cells_make_as_many_nodes_as_those_of_tensorflow() -> None:
    """So what is made after them in a graph with a seed draws TensorFlow 1.15.5's numbers."""
    tf.keras.Sequential([tf.keras.layers.ConvLSTM2D(3, 2, input_shape=(3, 4, 4, 2))])
    assert len(tf.get_default_graph().get_operations()) == 246
