"""An LSTM language model, unrolled over its time steps: Zaremba, Sutskever, Vinyals, "Recurrent neural
network regularization", 2014, without its dropout."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

VOCABULARY = 10_000


class Size(NamedTuple):
    """Layers of `units` cells, unrolled over `steps` time steps of `batch` sentences."""

    layers: int
    units: int
    steps: int
    batch: int


SMALL = Size(1, 200, 20, 20)
LARGE = Size(2, 650, 50, 20)


def training_step(tf: Any, size: Size) -> tuple[list[Any], dict[Any, np.ndarray[Any, Any]]]:
    """[update, loss] of gradient descent, gradients clipped by their global norm; values for the feeds."""
    words = tf.placeholder(tf.int32, [size.batch, size.steps])
    targets = tf.placeholder(tf.int32, [size.batch, size.steps])
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.reshape(targets, [-1]), logits=logits(tf, words, size)
        )
    )
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
    train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(zip(gradients, variables))
    values = np.random.RandomState(0).randint(0, VOCABULARY, (2, size.batch, size.steps))
    return [train, loss], {words: values[0], targets: values[1]}


def logits(tf: Any, words: Any, size: Size) -> Any:
    """[batch * steps, VOCABULARY] from [batch, steps] words."""
    units = size.units
    embedded = tf.nn.embedding_lookup(_variable(tf, "embedding", [VOCABULARY, units]), words)
    parameters = [
        (
            _variable(tf, f"weights{layer}", [2 * units, 4 * units]),
            _variable(tf, f"bias{layer}", [4 * units]),
        )
        for layer in range(size.layers)
    ]
    states = [(tf.zeros([size.batch, units]), tf.zeros([size.batch, units]))] * size.layers
    outputs = []
    for t in range(size.steps):
        x = embedded[:, t, :]
        for layer, (weights, bias) in enumerate(parameters):
            states[layer] = _cell(tf, x, *states[layer], weights, bias)
            x = states[layer][1]
        outputs.append(x)
    x = tf.reshape(tf.concat(outputs, 1), [-1, units])
    softmax = _variable(tf, "softmax_weights", [units, VOCABULARY])
    return tf.matmul(x, softmax) + _variable(tf, "softmax_bias", [VOCABULARY])


def _cell(tf: Any, x: Any, c: Any, h: Any, weights: Any, bias: Any) -> tuple[Any, Any]:
    i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), weights) + bias, 4, 1)
    c = c * tf.sigmoid(f) + tf.sigmoid(i) * tf.tanh(j)
    return c, tf.tanh(c) * tf.sigmoid(o)


def _variable(tf: Any, name: str, shape: list[int]) -> Any:
    return tf.get_variable(name, shape, initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=1))
