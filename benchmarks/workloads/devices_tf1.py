"""Two CPU devices, or two threads of steps, against one; each device with one intra-op thread."""

import os
import threading

os.environ["OMP_NUM_THREADS"] = "1"

from tf1 import tf  # isort: skip
import numpy as np

from measuring import median_seconds, report

SIZE, DEPTH = 384, 24
WORDS, UNITS, STEPS = 20, 256, 16
random = np.random.RandomState(0)


def session(devices):
    config = tf.ConfigProto(
        device_count={"CPU": devices}, intra_op_parallelism_threads=1, allow_soft_placement=True
    )
    return tf.Session(config=config)


def matrix(*shape):
    return tf.constant(random.randn(*shape).astype("f") / shape[0] ** 0.5)


def chain(x):
    for _ in range(DEPTH):
        x = tf.tanh(tf.matmul(x, matrix(SIZE, SIZE)))
    return x


def halves(devices):
    """Milliseconds of a step of two independent halves."""
    with tf.Graph().as_default(), session(devices) as s:
        x = tf.placeholder(tf.float32, [SIZE, SIZE])
        results = []
        for i in range(2):
            with tf.device(f"/cpu:{i % devices}"):
                results.append(tf.reduce_sum(chain(x)))
        total = results[0] + results[1]
        feed = {x: random.randn(SIZE, SIZE).astype("f")}
        return median_seconds(lambda: s.run(total, feed)) * 1e3


def concurrent_steps(threads):
    """Milliseconds a step with so many client threads."""
    with tf.Graph().as_default(), session(1) as s:
        x = tf.placeholder(tf.float32, [SIZE, SIZE])
        run = s.make_callable(tf.reduce_sum(chain(x)), [x])
        value = random.randn(SIZE, SIZE).astype("f")

        def several():
            for _ in range(8):
                run(value)

        def together():
            workers = [threading.Thread(target=several) for _ in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()

        return median_seconds(together) / 8 / threads * 1e3


def lstm(devices):
    """Milliseconds of a step of a two-layer LSTM, a layer a device (Figure 7)."""
    with tf.Graph().as_default(), session(devices) as s:
        x = tf.placeholder(tf.float32, [STEPS, 128, UNITS])
        outputs = [x[t] for t in range(STEPS)]
        for layer in range(2):
            with tf.device(f"/cpu:{layer % devices}"):
                weights, h, c = matrix(2 * UNITS, 4 * UNITS), tf.zeros([128, UNITS]), tf.zeros([128, UNITS])
                for t in range(STEPS):
                    gates = tf.matmul(tf.concat([outputs[t], h], 1), weights)
                    i, j, f, o = tf.split(gates, 4, 1)
                    c = c * tf.sigmoid(f) + tf.sigmoid(i) * tf.tanh(j)
                    outputs[t] = h = tf.tanh(c) * tf.sigmoid(o)
        total = tf.reduce_sum(tf.add_n(outputs))
        feed = {x: random.randn(STEPS, 128, UNITS).astype("f")}
        return median_seconds(lambda: s.run(total, feed)) * 1e3


one, two = halves(1), halves(2)
report("two halves, one device", one, "ms")
report("two halves, two devices", two, "ms")
report("speed-up of two halves", one / two, "x")
one, two = concurrent_steps(1), concurrent_steps(2)
report("concurrent steps, one thread", one, "ms")
report("concurrent steps, two threads", two, "ms")
report("speed-up of concurrent steps", one / two, "x")
one, two = lstm(1), lstm(2)
report("two-layer LSTM, one device", one, "ms")
report("two-layer LSTM, two devices", two, "ms")
report("speed-up of the LSTM", one / two, "x")
