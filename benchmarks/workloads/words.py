"""Shapes, initial values and data of the workloads on words, for all implementations; float32, int64 words.

`parameters(shapes)` gives every implementation the same initial values. BENCHMARK_BATCH replaces a batch.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

Values = dict[str, np.ndarray[Any, Any]]
Words = np.ndarray[Any, Any]
_random = np.random.default_rng(0)


class SkipGram(NamedTuple):
    """Noise-contrastive estimation with `negatives` words for the whole batch."""

    batch: int = int(os.environ.get("BENCHMARK_BATCH", 128))
    vocabulary: int = 50_000
    dimension: int = 128
    negatives: int = 64
    rate: float = 1.0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        rows = (self.vocabulary, self.dimension)
        return {"embedding": rows, "weights": rows, "bias": (self.vocabulary,)}

    def expected(self) -> np.ndarray[Any, Any]:
        """[vocabulary]: how often a word is drawn, in drawing `negatives` with replacement."""
        words = np.arange(self.vocabulary)
        chances = np.log((words + 2) / (words + 1)) / np.log(self.vocabulary + 1)
        return (self.negatives * chances).astype(np.float32)

    def words(self) -> tuple[Words, Words]:
        """[batch] words and [batch] neighbours, as frequent as the sampler assumes: log-uniform."""
        drawn = np.exp(_random.random((2, self.batch)) * np.log(self.vocabulary + 1)) - 1
        words = np.minimum(drawn.astype(np.int64), self.vocabulary - 1)
        return words[0], words[1]


class GRULanguageModel(NamedTuple):
    """One layer of gated recurrent units: Cho et al., 2014."""

    batch: int = int(os.environ.get("BENCHMARK_BATCH", 20))
    units: int = 200
    steps: int = 20
    vocabulary: int = 10_000
    rate: float = 1.0
    norm: float = 5.0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        n = self.units
        return {
            "embedding": (self.vocabulary, n),
            "gates": (2 * n, 2 * n),
            "gates_bias": (2 * n,),
            "candidate": (2 * n, n),
            "candidate_bias": (n,),
            "softmax": (n, self.vocabulary),
            "softmax_bias": (self.vocabulary,),
        }

    def words(self) -> tuple[Words, Words]:
        """[batch, steps] words and the words after them."""
        words = _random.integers(0, self.vocabulary, (2, self.batch, self.steps))
        return words[0], words[1]


class TransformerBlock(NamedTuple):
    """Self-attention and a feed-forward network, each added to its input and normalised after: Vaswani et
    al., "Attention is all you need", 2017, without its dropout. Its loss is the mean squared error."""

    batch: int = int(os.environ.get("BENCHMARK_BATCH", 16))
    steps: int = 64
    units: int = 256
    heads: int = 4
    hidden: int = 1024
    rate: float = 0.01
    epsilon: float = 1e-5

    def shapes(self) -> dict[str, tuple[int, ...]]:
        n = self.units
        weights = {
            "joint": (n, 3 * n),
            "projection": (n, n),
            "hidden": (n, self.hidden),
            "output": (self.hidden, n),
        }
        norms = {f"{kind}{i}": (n,) for i in (1, 2) for kind in ("scale", "offset")}
        return {**weights, **{f"{name}_bias": shape[1:] for name, shape in weights.items()}, **norms}

    def sequences(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """[batch, steps, units] of inputs and of targets."""
        values = _random.standard_normal((2, self.batch, self.steps, self.units), np.float32)
        return values[0], values[1]


def parameters(shapes: dict[str, tuple[int, ...]]) -> Values:
    """Uniform in -0.1 to 0.1; scales are one, biases and offsets are zero."""

    def value(name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        if "scale" in name or "bias" in name or "offset" in name:
            return np.full(shape, float("scale" in name), np.float32)
        return (_random.random(shape, np.float32) - np.float32(0.5)) * np.float32(0.2)

    return {name: value(name, shape) for name, shape in shapes.items()}
