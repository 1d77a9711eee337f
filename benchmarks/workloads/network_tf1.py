"""softmax_regression and perceptron: one training step."""

import itertools

from tf1 import tf  # isort: skip
from shapes import network

from measuring import median_seconds, report

settings, images, labels = network()
sizes = settings["sizes"]
x = tf.placeholder(tf.float32, [None, sizes[0]])
y = tf.placeholder(tf.int64, [None])
hidden = x
for i, (rows, columns) in enumerate(itertools.pairwise(sizes)):
    if i:
        hidden = tf.nn.relu(hidden)
    weights = tf.Variable(tf.truncated_normal([rows, columns], stddev=0.05))
    hidden = tf.matmul(hidden, weights) + tf.Variable(tf.zeros([columns]))
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=hidden))
optimizer = tf.train.AdamOptimizer if settings["adam"] else tf.train.GradientDescentOptimizer
train = optimizer(settings["rate"]).minimize(loss)
session = tf.Session()
session.run(tf.global_variables_initializer())
report("step", median_seconds(lambda: session.run([train, loss], {x: images, y: labels}), 20) * 1e3, "ms")
