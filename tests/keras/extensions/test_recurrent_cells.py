"""States of stacked cells, and structures of a model's outputs, as TensorFlow 1.15.5 has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("keras_graph")]


def stack(**options: Any) -> Any:
    layers, constant = tf.keras.layers, tf.keras.initializers.Constant
    weights = {"kernel_initializer": constant(0.5), "recurrent_initializer": constant(-0.25)}
    return layers.StackedRNNCells([layers.LSTMCell(2, **weights), layers.GRUCell(3, **weights)], **options)


def shapes(structure: Any) -> Any:
    return tf.nest.map_structure(lambda y: tuple(y.shape.as_list()), structure)


def test_states_have_the_structure_of_the_cells() -> None:
    cells = stack()
    assert cells.state_size == ([2, 2], 3) and cells.output_size == 3
    assert stack(reverse_state_order=True).state_size == (3, [2, 2])
    zeros = cells.get_initial_state(batch_size=5, dtype=tf.float32)
    outputs, states = cells(tf.ones([5, 4]), zeros)
    assert shapes(zeros) == shapes(states) == ([(5, 2), (5, 2)], (5, 3)) and shapes(outputs) == (5, 3)


def test_a_layer_takes_and_returns_them() -> None:
    layer = tf.keras.layers.RNN(stack(), return_state=True)
    x = tf.constant(np.linspace(-1, 1, 12).reshape(2, 3, 2).astype(np.float32))
    first = layer(x)
    assert shapes(first) == [(2, 3), [(2, 2), (2, 2)], (2, 3)]
    second = layer(x, initial_state=first[1:])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(tf.nest.flatten([first, second]))
    expected = [
        [-0.088157, 0.215098], [-0.128052, 0.421508], [-0.275739, 0.754817], [-0.088157, 0.215098],
        [-0.109036, 0.28256], [-0.151054, 0.480304], [-0.32634, 0.951102], [-0.109036, 0.28256],
    ]  # fmt: skip
    for value, of_rows in zip(found, expected):
        np.testing.assert_allclose(value, np.repeat([of_rows], value.shape[1], 0).T, atol=2e-6)


def test_states_that_stay() -> None:
    x = tf.keras.Input(batch_shape=(2, 3, 2))
    layer = tf.keras.layers.RNN(stack(), return_state=True, stateful=True)
    model = tf.keras.Model(x, layer(x))
    once, again = model.predict(np.ones((2, 3, 2))), model.predict(np.ones((2, 3, 2)))
    assert [each.shape for each in once] == [(2, 3), (2, 2), (2, 2), (2, 3)]
    assert not np.allclose(once[0], again[0])
    model.reset_states()
    np.testing.assert_allclose(model.predict(np.ones((2, 3, 2)))[0], once[0], rtol=1e-6)


@pytest.mark.parametrize("structure", ["a", ["a"], ("a",), ["a", ["b", "c"]], {"p": "a", "q": ("b",)}])
def test_outputs_have_the_structure_that_a_model_was_given(structure: Any) -> None:
    x = tf.keras.Input((3,))
    outputs = tf.nest.map_structure(lambda name: tf.keras.layers.Dense(ord(name) - 96)(x), structure)
    model = tf.keras.Model(x, outputs)
    called = model(tf.ones([2, 3]))
    expected = tf.nest.map_structure(lambda name: (2, ord(name) - 96), structure)
    assert shapes(called) == (expected[0] if structure == ["a"] else expected)
    assert len(model.outputs) == len(tf.nest.flatten(structure))


def test_inputs_in_a_structure() -> None:
    inputs = {"u": tf.keras.Input((3,)), "v": [tf.keras.Input((2,))]}
    model = tf.keras.Model(inputs, tf.keras.layers.concatenate(tf.nest.flatten(inputs)))
    assert shapes(model({"u": tf.ones([2, 3]), "v": [tf.ones([2, 2])]})) == (2, 5)


def test_a_dense_layer_computes_in_the_type_of_its_weights() -> None:
    layer = tf.keras.layers.Dense(4)
    layer.build((2, 3))
    assert layer(np.ones((2, 3))).dtype == tf.float32
    other = tf.keras.layers.Dense(4)
    assert other(np.ones((2, 3))).dtype == tf.float64
    assert other(np.ones((2, 3), np.float32)).dtype == tf.float64


def test_an_optimizer_with_another_kind_of_loss() -> None:
    class Summed(tf.keras.optimizers.SGD):
        def _compute_gradients(self, loss: Any, var_list: Any, grad_loss: Any = None) -> Any:
            return super()._compute_gradients(sum(loss), var_list, grad_loss)

    v = tf.Variable(2.0, use_resource=True)
    step = Summed(0.5).minimize([v * 2.0, v], var_list=[v])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(v) == 0.5
