"""new_shapes: training steps whose feeds have other sizes in nearly every step, by Adam.

What is measured is the median of the last hundred of 260 steps: no program of one shape has such steps, and
who compiles for each shape does it in every one of them.
"""

import statistics
import time

from tf1 import tf  # isort: skip
import numpy as np
from shapes import NEW_SHAPES, feeds_of_new_shapes

from measuring import report


def layer(x, outputs, name, activation=None):
    weights = tf.get_variable(f"{name}_weights", [int(x.shape[-1]), outputs])
    bias = tf.get_variable(f"{name}_bias", [outputs], initializer=tf.zeros_initializer())
    y = tf.tensordot(x, weights, 1) if x.shape.ndims > 2 else tf.matmul(x, weights)
    return activation(y + bias) if activation else y + bias


def perceptron():
    x, y = tf.placeholder(tf.float32, [None, 20]), tf.placeholder(tf.float32, [None, 1])
    hidden = layer(layer(x, 64, "first", tf.nn.relu), 64, "second", tf.tanh)
    return [x, y], tf.reduce_mean(tf.square(layer(hidden, 1, "last") - y))


def text_convolutions():
    x, y = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None])
    embedded = tf.nn.embedding_lookup(tf.get_variable("embedding", [1000, 32]), x)[:, None]
    pooled = []
    for width in (3, 4, 5):
        kernel = tf.get_variable(f"kernel{width}", [1, width, 32, 16])
        found = tf.nn.relu(tf.nn.conv2d(embedded, kernel, [1, 1, 1, 1], "SAME"))
        pooled.append(tf.reduce_max(found, [1, 2]))
    logits = layer(tf.concat(pooled, 1), 5, "last")
    return [x, y], tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def images():
    x = tf.placeholder(tf.float32, [1, None, None, 3])
    found = tf.nn.relu(tf.nn.conv2d(x, tf.get_variable("first", [3, 3, 3, 16]), [1, 1, 1, 1], "SAME"))
    found = tf.nn.max_pool(found, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    found = tf.nn.relu(tf.nn.conv2d(found, tf.get_variable("second", [3, 3, 16, 16]), [1, 1, 1, 1], "SAME"))
    return [x], tf.reduce_mean(tf.square(tf.reduce_mean(found, [1, 2])))


def separable():
    x = tf.placeholder(tf.float32, [1, None, None, 3])
    found = tf.nn.relu(tf.nn.conv2d(x, tf.get_variable("first", [3, 3, 3, 16]), [1, 2, 2, 1], "SAME"))
    for i, (inputs, outputs) in enumerate(((16, 32), (32, 32), (32, 64))):
        by_channel = tf.get_variable(f"by_channel{i}", [3, 3, inputs, 1])
        found = tf.nn.depthwise_conv2d(found, by_channel, [1, 1, 1, 1], "SAME")
        found = tf.nn.relu(
            tf.nn.conv2d(found, tf.get_variable(f"mixing{i}", [1, 1, inputs, outputs]), [1] * 4, "SAME")
        )
    return [x], tf.reduce_mean(tf.square(tf.reduce_mean(found, [1, 2])))


def attention():
    x, lengths = tf.placeholder(tf.float32, [None, None, 32]), tf.placeholder(tf.int32, [None])
    mask = tf.sequence_mask(lengths, tf.shape(x)[1], dtype=tf.float32)
    query, key, value = [layer(x, 32, name) for name in ("query", "key", "value")]
    scores = tf.matmul(query, key, transpose_b=True) / np.sqrt(32.0) - (1 - mask[:, None, :]) * 1e9
    found = layer(tf.matmul(tf.nn.softmax(scores), value) + x, 1, "last")
    return [x, lengths], tf.reduce_sum(tf.square(found) * mask[..., None]) / tf.reduce_sum(mask)


def gru():
    x, lengths = tf.placeholder(tf.float32, [None, None, 5]), tf.placeholder(tf.int32, [None])
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(8), x, lengths, dtype=tf.float32)
    return [x, lengths], tf.reduce_sum(outputs)


def step_seconds(name):
    """The median of the last hundred steps."""
    tf.reset_default_graph()
    placeholders, loss = globals()[name]()
    train = tf.train.AdamOptimizer(0.001).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        times = []
        for values in feeds_of_new_shapes(name):
            begun = time.perf_counter()
            session.run(train, dict(zip(placeholders, values)))
            times.append(time.perf_counter() - begun)
    return statistics.median(times[-100:])


for name in NEW_SHAPES:
    report(name.replace("_", " "), step_seconds(name) * 1e3, "ms")
