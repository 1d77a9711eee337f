"""The classifier of digits that the data-parallel examples train: 784 pixels, one hidden layer, ten classes.

Its variables live on ``/cpu:0``, wherever the computation is: the parameter device of the white paper's
section 7. Only an example in which every replica has its own says another place.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.learn.datasets.mnist import Datasets, read_data_sets

HERE = os.path.dirname(os.path.abspath(__file__))
HIDDEN = 128


def read_digits() -> Datasets:
    """8,000 digits to train with and 2,000 to test with."""
    return read_data_sets(os.path.join(HERE, "data", "mnist"), one_hot=False, validation_size=0, seed=1)


def variable(name: str, shape: list[int], seed: int, place: str = "/cpu:0") -> Any:
    """The variable of this name, made by whoever asks first."""
    with tf.device(place), tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        deviation = (2.0 / shape[0]) ** 0.5 if len(shape) == 2 else 0.0
        return tf.get_variable(
            name, shape, initializer=tf.truncated_normal_initializer(0.0, deviation, seed=seed)
        )


def logits_of(images: Any, place: str = "/cpu:0") -> Any:
    """[n, 784] -> [n, 10]"""
    weights1, bias1 = variable("weights1", [784, HIDDEN], 1, place), variable("bias1", [HIDDEN], 2, place)
    weights2, bias2 = variable("weights2", [HIDDEN, 10], 3, place), variable("bias2", [10], 4, place)
    return tf.matmul(tf.nn.relu(tf.matmul(images, weights1) + bias1), weights2) + bias2


def loss_of(images: Any, labels: Any, place: str = "/cpu:0") -> Any:
    """The mean cross entropy, float32 [], for images [n, 784] and labels int64 [n]."""
    logits = logits_of(images, place)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def batches(digits: Datasets, size: int, seed: int) -> Any:
    """Endlessly (images, labels) of `size` training digits, drawn at random."""
    random = np.random.RandomState(seed)
    while True:
        chosen = random.randint(0, digits.train.num_examples, size)
        yield digits.train.images[chosen], digits.train.labels[chosen].astype(np.int64)


def test_accuracy(session: Any, digits: Datasets, place: str = "/cpu:0") -> float:
    """The share of test digits that the session's model gets right. Adds to the session's graph; `place`:
    where the variables are, if the graph does not have them yet."""
    with session.graph.as_default(), tf.device("/cpu:0"):
        logits = logits_of(tf.constant(digits.test.images), place)
        right = tf.equal(tf.argmax(logits, 1), digits.test.labels)
        return float(session.run(tf.reduce_mean(tf.cast(right, tf.float32))))
