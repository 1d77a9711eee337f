"""A graph of about 36,000 ops (convolution and batch-normalisation blocks, gradients, momentum)."""

from tf1 import tf  # isort: skip
from shapes import BLOCKS, block_input

from measuring import median_seconds, once, report

image = block_input()
x = tf.placeholder(tf.float32, image.shape)


def block(h):
    weights = tf.Variable(tf.fill([3, 3, 8, 8], 0.01))
    scale, offset = tf.Variable(tf.fill([8], 1.0)), tf.Variable(tf.fill([8], 0.0))
    h = tf.nn.conv2d(h, weights, [1, 1, 1, 1], "SAME")
    mean, variance = tf.nn.moments(h, [0, 1, 2])
    return tf.nn.relu(tf.nn.batch_normalization(h, mean, variance, offset, scale, 1e-3))


def build():
    h = x
    for _ in range(BLOCKS):
        h = h + block(h)
    loss = tf.reduce_mean(h)
    return loss, tf.train.MomentumOptimizer(1e-3, 0.9).minimize(loss)


built = []
report("build", once(lambda: built.append(build())), "s")
report("ops", len(tf.get_default_graph().get_operations()), "ops")
((loss, train),) = built
session = tf.Session()
session.run(tf.global_variables_initializer())
report("first run", once(lambda: session.run([train, loss], {x: image})), "s")
report("step", median_seconds(lambda: session.run([train, loss], {x: image}), warm_up=1) * 1e3, "ms")
