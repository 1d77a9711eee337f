"""LSTM language models: a training step, unrolled (static) and as while_loop with TensorArrays (dynamic)."""

import os

from tf1 import tf  # isort: skip
from shapes import SENTENCES, VOCABULARY, language_model

from measuring import median_seconds, report

layers, units, steps, words, next_words = language_model()


def variable(name, shape):
    return tf.get_variable(name, shape, initializer=tf.random_uniform_initializer(-0.1, 0.1))


def cell(x, c, h, weights, bias):
    i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), weights) + bias, 4, 1)
    c = c * tf.sigmoid(f) + tf.sigmoid(i) * tf.tanh(j)
    return c, tf.tanh(c) * tf.sigmoid(o)


def time_step(x, state, parameters):
    """One time step through every layer."""
    new = []
    for layer, (weights, bias) in enumerate(parameters):
        new += cell(x, state[2 * layer], state[2 * layer + 1], weights, bias)
        x = new[-1]
    return x, new


def unrolled(x, state, parameters):
    outputs = []
    for t in range(steps):
        output, state = time_step(x[:, t, :], state, parameters)
        outputs.append(output)
    return tf.reshape(tf.concat(outputs, 1), [-1, units])


def looped(x, state, parameters):
    inputs = tf.TensorArray(tf.float32, steps).unstack(tf.transpose(x, [1, 0, 2]))

    def body(t, outputs, *state):
        output, state = time_step(inputs.read(t), state, parameters)
        return [t + 1, outputs.write(t, output), *state]

    first = [tf.constant(0), tf.TensorArray(tf.float32, steps), *state]
    last = tf.while_loop(lambda t, *_: t < steps, body, first)
    return tf.reshape(tf.transpose(last[1].stack(), [1, 0, 2]), [-1, units])


def milliseconds(recurrence):
    """A training step: cross entropy, gradients clipped by their global norm, gradient descent."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.int32, [SENTENCES, steps])
        y = tf.placeholder(tf.int32, [SENTENCES, steps])
        embedded = tf.nn.embedding_lookup(variable("embedding", [VOCABULARY, units]), x)
        parameters = [
            (variable(f"weights{i}", [2 * units, 4 * units]), variable(f"bias{i}", [4 * units]))
            for i in range(layers)
        ]
        state = [tf.zeros([SENTENCES, units]) for _ in range(2 * layers)]
        outputs = recurrence(embedded, state, parameters)
        logits = tf.matmul(outputs, variable("softmax_w", [units, VOCABULARY]))
        logits += variable("softmax_b", [VOCABULARY])
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(y, [-1]), logits=logits)
        )
        variables = tf.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
        train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(zip(gradients, variables))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return median_seconds(lambda: session.run([train, loss], {x: words, y: next_words}), 3) * 1e3


for name, recurrence in {"static": unrolled, "dynamic": looped}.items():
    if os.environ.get("VARIANT", "") in ("", name):
        report(f"{name} step", milliseconds(recurrence), "ms")
