"""Programs that seed everything. Prints for each its name, its losses, and one prediction, asked for several
times in one session, as the bytes of the numbers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.native.clusters import kernels

STEPS = 33  # machine code has taken its place everywhere
X = np.random.RandomState(0).rand(32, 12).astype(np.float32)
Y = np.random.RandomState(1).randint(0, 4, 32)


def _loss(logits: Any, labels: Any = Y) -> Any:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def perceptron() -> tuple[Any, Any, Any, Any]:
    """With Adam and drop-out."""
    x = tf.placeholder(tf.float32, [None, 12])
    hidden = tf.layers.dense(x, 24, tf.nn.sigmoid)
    logits = tf.layers.dense(tf.nn.dropout(hidden, 0.8, seed=3), 4)
    loss = _loss(logits)
    return tf.train.AdamOptimizer(0.01).minimize(loss), loss, tf.nn.softmax(tf.tanh(hidden) * 2.0 + 0.1), x


def convolution() -> tuple[Any, Any, Any, Any]:
    """A small one, with batch normalisation and Momentum."""
    x = tf.placeholder(tf.float32, [None, 12])
    images = tf.image.resize_bilinear(tf.reshape(x, [-1, 4, 3, 1]), [12, 12])
    hidden = tf.layers.conv2d(images, 6, 3)
    hidden = tf.nn.elu(tf.layers.batch_normalization(hidden, training=True))
    pooled = tf.layers.max_pooling2d(hidden, 2, 2)
    logits = tf.layers.dense(tf.layers.flatten(pooled), 4)
    loss = _loss(logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    return train, loss, tf.nn.softmax(logits), x


def recurrent() -> tuple[Any, Any, Any, Any]:
    """A layer of LSTM over sequences with lengths, with clipped gradients."""
    x = tf.placeholder(tf.float32, [32, 12])
    lengths = tf.constant(np.random.RandomState(2).randint(1, 7, 32))
    cell = tf.nn.rnn_cell.LSTMCell(16, use_peepholes=True)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.reshape(x, [32, 6, 2]), lengths, dtype=tf.float32)
    logits = tf.layers.dense(outputs[:, -1], 4)
    loss = _loss(logits)
    optimizer = tf.train.RMSPropOptimizer(0.01)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
    return optimizer.apply_gradients(zip(clipped, variables)), loss, tf.exp(outputs) * 0.5, x


def loop() -> tuple[Any, Any, Any, Any]:
    """A `while_loop` with its gradient."""
    x = tf.placeholder(tf.float32, [None, 12])
    weights = tf.get_variable("w", [12, 12])

    def body(i: Any, state: Any) -> Any:
        return i + 1, tf.tanh(tf.matmul(state, weights) + 0.1 * x) * tf.sigmoid(state)

    state = tf.while_loop(lambda i, state: i < 9, body, [0, x])[1]
    logits = tf.layers.dense(state, 4)
    loss = _loss(logits)
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss), loss, tf.nn.softmax(logits), x


def embedding() -> tuple[Any, Any, Any, Any]:
    """Sparse updates of rows, some of which come several times."""
    x = tf.placeholder(tf.float32, [None, 12])
    table = tf.get_variable("table", [50, 16])
    rows = tf.nn.embedding_lookup(table, tf.cast(x * 50.0, tf.int32))
    logits = tf.layers.dense(tf.tanh(tf.reduce_sum(rows, 1)), 4)
    loss = _loss(logits)
    return tf.train.AdagradOptimizer(0.1).minimize(loss), loss, tf.nn.log_softmax(logits), x


PROGRAMS: list[Callable[[], tuple[Any, Any, Any, Any]]] = [
    perceptron,
    convolution,
    recurrent,
    loop,
    embedding,
]


def main(is_late: bool) -> None:
    """Runs all; `is_late`: the thread that compiles is slow."""
    if is_late:
        make_better = kernels.NativeKernel.make_better
        kernels.NativeKernel.make_better = lambda self: (time.sleep(0.5), make_better(self))[1]  # type: ignore[method-assign,assignment]
    for make in PROGRAMS:
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(7)
            train, loss, prediction, x = make()
            session.run(tf.global_variables_initializer())
            predictions = {session.run(prediction, {x: X}).tobytes().hex() for _ in range(4)}
            losses = [session.run([train, loss], {x: X})[1].tobytes().hex() for _ in range(STEPS)]
        print(make.__name__, len(predictions), *losses, *predictions, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] == ["late"])
