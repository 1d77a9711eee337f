"""A while_loop of a scalar addition and a small matrix-vector product, its gradient, and a chain of conds."""

from tf1 import tf  # isort: skip
from shapes import CONDITIONALS, ITERATIONS, LOOP_UNITS, loop_values

from measuring import median_seconds, report

matrix, vector = loop_values()
weights = tf.constant(matrix)
x = tf.placeholder(tf.float32, [LOOP_UNITS, 1])
_, count, result = tf.while_loop(
    lambda i, a, v: i < ITERATIONS,
    lambda i, a, v: (i + 1, a + 1.0, tf.matmul(weights, v)),
    [tf.constant(0), tf.constant(0.0), x],
)
total = count + tf.reduce_sum(result)
gradient = tf.gradients(total, x)[0]
start = tf.placeholder(tf.float32, [])
z = start
for _ in range(CONDITIONALS):
    z = tf.cond(z > 0.0, lambda z=z: z - 1.0, lambda z=z: z + 1.0)
session = tf.Session()


def us(fetch, feed, parts):
    return median_seconds(lambda: session.run(fetch, feed)) / parts * 1e6


report("while_loop iteration", us(total, {x: vector}, ITERATIONS), "us")
report("with its gradient", us([total, gradient], {x: vector}, ITERATIONS), "us")
report("cond", us(z, {start: 1.0}, CONDITIONALS), "us")
