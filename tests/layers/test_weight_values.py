"""The values of a layer's variables, read and written in the default session."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf


def test_weights_of_a_layer() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        layer = tf.layers.BatchNormalization()
        layer(tf.zeros([2, 3]))
        session.run(tf.global_variables_initializer())
        gamma, beta, mean, variance = layer.get_weights()
        assert (gamma.tolist(), beta.tolist()) == ([1.0] * 3, [0.0] * 3)
        layer.set_weights([gamma * 2, [1, 2, 3], mean, variance])
        assert [each.tolist() for each in layer.get_weights()[:2]] == [[2.0] * 3, [1.0, 2.0, 3.0]]
        assert session.run(layer.beta).tolist() == [1.0, 2.0, 3.0]
        cell = tf.nn.rnn_cell.BasicLSTMCell(3)
        assert cell.get_weights() == []


def test_weights_that_do_not_fit() -> None:
    with tf.Graph().as_default():
        layer = tf.layers.Dense(3, name="dense")
        layer(tf.zeros([2, 4]))
        with pytest.raises(ValueError, match="there is none"):
            layer.get_weights()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            with pytest.raises(ValueError, match="length 1, but the layer was expecting 2 weights"):
                layer.set_weights([np.ones([4, 3])])
            with pytest.raises(ValueError, match=r"shape \(4, 3\) not compatible with .* shape \(4, 2\)"):
                layer.set_weights([np.ones([4, 2]), np.ones(3)])
