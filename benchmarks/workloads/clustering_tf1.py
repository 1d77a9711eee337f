"""k_means and mixture: all iterations in one while_loop."""

from tf1 import tf  # isort: skip
from families import clustering_cases

from measuring import report, settled_seconds


def k_means(model, x, centres):
    def distances(means):
        return tf.reduce_sum(tf.squared_difference(x[:, None, :], means[None, :, :]), 2)

    def body(i, means):
        nearest = tf.argmin(distances(means), 1)
        if model.one_hot:
            chosen = tf.one_hot(nearest, model.centres, dtype=x.dtype)
            sums, counts = tf.matmul(chosen, x, transpose_a=True), tf.reduce_sum(chosen, 0)
        else:
            sums = tf.unsorted_segment_sum(x, nearest, model.centres)
            counts = tf.unsorted_segment_sum(tf.ones_like(x[:, 0]), nearest, model.centres)
        found = sums / tf.maximum(counts, 1)[:, None]
        return i + 1, tf.where(counts > 0, found, means)

    _, means = tf.while_loop(lambda i, _: i < model.iterations, body, [tf.constant(0), centres])
    return tf.reduce_sum(tf.reduce_min(distances(means), 1)), means


def mixture(model, x, centres):
    def log_densities(means, variances, weights):
        scaled = tf.squared_difference(x[:, None, :], means) / variances + tf.log(variances)
        return tf.log(weights) - 0.5 * tf.reduce_sum(scaled, 2)

    def body(i, means, variances, weights):
        logs = log_densities(means, variances, weights)
        shares = tf.exp(logs - tf.reduce_logsumexp(logs, 1, keepdims=True))
        counts = tf.reduce_sum(shares, 0)
        means = tf.matmul(shares, x, transpose_a=True) / counts[:, None]
        squares = tf.matmul(shares, x * x, transpose_a=True) / counts[:, None]
        return i + 1, means, squares - means * means + 1e-3, counts / model.points

    first = [tf.constant(0), centres, tf.ones_like(centres), tf.ones_like(centres[:, 0]) / model.centres]
    _, *last = tf.while_loop(lambda i, *_: i < model.iterations, body, first)
    return -tf.reduce_sum(tf.reduce_logsumexp(log_densities(*last), 1)), last[0]


def measure(label, model):
    points, centres = model.data()
    x = tf.placeholder(model.dtype, points.shape)
    start = tf.placeholder(model.dtype, centres.shape)
    fetches = {"k_means": k_means, "mixture": mixture}[model.kind](model, x, start)
    with tf.Session() as session:

        def run():
            return session.run(fetches, {x: points, start: centres})

        print("losses" + label, run()[0])
        report("loop" + label, settled_seconds(run) * 1e3, "ms")


for label, model in clustering_cases():
    with tf.Graph().as_default():
        measure(label, model)
