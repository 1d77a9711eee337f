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
