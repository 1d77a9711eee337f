"""Families of models: the settings, data and first weights that the three scripts of a family share.

WORKLOAD names a model (`k_means`), or all neighbours of a family (`clustering_neighbours`): the same programs
with other sizes, types, optimisers and activations, which one process measures in turn, each for a shorter
time. BENCHMARK_CASE picks one of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKLOAD = os.environ["WORKLOAD"]
Array = np.ndarray[Any, Any]
Shapes = dict[str, tuple[int, ...]]


def cases(models: dict[str, Any], neighbours: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(what follows a metric's name, settings) of what WORKLOAD names."""
    if WORKLOAD in models:
        yield "", models[WORKLOAD]
        return
    only = os.environ.get("BENCHMARK_CASE")
    for name, settings in neighbours.items():
        if only in (None, name):
            yield f", {name}", settings


def values(shapes: Shapes, dtype: str = "float32") -> dict[str, Array]:
    """Uniform by the number of inputs; scales are one, biases are zero."""
    random = np.random.RandomState(0)

    def value(name: str, shape: tuple[int, ...]) -> Array:
        if name.endswith(("bias", "scale")):
            return np.full(shape, float(name.endswith("scale")), dtype)
        bound = (3.0 / max(1, int(np.prod(shape[:-1])))) ** 0.5
        return random.uniform(-bound, bound, shape).astype(dtype)

    return {name: value(name, shape) for name, shape in shapes.items()}


def layers(prefix: str, sizes: tuple[int, ...]) -> Shapes:
    """Weights and biases of dense layers."""
    made: Shapes = {}
    for i, (rows, columns) in enumerate(pairwise(sizes)):
        made[f"{prefix}{i}"] = (rows, columns)
        made[f"{prefix}{i}_bias"] = (columns,)
    return made


# ---- clustering


class Clustering(NamedTuple):
    """Points in groups; `kind`: k_means (Lloyd) or mixture (of Gaussians, diagonal covariances, by EM)."""

    kind: str
    points: int = 1000
    dimensions: int = 2
    centres: int = 5
    iterations: int = 20
    dtype: str = "float32"
    one_hot: bool = False  # sums of groups as products instead of segments

    def data(self) -> tuple[Array, Array]:
        """Points, and first centres among them."""
        random = np.random.RandomState(0)
        centres = random.uniform(-5, 5, (self.centres, self.dimensions))
        groups = random.randint(0, self.centres, self.points)
        points = (centres[groups] + random.randn(self.points, self.dimensions)).astype(self.dtype)
        return points, points[: self.centres].copy()


def clustering_cases() -> Iterator[tuple[str, Clustering]]:
    models = {
        "k_means": Clustering("k_means"),
        "mixture": Clustering("mixture", points=500, centres=3),
    }
    neighbours = {
        "k-means 16 points": Clustering("k_means", points=16, centres=2),
        "k-means float64": Clustering("k_means", dtype="float64"),
        "k-means one-hot": Clustering("k_means", one_hot=True),
        "k-means 8 dimensions": Clustering("k_means", points=2000, dimensions=8, centres=10),
        "k-means 10,000 points": Clustering("k_means", points=10_000, dimensions=16, centres=20),
        "mixture float64": Clustering("mixture", points=500, centres=3, dtype="float64"),
        "mixture 8 dimensions": Clustering("mixture", points=2000, dimensions=8, centres=10),
        "mixture 10,000 points": Clustering("mixture", points=10_000, dimensions=4, centres=8),
    }
    return cases(models, neighbours)


# ---- Q-networks


class QNetwork(NamedTuple):
    """A network of action values with a target network: Mnih et al., 2015, on small observations."""

    observation: int = 4
    hidden: tuple[int, ...] = (64, 64)
    actions: int = 2
    batch: int = 32
    activation: str = "relu"
    optimiser: str = "adam"
    rate: float = 1e-3
    discount: float = 0.99
    huber: bool = False
    dtype: str = "float32"

    def shapes(self) -> Shapes:
        sizes = (self.observation, *self.hidden, self.actions)
        return layers("value", sizes) | layers("target", sizes)

    def transitions(self) -> tuple[Array, Array, Array, Array, Array]:
        """Observations, actions, rewards, next observations, ends."""
        random = np.random.RandomState(1)
        observed = random.randn(2, self.batch, self.observation).astype(self.dtype)
        actions = random.randint(0, self.actions, self.batch).astype(np.int32)
        rewards = random.randn(self.batch).astype(self.dtype)
        return observed[0], actions, rewards, observed[1], (rewards > 1).astype(self.dtype)


def q_network_cases() -> Iterator[tuple[str, QNetwork]]:
    neighbours = {
        "batch 1": QNetwork(batch=1),
        "float64": QNetwork(dtype="float64"),
        "RMSProp, huber": QNetwork(optimiser="rmsprop", huber=True),
        "one layer of 24, tanh, SGD": QNetwork(hidden=(24,), activation="tanh", optimiser="sgd"),
        "observations of 84, 3 layers of 256": QNetwork(84, (256, 256, 256), 18, 64),
        "batch 256, momentum": QNetwork(batch=256, optimiser="momentum"),
    }
    return cases({"q_network": QNetwork()}, neighbours)


# ---- wide and deep


class WideAndDeep(NamedTuple):
    """A linear model of sparse rows beside a network over embeddings: Cheng et al., 2016."""

    batch: int = 128
    buckets: int = 100_000  # rows of the linear model
    crossed: int = 10  # of these, the mean number in an example
    columns: int = 8
    vocabulary: int = 1000  # of each column
    dimension: int = 16
    numbers: int = 13
    hidden: tuple[int, ...] = (100, 50)
    optimiser: str = "adagrad"  # of the network; the linear model has FTRL
    rate: float = 0.05

    def shapes(self) -> Shapes:
        tables = {f"table{i}": (self.vocabulary, self.dimension) for i in range(self.columns)}
        inputs = self.columns * self.dimension + self.numbers
        return tables | layers("deep", (inputs, *self.hidden, 1))

    def examples(self) -> tuple[Array, Array, Array, Array, Array]:
        """Rows of the elements (sorted), their buckets, ids of the columns, numbers, labels."""
        random = np.random.RandomState(1)
        counts = random.randint(1, 2 * self.crossed, self.batch)
        rows = np.repeat(np.arange(self.batch), counts).astype(np.int64)
        buckets = random.randint(0, self.buckets, len(rows)).astype(np.int64)
        ids = random.randint(0, self.vocabulary, (self.batch, self.columns)).astype(np.int64)
        numbers = random.rand(self.batch, self.numbers).astype(np.float32)
        return rows, buckets, ids, numbers, random.randint(0, 2, (self.batch, 1)).astype(np.float32)

    def places(self, rows: Array) -> Array:
        """[elements, 2] indices of a sparse tensor: the row, and the place in it."""
        starts = np.searchsorted(rows, np.arange(self.batch))
        return np.stack((rows, np.arange(len(rows)) - starts[rows]), 1)


def wide_and_deep_cases() -> Iterator[tuple[str, WideAndDeep]]:
    neighbours = {
        "batch 1": WideAndDeep(batch=1),
        "batch 512": WideAndDeep(batch=512),
        "SGD": WideAndDeep(optimiser="sgd"),
        "Adam": WideAndDeep(optimiser="adam", rate=1e-3),
        "1,000,000 buckets": WideAndDeep(buckets=1_000_000),
        "26 columns of 10,000": WideAndDeep(columns=26, vocabulary=10_000, dimension=8),
        "2 columns, one layer": WideAndDeep(columns=2, hidden=(32,)),
    }
    return cases({"wide_and_deep": WideAndDeep()}, neighbours)


# ---- recurrent cells


class Recurrence(NamedTuple):
    """A classifier of sequences by the last state of a cell; `lengths`: sequences end at different steps."""

    cell: str  # gru, basic, lstm, peephole, projected, normalised
    lengths: bool = False
    batch: int = 32
    steps: int = 20
    inputs: int = 64
    units: int = 128
    projected: int = 64
    classes: int = 10
    optimiser: str = "adam"
    rate: float = 1e-3
    dtype: str = "float32"

    @property
    def state(self) -> int:
        return self.projected if self.cell == "projected" else self.units

    def shapes(self) -> Shapes:
        n, rows = self.units, self.inputs + self.state
        if self.cell == "gru":
            own: Shapes = {"gates": (rows, 2 * n), "gates_bias": (2 * n,)}
            own |= {"candidate": (rows, n), "candidate_bias": (n,)}
        elif self.cell == "basic":
            own = {"kernel": (rows, n), "bias": (n,)}
        else:
            own = {"kernel": (rows, 4 * n), "bias": (4 * n,)}
        if self.cell == "peephole":
            own |= {f"w_{gate}_diag": (n,) for gate in "fio"}
        if self.cell == "projected":
            own["projection"] = (n, self.projected)
        if self.cell == "normalised":
            own.pop("bias")
            own |= {f"{gate}_{kind}": (n,) for gate in "ijfoc" for kind in ("scale", "offset_bias")}
        return own | layers("classes", (self.state, self.classes))

    def sequences(self) -> tuple[Array, Array, Array]:
        """[batch, steps, inputs], labels, lengths."""
        random = np.random.RandomState(1)
        x = random.randn(self.batch, self.steps, self.inputs).astype(self.dtype)
        labels = random.randint(0, self.classes, self.batch).astype(np.int64)
        lengths = random.randint(self.steps // 2, self.steps + 1, self.batch).astype(np.int32)
        return x, labels, lengths


def recurrence_cases() -> Iterator[tuple[str, Recurrence]]:
    cells = ("gru", "peephole", "projected", "normalised")
    models = {f"{cell}_cell": Recurrence(cell) for cell in cells}
    models |= {f"{cell}_cell_lengths": Recurrence(cell, lengths=True) for cell in cells}
    neighbours = {
        "basic": Recurrence("basic"),
        "LSTM, lengths": Recurrence("lstm", lengths=True),
        "GRU batch 1": Recurrence("gru", batch=1),
        "GRU float64": Recurrence("gru", dtype="float64"),
        "GRU 256, 50 steps, lengths": Recurrence("gru", lengths=True, steps=50, units=256),
        "GRU 16, RMSProp": Recurrence("gru", units=16, inputs=8, optimiser="rmsprop"),
        "peephole 200, batch 20, SGD": Recurrence("peephole", batch=20, units=200, optimiser="sgd"),
        "normalised 32, batch 1": Recurrence("normalised", batch=1, units=32),
        "projected 256, momentum": Recurrence("projected", units=256, optimiser="momentum"),
    }
    return cases(models, neighbours)


# ---- scalar operations


class Scalars(NamedTuple):
    """Two numbers (or short vectors) that go through a chain of operations; `kind`: linear or curved."""

    kind: str = "linear"
    operations: int = 2000
    shape: tuple[int, ...] = ()
    dtype: str = "float32"

    def start(self) -> tuple[Array, Array]:
        return np.full(self.shape, 0.5, self.dtype), np.full(self.shape, 0.25, self.dtype)


def scalar_cases() -> Iterator[tuple[str, Scalars]]:
    neighbours = {
        "float64": Scalars(dtype="float64", operations=1000),
        "curved": Scalars("curved", operations=1000),
        "vectors of 16": Scalars(shape=(16,), operations=1000),
        "matrices 8x8, curved": Scalars("curved", shape=(8, 8), operations=1000),
        "vectors of 3,000": Scalars(shape=(3000,), operations=500),
    }
    return cases({"scalar_ops": Scalars()}, neighbours)


# ---- generative models and autoencoders


class Generative(NamedTuple):
    """An encoder (of a GAN: the discriminator) and a decoder (the generator) of images.

    `kind`: autoencoder, variational (Kingma and Welling, 2013) or adversarial (Goodfellow et al., 2014).
    Layers are dense or, with `filters`, convolutions of stride 2 and transposed ones; `normalised`: by batch,
    in the generator.
    """

    kind: str
    hidden: tuple[int, ...] = (500, 500)
    filters: tuple[int, ...] = ()
    window: int = 4
    latent: int = 20
    batch: int = 100
    side: int = 28
    channels: int = 1
    activation: str = "relu"
    normalised: bool = False
    optimiser: str = "adam"
    rate: float = 1e-3
    dtype: str = "float32"

    @property
    def image(self) -> tuple[int, ...]:
        convolutional = (self.side, self.side, self.channels)
        return convolutional if self.filters else (self.side * self.side * self.channels,)

    @property
    def smallest(self) -> tuple[int, int, int]:
        """Height, width, channels at the encoder's end."""
        side = self.side >> len(self.filters)
        return side, side, self.filters[-1]

    def shapes(self) -> Shapes:
        codes = {"autoencoder": self.latent, "variational": 2 * self.latent, "adversarial": 1}[self.kind]
        if not self.filters:
            sizes = (*self.image, *self.hidden)
            decoder = layers("decoder", (self.latent, *sizes[::-1]))
            return layers("encoder", (*sizes, codes)) | decoder
        made, sizes, flat = {}, (self.channels, *self.filters), int(np.prod(self.smallest))
        for i, (before, after) in enumerate(pairwise(sizes)):
            made |= {f"encoder{i}": (self.window, self.window, before, after), f"encoder{i}_bias": (after,)}
        last = len(self.filters)
        made |= {f"encoder{last}": (flat, codes), f"encoder{last}_bias": (codes,)}
        made |= {"decoder0": (self.latent, flat), "decoder0_bias": (flat,)}
        for i, (before, after) in enumerate(zip(sizes[::-1], sizes[-2::-1]), 1):
            made |= {f"decoder{i}": (self.window, self.window, after, before), f"decoder{i}_bias": (after,)}
            if self.normalised and i < last:
                made[f"decoder{i}_scale"] = (after,)
        return made

    def data(self) -> tuple[Array, Array]:
        """Images in 0 to 1, and noise."""
        random = np.random.RandomState(1)
        images = random.rand(self.batch, *self.image).astype(self.dtype)
        return images, random.randn(self.batch, self.latent).astype(self.dtype)


def generative_cases() -> Iterator[tuple[str, Generative]]:
    models = {
        "autoencoder": Generative("autoencoder", hidden=(256, 64), latent=16),
        "variational_autoencoder": Generative("variational"),
        "convolutional_vae": Generative("variational", filters=(32, 64), batch=64),
        "gan": Generative("adversarial", hidden=(128,), latent=100, batch=128),
        "dcgan": Generative("adversarial", filters=(32, 64), latent=100, batch=64, normalised=True),
    }
    neighbours = {
        "autoencoder batch 1": models["autoencoder"]._replace(batch=1),
        "autoencoder float64, tanh": models["autoencoder"]._replace(dtype="float64", activation="tanh"),
        "autoencoder 1,024, RMSProp": Generative("autoencoder", (1024, 256), optimiser="rmsprop", batch=256),
        "VAE batch 1": Generative("variational", batch=1),
        "VAE 200 units, softplus, Adagrad": Generative(
            "variational", (200,), activation="softplus", optimiser="adagrad", batch=64
        ),
        "VAE float64": Generative("variational", (200,), dtype="float64"),
        "convolutional VAE 5x5, sigmoid": Generative(
            "variational", filters=(16, 32), window=5, activation="sigmoid", batch=32
        ),
        "GAN batch 1, SGD": models["gan"]._replace(batch=1, optimiser="sgd"),
        "GAN 32x32x3, momentum": Generative(
            "adversarial", (256,), latent=64, side=32, channels=3, optimiser="momentum", batch=32
        ),
        "DCGAN 32x32x3": models["dcgan"]._replace(side=32, channels=3, batch=16),
    }
    return cases(models, neighbours)
