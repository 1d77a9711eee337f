"""Trains two classifiers of handwritten digits, as TensorFlow 1 programs are written.

1. The soft-max regression of "A Tour of TensorFlow": one matrix, one bias, gradient descent.
2. A small convolutional network: two convolutions with pooling, a dense layer with dropout, Adam.

Shows loss, accuracy, examples per second and the time left while it trains; ends with the accuracy of both on
the 2,000 test digits and a picture of their curves:

    soft-max regression: test accuracy 91.0 %
    convolutional network: test accuracy 98.2 %
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import flowstone as tf
from flowstone.contrib.learn.datasets.mnist import Datasets, read_data_sets

BATCH = 100
HERE = os.path.dirname(os.path.abspath(__file__))


class Classifier(NamedTuple):
    """The tensors of one model that training and testing ask for."""

    name: str
    images: Any  # float32 [n, 784]
    labels: Any  # float32 [n, 10]
    keep_probability: Any  # float32 []: of the dropout; 1 while testing
    loss: Any  # float32 []
    accuracy: Any  # float32 []
    train: Any  # the update


class Curve(NamedTuple):
    """What was measured: at each step on its batch, at `test_steps` on all test digits."""

    name: str
    loss: list[float]
    accuracy: list[float]
    test_steps: list[int]
    test_accuracy: list[float]


def variable(shape: list[int], inputs: int) -> Any:
    """Weights with the variance that keeps the size of activations (He et al. 2015)."""
    return tf.Variable(tf.truncated_normal(shape, stddev=(2.0 / inputs) ** 0.5))


def loss_and_accuracy(logits: Any, labels: Any) -> tuple[Any, Any]:
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    correct = tf.equal(tf.argmax(logits, 1), tf.argmax(labels, 1))
    return loss, tf.reduce_mean(tf.cast(correct, tf.float32))


def inputs() -> tuple[Any, Any, Any]:
    return (
        tf.placeholder(tf.float32, [None, 784], name="images"),
        tf.placeholder(tf.float32, [None, 10], name="labels"),
        tf.placeholder_with_default(1.0, [], name="keep_probability"),
    )


def softmax_regression() -> Classifier:
    images, labels, keep_probability = inputs()
    weights = tf.Variable(tf.zeros([784, 10]), name="weights")
    bias = tf.Variable(tf.zeros([10]), name="bias")
    loss, accuracy = loss_and_accuracy(tf.matmul(images, weights) + bias, labels)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    return Classifier("soft-max regression", images, labels, keep_probability, loss, accuracy, train)


def convolution_and_pooling(x: Any, depth_in: int, depth: int) -> Any:
    """[n, h, w, depth_in] -> [n, h / 2, w / 2, depth]"""
    weights = variable([5, 5, depth_in, depth], 25 * depth_in)
    bias = tf.Variable(tf.constant(0.1, shape=[depth]))
    x = tf.nn.relu(tf.nn.conv2d(x, weights, strides=[1, 1, 1, 1], padding="SAME") + bias)
    return tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


def convolutional_network() -> Classifier:
    images, labels, keep_probability = inputs()
    x = tf.reshape(images, [-1, 28, 28, 1])
    with tf.name_scope("convolution1"):
        x = convolution_and_pooling(x, 1, 16)
    with tf.name_scope("convolution2"):
        x = convolution_and_pooling(x, 16, 32)
    with tf.name_scope("dense"):
        x = tf.reshape(x, [-1, 7 * 7 * 32])
        x = tf.nn.relu(tf.matmul(x, variable([7 * 7 * 32, 128], 7 * 7 * 32)) + tf.Variable(tf.zeros([128])))
        x = tf.nn.dropout(x, keep_probability)
    with tf.name_scope("logits"):
        logits = tf.matmul(x, variable([128, 10], 128)) + tf.Variable(tf.zeros([10]))
    loss, accuracy = loss_and_accuracy(logits, labels)
    train = tf.train.AdamOptimizer(1e-3).minimize(loss)
    return Classifier("convolutional network", images, labels, keep_probability, loss, accuracy, train)


@contextmanager
def shown_progress(name: str, steps: int) -> Iterator[Any]:
    """Gives `show(step, loss, accuracy)`: a live line in a terminal, else a plain line ten times a run."""
    console = Console()
    start = time.perf_counter()

    def speed(step: int) -> float:
        return step * BATCH / (time.perf_counter() - start)

    if not console.is_terminal:

        def show_line(step: int, loss: float, accuracy: float) -> None:
            if step % max(1, steps // 10) == 0 or step == steps:
                left = (steps - step) * BATCH / speed(step)
                print(
                    f"{name}: step {step} of {steps}, loss {loss:.3f}, accuracy {accuracy:6.1%}, "
                    f"{speed(step):,.0f} examples/s, {left:.0f} s left",
                    flush=True,
                )

        yield show_line
        return

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("loss {task.fields[loss]:.3f}  accuracy {task.fields[accuracy]:6.1%}"),
        TextColumn("{task.fields[speed]:,.0f} examples/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(name, total=steps, loss=0.0, accuracy=0.0, speed=0.0)

        def show_live(step: int, loss: float, accuracy: float) -> None:
            progress.update(task, completed=step, loss=loss, accuracy=accuracy, speed=speed(step))

        yield show_live


def train(build: Any, digits: Datasets, steps: int) -> Curve:
    """Builds a model in a graph of its own, trains it for `steps` batches and tests it."""
    curve = Curve("", [], [], [], [])
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        model: Classifier = build()
        initialise = tf.global_variables_initializer()
    curve = curve._replace(name=model.name)
    test_feed = {model.images: digits.test.images, model.labels: digits.test.labels}
    with tf.Session(graph=graph) as session, shown_progress(model.name, steps) as show:
        session.run(initialise)
        smooth_loss = smooth_accuracy = 0.0
        for step in range(1, steps + 1):
            images, labels = digits.train.next_batch(BATCH)
            feed = {model.images: images, model.labels: labels, model.keep_probability: 0.5}
            _, loss, accuracy = session.run([model.train, model.loss, model.accuracy], feed)
            curve.loss.append(float(loss))
            curve.accuracy.append(float(accuracy))
            # A mean over the last twenty batches or so: one batch of 100 says little.
            weight = max(0.05, 1 / step)
            smooth_loss += weight * (float(loss) - smooth_loss)
            smooth_accuracy += weight * (float(accuracy) - smooth_accuracy)
            show(step, smooth_loss, smooth_accuracy)
            if step % max(1, steps // 10) == 0 or step == steps:
                curve.test_steps.append(step)
                curve.test_accuracy.append(float(session.run(model.accuracy, test_feed)))
    return curve


def moving_mean(values: list[float], window: int = 25) -> tuple[Any, Any]:
    """(steps, means over up to `window` values), as long as the values allow."""
    window = min(window, len(values))
    means = np.convolve(values, np.full(window, 1.0 / window), mode="valid")
    return np.arange(window, len(values) + 1), means


def draw(curves: list[Curve], path: str) -> None:
    """Writes loss and accuracy of all models as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for curve, colour in zip(curves, ("#0072b2", "#d55e00")):
        left.plot(*moving_mean(curve.loss), color=colour, label=curve.name)
        right.plot(*moving_mean(curve.accuracy), color=colour, alpha=0.4, linewidth=1)
        right.plot(
            curve.test_steps,
            curve.test_accuracy,
            "o-",
            color=colour,
            markersize=4,
            label=f"{curve.name}: {curve.test_accuracy[-1]:.1%}",
        )
    left.set(title="loss (mean of 25 batches)", xlabel="step", yscale="log")
    right.set(title="accuracy: test digits (points), batches (pale)", xlabel="step", ylim=(0.8, 1.0))
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", default=os.path.join(HERE, "data", "mnist"), help="folder of the idx files")
    parser.add_argument("--steps", type=int, default=1000, help="batches of 100 for each model (1000)")
    parser.add_argument("--picture", default="mnist.png", help="file of the curves (mnist.png)")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps must be at least 1")

    curves = []
    for build in (softmax_regression, convolutional_network):
        digits = read_data_sets(options.data, one_hot=True, validation_size=0, seed=1)
        curves.append(train(build, digits, options.steps))
    draw(curves, options.picture)
    for curve in curves:
        print(f"{curve.name}: test accuracy {100 * curve.test_accuracy[-1]:.1f} %")
    print(f"curves: {os.path.abspath(options.picture)}")


if __name__ == "__main__":
    main()
