"""scalar_ops: a chain of operations on two numbers (or short arrays), and the same with gradients."""

from tf1 import tf  # isort: skip
from families import scalar_cases

from measuring import report, settled_seconds


def chain(model, a, b):
    for _ in range(model.operations // 4):
        if model.kind == "curved":
            a, b = tf.tanh(a + b), tf.sigmoid(b - a)
        else:
            a, b = a * 0.9 + b, b - a * 0.1
    return a, b


def measure(label, model):
    fed = model.start()
    feeds = [tf.placeholder(model.dtype, model.shape) for _ in fed]
    a, b = chain(model, *feeds)
    total = tf.reduce_sum(a + b)
    gradients = tf.gradients(total, feeds)
    with tf.Session() as session:

        def run():
            return session.run([a, b], dict(zip(feeds, fed)))

        def with_gradients():
            return session.run([total, gradients], dict(zip(feeds, fed)))

        print("losses" + label, with_gradients()[0])
        report("run" + label, settled_seconds(run) * 1e3, "ms")
        report("with gradients" + label, settled_seconds(with_gradients) * 1e3, "ms")


for label, model in scalar_cases():
    with tf.Graph().as_default():
        measure(label, model)
