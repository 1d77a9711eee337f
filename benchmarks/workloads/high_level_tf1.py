"""Training steps through slim, TFLearn and an Estimator, and the same by hand: a small convolutional network.

TensorFlow 2's compat.v1 has no slim, no Estimator and nothing that TFLearn needs; it runs the steps by hand.
TFLearn is that of `setup_peers.sh`.
"""

import importlib.util
import tempfile
import time

from tf1 import tf  # isort: skip
import numpy as np

from measuring import median_seconds, report

numbers = np.random.RandomState(0)
images = numbers.rand(64, 28, 28, 1).astype(np.float32)
labels = numbers.randint(10, size=64).astype(np.int32)
STEPS = 150


def network_by_hand(x):
    """The logits of `x`."""
    for i, (size, inputs, outputs) in enumerate(((5, 1, 32), (5, 32, 64))):
        filters = tf.get_variable(f"filters{i}", [size, size, inputs, outputs])
        biases = tf.get_variable(f"biases{i}", [outputs], initializer=tf.zeros_initializer())
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, filters, [1, 1, 1, 1], "SAME"), biases))
        x = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    x = tf.reshape(x, [-1, 7 * 7 * 64])
    for i, (inputs, outputs) in enumerate(((7 * 7 * 64, 512), (512, 10))):
        weights = tf.get_variable(f"weights{i}", [inputs, outputs])
        x = tf.matmul(x, weights)
        x = tf.nn.bias_add(x, tf.get_variable(f"bias{i}", [outputs], initializer=tf.zeros_initializer()))
        x = x if i else tf.nn.relu(x)
    return x


def network_by_slim(x):
    """The same through slim."""
    slim = tf.contrib.slim
    x = slim.max_pool2d(slim.conv2d(x, 32, [5, 5]), [2, 2])
    x = slim.max_pool2d(slim.conv2d(x, 64, [5, 5]), [2, 2])
    x = slim.fully_connected(slim.flatten(x), 512)
    return slim.fully_connected(x, 10, activation_fn=None)


def train_op(logits, y):
    """The loss and the training step."""
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    step = tf.train.get_or_create_global_step()
    return loss, tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss, step)


def session_step(network) -> float:
    """The seconds of a step of a plain session."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [64, 28, 28, 1]), tf.placeholder(tf.int32, [64])
        fetches = train_op(network(x), y)
        session.run(tf.global_variables_initializer())
        return median_seconds(lambda: session.run(fetches, {x: images, y: labels}))


def input_fn():
    """The batch, again and again."""
    return tf.data.Dataset.from_tensors((images, labels)).repeat()


class StepTimes(tf.train.SessionRunHook):
    """Notes when each step begins."""

    def begin(self) -> None:
        self.times = []

    def before_run(self, run_context) -> None:
        self.times.append(time.perf_counter())

    def median(self) -> float:
        """The seconds of a step, in the middle of the run."""
        return float(np.median(np.diff(self.times[STEPS // 3 :])))


def monitored_step() -> float:
    """The seconds of a step of a MonitoredTrainingSession with its default hooks."""
    times = StepTimes()
    with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        x, y = tf.data.make_one_shot_iterator(input_fn()).get_next()
        fetches = train_op(network_by_hand(tf.reshape(x, [64, 28, 28, 1])), y)
        hooks = [times, tf.train.StopAtStepHook(num_steps=STEPS)]
        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=hooks) as session:
            while not session.should_stop():
                session.run(fetches)
    return times.median()


def estimator_step() -> float:
    """The seconds of a step of the same model by an Estimator."""

    def model_fn(features, labels, mode):
        loss, train = train_op(network_by_hand(tf.reshape(features, [64, 28, 28, 1])), labels)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    times = StepTimes()
    with tempfile.TemporaryDirectory() as folder:
        tf.estimator.Estimator(model_fn, folder).train(input_fn, hooks=[times], steps=STEPS)
    return times.median()


def tflearn_step() -> float:
    """The seconds of a step of the same model by TFLearn's `fit`, which feeds the batches from a thread."""
    import flowstone.compat.tensorflow  # noqa: F401
    from flowstone.compat import older_python

    older_python.install()  # TFLearn's own names of Pillow and NumPy
    import tflearn

    class Times(tflearn.callbacks.Callback):
        def __init__(self) -> None:
            self.times = []

        def on_batch_begin(self, training_state) -> None:
            self.times.append(time.perf_counter())

    times = Times()
    with tf.Graph().as_default():
        x = tflearn.input_data([None, 28, 28, 1])
        for filters in (32, 64):
            x = tflearn.max_pool_2d(tflearn.conv_2d(x, filters, 5, activation="relu"), 2)
        x = tflearn.fully_connected(tflearn.fully_connected(x, 512, activation="relu"), 10)
        net = tflearn.regression(
            x,
            optimizer=tflearn.Momentum(0.01, 0.9),
            loss=lambda predicted, y: tf.losses.softmax_cross_entropy(y, predicted),
            metric=None,
            batch_size=64,
        )
        model = tflearn.DNN(net, tensorboard_verbose=0)
        inputs, targets = np.tile(images, (STEPS, 1, 1, 1)), np.tile(np.eye(10)[labels], (STEPS, 1))
        model.fit(inputs, targets, n_epoch=1, batch_size=64, show_metric=False, callbacks=times)
    print()  # behind the escape codes of its progress
    return float(np.median(np.diff(times.times[STEPS // 3 :])))


report("step by hand", session_step(network_by_hand) * 1e3, "ms")
report("monitored step by hand", monitored_step() * 1e3, "ms")
if hasattr(tf, "contrib"):
    report("step through slim", session_step(network_by_slim) * 1e3, "ms")
if hasattr(tf, "estimator"):
    report("step through an Estimator", estimator_step() * 1e3, "ms")
if hasattr(tf, "contrib") and importlib.util.find_spec("tflearn"):
    report("step through TFLearn", tflearn_step() * 1e3, "ms")
