"""Convolutional networks as plain data, for all implementations: NHWC images, HWIO filters, float32.

`NETWORK` is the one that WORKLOAD names. `parameters(NETWORK)` gives every implementation the same initial
values, nested like the layers: [weights, bias] of a convolution or a dense layer ([weights, scale, offset]
where the network normalises its batches), nothing of a pooling, and a list of sequences of a composite layer.
The first dense layer's weights are [height, width, channels, units]: each implementation flattens them in the
order in which it flattens images. BENCHMARK_BATCH replaces the batch, for a GPU.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

RATE = 0.001
EPSILON = 1e-5  # of batch normalisation


# ---- layers


class Convolution(NamedTuple):
    """Square filters, and the network's activation if `activated`."""

    filters: int
    size: int
    stride: int = 1
    padding: str = "SAME"
    activated: bool = True


class Depthwise(NamedTuple):
    """A square filter for each channel, padding SAME, and the network's activation: of networks that
    normalise."""

    size: int
    stride: int


class MaxPooling(NamedTuple):
    """The maximum of square windows; with padding SAME and stride 2, the image's side must be even."""

    size: int
    stride: int
    padding: str = "SAME"


class GlobalAverage(NamedTuple):
    """[batch, channels]: the mean over the image."""


class Concatenation(NamedTuple):
    """Sequences of layers on the same image, their channels joined."""

    branches: tuple[tuple[Any, ...], ...]


class Residual(NamedTuple):
    """A sequence of layers added to another (or to the image itself), and the network's activation."""

    body: tuple[Any, ...]
    shortcut: tuple[Any, ...]


class Dense(NamedTuple):
    """A fully connected layer, and the network's activation if `activated`."""

    units: int
    activated: bool = True


class Network(NamedTuple):
    """`image` is height, width and channels; the last layer's units are the classes."""

    batch: int
    image: tuple[int, int, int]
    layers: tuple[Any, ...]
    activation: str = "relu"
    normalised: bool = False


# ---- networks


def inception(
    direct: int, reduced3: int, size3: int, reduced5: int, size5: int, projected: int
) -> Concatenation:
    """Szegedy et al., "Going deeper with convolutions", 2014."""
    return Concatenation(
        (
            (Convolution(direct, 1),),
            (Convolution(reduced3, 1), Convolution(size3, 3)),
            (Convolution(reduced5, 1), Convolution(size5, 5)),
            (MaxPooling(3, 1), Convolution(projected, 1)),
        )
    )


def bottlenecks(filters: int, blocks: int, stride: int) -> tuple[Residual, ...]:
    """He et al., "Deep residual learning", 2015: the first block's first convolution has the stride."""

    def block(stride: int, shortcut: tuple[Any, ...]) -> Residual:
        reduced, convolved = Convolution(filters, 1, stride), Convolution(filters, 3)
        return Residual((reduced, convolved, Convolution(4 * filters, 1, activated=False)), shortcut)

    first = block(stride, (Convolution(4 * filters, 1, stride, activated=False),))
    return (first, *[block(1, ())] * (blocks - 1))


def separable(filters: int, stride: int) -> tuple[Depthwise, Convolution]:
    """Howard et al., "MobileNets", 2017."""
    return Depthwise(3, stride), Convolution(filters, 1)


LENET = Network(
    64,
    (28, 28, 1),
    (
        Convolution(20, 5, padding="VALID"),
        MaxPooling(2, 2, "VALID"),
        Convolution(50, 5, padding="VALID"),
        MaxPooling(2, 2, "VALID"),
        Dense(500),
        Dense(10, activated=False),
    ),
    activation="tanh",
)
CLASSIFIER = (Dense(4096), Dense(4096), Dense(1000, activated=False))
ALEXNET = Network(  # one tower; the image carries the first layer's padding, as also below
    16,
    (227, 227, 3),
    (
        Convolution(64, 11, 4, "VALID"),
        MaxPooling(3, 2, "VALID"),
        Convolution(192, 5),
        MaxPooling(3, 2, "VALID"),
        Convolution(384, 3),
        Convolution(256, 3),
        Convolution(256, 3),
        MaxPooling(3, 2, "VALID"),
        *CLASSIFIER,
    ),
)
GOOGLENET = Network(
    8,
    (229, 229, 3),
    (
        Convolution(64, 7, 2, "VALID"),
        MaxPooling(3, 2),
        Convolution(64, 1),
        Convolution(192, 3),
        MaxPooling(3, 2),
        inception(64, 96, 128, 16, 32, 32),
        inception(128, 128, 192, 32, 96, 64),
        MaxPooling(3, 2),
        inception(192, 96, 208, 16, 48, 64),
        inception(160, 112, 224, 24, 64, 64),
        inception(128, 128, 256, 24, 64, 64),
        inception(112, 144, 288, 32, 64, 64),
        inception(256, 160, 320, 32, 128, 128),
        MaxPooling(3, 2),
        inception(256, 160, 320, 32, 128, 128),
        inception(384, 192, 384, 48, 128, 128),
        GlobalAverage(),
        Dense(1000, activated=False),
    ),
)
VGG_A = Network(
    4,
    (224, 224, 3),
    (
        Convolution(64, 3),
        MaxPooling(2, 2, "VALID"),
        Convolution(128, 3),
        MaxPooling(2, 2, "VALID"),
        *[Convolution(256, 3)] * 2,
        MaxPooling(2, 2, "VALID"),
        *[Convolution(512, 3)] * 2,
        MaxPooling(2, 2, "VALID"),
        *[Convolution(512, 3)] * 2,
        MaxPooling(2, 2, "VALID"),
        *CLASSIFIER,
    ),
)
RESNET50 = Network(
    4,
    (229, 229, 3),
    (
        Convolution(64, 7, 2, "VALID"),
        MaxPooling(3, 2),
        *bottlenecks(64, 3, 1),
        *bottlenecks(128, 4, 2),
        *bottlenecks(256, 6, 2),
        *bottlenecks(512, 3, 2),
        GlobalAverage(),
        Dense(1000, activated=False),
    ),
    normalised=True,
)
MOBILENET = Network(
    8,
    (161, 161, 3),  # 161, 81, 41, 21, 11: padding is the same at both ends
    (
        Convolution(32, 3, 2),
        *separable(64, 1),
        *separable(128, 2),
        *separable(128, 1),
        *separable(256, 2),
        *separable(256, 1),
        *separable(512, 2),
        *separable(512, 1) * 5,
        *separable(1024, 2),
        *separable(1024, 1),
        GlobalAverage(),
        Dense(1000, activated=False),
    ),
    activation="relu6",
    normalised=True,
)
NETWORKS = {
    "lenet": LENET,
    "alexnet": ALEXNET,
    "googlenet": GOOGLENET,
    "vgg_a": VGG_A,
    "resnet50": RESNET50,
    "mobilenet": MOBILENET,
    "memory": ALEXNET,
}


# ---- values


class Initial:
    """Makes the initial values of layer after layer, following the image's side and channels."""

    def __init__(self, network: Network) -> None:
        self.normalised = network.normalised
        self.random = np.random.default_rng(0)
        self.side, _, self.channels = network.image

    def sequence(self, layers: tuple[Any, ...]) -> list[Any]:
        return [self.layer(layer) for layer in layers]

    def layer(self, layer: Any) -> list[Any]:
        match layer:
            case Convolution(filters, size, stride, padding):
                weights = self.weights(size, size, self.channels, filters)
                self.slide(size, stride, padding)
                self.channels = filters
                scale = [np.ones(filters, np.float32)] * self.normalised
                return [weights, *scale, np.zeros(filters, np.float32)]
            case Depthwise(size, stride):
                weights = self.weights(size, size, 1, self.channels).transpose(0, 1, 3, 2)
                self.slide(size, stride, "SAME")
                return [weights, np.ones(self.channels, np.float32), np.zeros(self.channels, np.float32)]
            case MaxPooling(size, stride, padding):
                self.slide(size, stride, padding)
            case GlobalAverage():
                self.side = 1
            case Concatenation(branches):
                return self.parallel(branches, sum)
            case Residual(body, shortcut):
                return self.parallel((shortcut, body), max)
            case Dense(units):
                weights = self.weights(self.side, self.side, self.channels, units)
                self.side, self.channels = 1, units
                return [weights, np.zeros(units, np.float32)]
        return []

    def parallel(self, sequences: tuple[tuple[Any, ...], ...], join: Any) -> list[Any]:
        side, channels, found, joined = self.side, self.channels, [], []
        for layers in sequences:
            self.side, self.channels = side, channels
            found.append(self.sequence(layers))
            joined.append(self.channels)
        self.channels = join(joined)
        return found

    def weights(self, *shape: int) -> np.ndarray[Any, Any]:
        bound = np.float32(np.sqrt(6 / np.prod(shape[:-1])))
        values = self.random.random(shape, np.float32)
        values -= np.float32(0.5)
        values *= 2 * bound
        return values

    def slide(self, size: int, stride: int, padding: str) -> None:
        self.side = -(-self.side // stride) if padding == "SAME" else (self.side - size) // stride + 1


def parameters(network: Network) -> list[Any]:
    """The initial values: a list of each layer's, nested as the module's docstring says."""
    return Initial(network).sequence(network.layers)


def images_and_labels(network: Network) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """[batch, height, width, channels] float32 of 0 to 1, and [batch] int64 classes."""
    random = np.random.default_rng(1)
    images = random.random((network.batch, *network.image), np.float32)
    return images, random.integers(0, network.layers[-1].units, network.batch)


WORKLOAD = os.environ["WORKLOAD"]
NETWORK = NETWORKS[WORKLOAD]
NETWORK = NETWORK._replace(batch=int(os.environ.get("BENCHMARK_BATCH", NETWORK.batch)))
