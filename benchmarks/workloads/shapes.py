"""Shapes and data that the implementations of a workload share."""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

NETWORKS = {
    "softmax_regression": {"sizes": [784, 10], "batch": 100, "adam": False, "rate": 0.5},
    "perceptron": {"sizes": [784, 256, 128, 10], "batch": 128, "adam": True, "rate": 1e-3},
}
BLOCKS = 266  # graph_building: about 36,000 TensorFlow ops

_random = np.random.RandomState(0)


def network():
    """The settings of the network that WORKLOAD names, with a batch of images and labels."""
    settings = NETWORKS[os.environ["WORKLOAD"]]
    images = _random.rand(settings["batch"], settings["sizes"][0]).astype(np.float32)
    return settings, images, _random.randint(0, 10, settings["batch"])


def block_input():
    """The image batch of graph_building."""
    return _random.rand(1, 8, 8, 8).astype(np.float32)


# ---- control flow

ITERATIONS, LOOP_UNITS, CONDITIONALS = 1000, 32, 100


def loop_values():
    """The loop's matrix and first vector."""
    matrix = _random.rand(LOOP_UNITS, LOOP_UNITS).astype(np.float32) / LOOP_UNITS
    return matrix, _random.rand(LOOP_UNITS, 1).astype(np.float32)


# ---- queues

EXAMPLE, QUEUE_BATCH, QUEUE_PART = 784, 128, 100


def examples(count):
    """Images and labels."""
    return _random.rand(count, EXAMPLE).astype(np.float32), _random.randint(0, 10, count).astype(np.int32)


# ---- LSTM language models: layers, units, time steps

LANGUAGE_MODELS = {"language_model_small": (1, 200, 20), "language_model_large": (2, 650, 50)}
SENTENCES, VOCABULARY = 20, 10_000


def language_model():
    """Layers, units and time steps of the model that WORKLOAD names, with a batch of words and next words."""
    layers, units, steps = LANGUAGE_MODELS[os.environ["WORKLOAD"]]
    words = _random.randint(0, VOCABULARY, (2, SENTENCES, steps))
    return layers, units, steps, words[0], words[1]


# ---- bucketed: lengths of sentences

BUCKETS = list(range(6, 45, 2))


def bucketed_words(length):
    """Words and next words of a batch of sentences of this length."""
    words = np.random.RandomState(length).randint(0, VOCABULARY, (2, SENTENCES, length))
    return words[0], words[1]


# ---- sparse: sets in the rows of a matrix, and the elements of a sparse one

SETS, SET_SIZE = 100, 1_000
SPARSE_ROWS, SPARSE_COLUMNS, SPARSE_ELEMENTS = 10_000, 1_000, 100_000


def sets_of_numbers(seed):
    """Rows of int64 below a million."""
    return np.random.RandomState(seed).randint(0, 1_000_000, (SETS, SET_SIZE)).astype(np.int64)


def sets_of_words(seed):
    """Rows of strings, of 50,000 different ones."""
    words = np.random.RandomState(seed).randint(0, 50_000, (SETS, SET_SIZE))
    return words.astype("S").astype(object)


def sparse_parts(seed):
    """Indices in order, values and sizes."""
    random = np.random.RandomState(seed)
    places = np.sort(random.choice(SPARSE_ROWS * SPARSE_COLUMNS, SPARSE_ELEMENTS, replace=False))
    indices = np.stack((places // SPARSE_COLUMNS, places % SPARSE_COLUMNS), 1).astype(np.int64)
    values = random.randn(SPARSE_ELEMENTS).astype(np.float32)
    return indices, values, np.array([SPARSE_ROWS, SPARSE_COLUMNS], np.int64)


# ---- new_shapes: feeds of other sizes in nearly every step

NEW_SHAPES = ("perceptron", "text_convolutions", "images", "separable", "attention", "gru")


def feeds_of_new_shapes(name, steps=260):
    """Yields the feeds of each step: random sizes, batches of one among them."""
    random = np.random.RandomState(1)

    def numbers(*shape):
        return random.rand(*shape).astype(np.float32)

    def whole(most, *shape):
        return random.randint(0, most, shape).astype(np.int32)

    for _ in range(steps):
        if name == "perceptron":
            batch = random.randint(1, 200)
            yield numbers(batch, 20), numbers(batch, 1)
        elif name == "text_convolutions":
            batch, length = random.randint(1, 30), random.randint(6, 50)
            yield whole(1000, batch, length), whole(5, batch)
        elif name in ("images", "separable"):
            yield (numbers(1, random.randint(20, 60), random.randint(20, 60), 3),)
        else:
            features = 32 if name == "attention" else 5
            batch, length = random.randint(1, 20), random.randint(1, 60)
            yield numbers(batch, length, features), 1 + whole(length, batch)
