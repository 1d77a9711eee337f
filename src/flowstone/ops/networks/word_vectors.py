"""Vectors of words by the skip-gram model with negative sampling (T. Mikolov et al., Distributed
Representations of Words and Phrases and their Compositionality, 2013).

`Skipgram` reads a text file once a session and gives batches of pairs of words that stand near each other;
`NegTrain` takes a step of gradient descent for each pair of a batch. Graphs of version 19 or later lack both.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import format_dims
from flowstone.io import file_system
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.randomness.op_seeds import fresh_seed
from flowstone.ops.strings.elementwise_strings import Strings, as_array

__all__: list[str] = []

Array = np.ndarray[Any, Any]

_SENTENCE = 1000  # words that a window looks around in, at most
_MOST_EPOCHS = 1000  # that may go by without a word being kept
_UNKNOWN = b"UNK"
_LEAST_WINDOWS = 10
_POWER = 0.75  # of a word's count: how likely it is drawn as a negative
_REMOVED_IN = 19


class Corpus:
    """The words of a text, as numbers, the most frequent first; 0 stands for those below `min_count`."""

    def __init__(self, text: bytes, min_count: int) -> None:
        words = text.split()
        kept = [(word, n) for word, n in collections.Counter(words).most_common() if n >= min_count]
        numbers = {word: i for i, (word, _) in enumerate(kept, 1)}
        self.words = np.fromiter((numbers.get(word, 0) for word in words), np.int32, len(words))
        others = len(words) - sum(n for _, n in kept)
        self.vocabulary: Strings = as_array([_UNKNOWN, *(word for word, _ in kept)], (len(kept) + 1,))
        self.frequencies = np.array([others, *(n for _, n in kept)], np.int32)

    def kept_parts(self, subsample: float) -> Array:
        """How likely each word of the vocabulary is kept: the less, the more frequent it is; float32."""
        wanted = subsample * len(self.words)
        if subsample <= 0:
            return np.ones(len(self.frequencies), np.float32)
        counts = np.maximum(self.frequencies, 1).astype(np.float64)
        return ((np.sqrt(counts / wanted) + 1) * wanted / counts).astype(np.float32)


class Pairs:
    """The pairs of a corpus that is read again and again, sentence by sentence.

    `epoch` is how often it has been read to its end, `processed` how many words have had their pairs given.
    """

    def __init__(self, corpus: Corpus, window: int, subsample: float) -> None:
        self.corpus, self._window = corpus, max(window, 1)
        self._chances = None if subsample <= 0 else corpus.kept_parts(subsample)[corpus.words]
        self._random = np.random.default_rng(fresh_seed())
        self._at = self.epoch = self._before = 0
        self._pairs = np.zeros((3, 0), np.int32)  # examples, labels, places in the sentence
        self._words_left = 0
        self.lock = threading.Lock()

    @property
    def processed(self) -> int:
        """The words whose pairs have been given, the one in work among them."""
        left = int(self._pairs[2, 0]) if self._pairs.shape[1] else self._words_left
        return self._before + left

    def take(self, count: int) -> tuple[Array, Array]:
        """The next pairs: examples and labels, int32 [count] each."""
        parts = [self._pairs]
        have = self._pairs.shape[1]
        while have < count:
            sentence = self._sentence()
            self._before += self._words_left
            self._words_left = len(sentence)
            parts.append(self._pairs_of(sentence))
            have += parts[-1].shape[1]
        pairs = np.concatenate(parts, 1) if len(parts) > 1 else self._pairs
        self._pairs = pairs[:, count:]
        return pairs[0, :count].copy(), pairs[1, :count].copy()

    def _sentence(self) -> Array:
        """The next words that are kept, across the end of the corpus if need be."""
        parts: list[Array] = []
        have, words = 0, self.corpus.words
        last = self.epoch + _MOST_EPOCHS
        while have < _SENTENCE:
            if self._chances is None:
                places = np.arange(self._at, min(self._at + _SENTENCE - have, len(words)))
            else:
                chances = self._chances[self._at :]
                places = self._at + np.flatnonzero(self._random.random(len(chances)) < chances)
                places = places[: _SENTENCE - have]
            parts.append(words[places])
            have += len(places)
            if have == _SENTENCE:
                self._at = int(places[-1]) + 1
            if have < _SENTENCE or self._at == len(words):
                self._at, self.epoch = 0, self.epoch + 1
            if self.epoch >= last:
                break
        if have < 2:
            raise invalid(f"subsample keeps {have} words of {_MOST_EPOCHS} times {len(words)}")
        return np.concatenate(parts)

    def _pairs_of(self, sentence: Array) -> Array:
        """Each word with those at most a window away, whose size is drawn for each: int32 [3, pairs]."""
        size = len(sentence)
        reach = self._random.integers(1, self._window + 1, size)
        distance = np.arange(-self._window, self._window + 1)
        places = np.arange(size)[:, None] + distance
        fits = (np.abs(distance) <= reach[:, None]) & (distance != 0) & (places >= 0) & (places < size)
        centres = np.nonzero(fits)[0]
        pairs = np.stack([sentence[centres], sentence[places[fits]], centres + 1])
        return pairs.astype(np.int32, copy=False)


skipgram_op = op(
    "Skipgram",
    "-> vocab_word: string, vocab_freq: int32, words_per_epoch: int64, current_epoch: int32, "
    "total_words_processed: int64, examples: int32, labels: int32",
    "filename: string ; batch_size: int ; window_size: int = 5 ; min_count: int = 5 ; "
    "subsample: float = 0.001",
    stateful=True,
    deprecated=(_REMOVED_IN, "tf.data.TextLineDataset"),
)
skipgram_op.no_gradient()


@skipgram_op.infer
def _(node: Node) -> Shapes:
    return [None] * 7


def _read(node: Node) -> Pairs:
    attributes = node.attributes
    filename, window = attributes["filename"], attributes["window_size"]
    corpus = Corpus(file_system.read_bytes(filename), attributes["min_count"])
    if len(corpus.words) < max(window, 1) * _LEAST_WINDOWS:
        raise invalid(
            f"The text file {file_system.as_path(filename)} contains too little data: "
            f"{len(corpus.words)} words"
        )
    return Pairs(corpus, window, attributes["subsample"])


@skipgram_op.kernel(CPU)  # text is in host memory
def _(node: Node, env: Environment) -> Kernel:
    count = node.attributes["batch_size"]
    if count < 0:
        raise invalid(f"batch_size must not be negative, got {count}")

    def batch() -> tuple[Any, ...]:
        pairs: Pairs = env.state(node, lambda: _read(node))
        corpus = pairs.corpus
        with pairs.lock:
            examples, labels = pairs.take(count)
            epoch, processed = pairs.epoch, pairs.processed
        return (
            corpus.vocabulary,
            torch.from_numpy(corpus.frequencies.copy()),
            torch.tensor(len(corpus.words), dtype=torch.int64),
            torch.tensor(epoch, dtype=torch.int32),
            torch.tensor(processed, dtype=torch.int64),
            torch.from_numpy(examples),
            torch.from_numpy(labels),
        )

    return batch


# ---- training

train_op = op(
    "NegTrain",
    "w_in: Ref(float), w_out: Ref(float), examples: int32, labels: int32, lr: float ->",
    "vocab_count: list(int) ; num_negative_samples: int",
    stateful=True,
    mutates=[0, 1],
    deprecated=(_REMOVED_IN, "tf.nn.nce_loss"),
)
train_op.no_gradient()


@train_op.infer
def _(node: Node) -> Shapes:
    return []


def _step(w_in: Array, w_out: Array, example: int, label: int, rate: float, negatives: Array) -> None:
    """One step of gradient descent for the logistic loss of a pair and of so many pairs that are none."""
    word = w_in[example]
    rows = np.array([label])
    # A row that is drawn several times changes as often, each time from where it then is.
    others, counts = np.unique(negatives[negatives != label], return_counts=True)
    change = np.zeros_like(word)
    for target, chosen in [(1, rows), *((0, others[counts > i]) for i in range(counts.max(initial=0)))]:
        vectors = w_out[chosen]
        slope = (target - 1 / (1 + np.exp(-(vectors @ word)))) * rate
        change += slope @ vectors
        w_out[chosen] = vectors + slope[:, None] * word
    w_in[example] += change


@train_op.kernel(CPU)  # one pair after another: a GPU has nothing to do at once
def _(node: Node, env: Environment) -> Kernel:
    counts, negatives = node.attributes["vocab_count"], max(node.attributes["num_negative_samples"], 0)
    weights = np.array(counts, np.float64).clip(0) ** _POWER
    bounds = np.cumsum(weights if weights.any() else np.ones(len(counts)))

    def train(w_in: Any, w_out: Any, examples: torch.Tensor, labels: torch.Tensor, lr: torch.Tensor) -> None:
        random = env.state(node, np.random.default_rng)
        with w_in.lock:
            rows, columns = w_in.tensor.numpy(), w_out.tensor.numpy()
            _check(rows, columns, examples, labels, lr, len(counts))
            drawn = _draws(bounds, random.random((len(examples), negatives)))
            with np.errstate(over="ignore"):
                for pair in zip(examples.tolist(), labels.tolist(), drawn, strict=True):
                    _step(rows, columns, *pair[:2], float(lr), pair[2])

    return train


def _draws(bounds: Array, uniform: Array) -> Array:
    """Places in proportion to what each adds to `bounds`, for uniform numbers of [0, 1)."""
    if not uniform.size:
        return np.zeros(uniform.shape, np.int64)
    places: Array = np.searchsorted(bounds, uniform * bounds[-1], side="right")
    return places


def _check(
    w_in: Array, w_out: Array, examples: torch.Tensor, labels: torch.Tensor, lr: torch.Tensor, size: int
) -> None:
    if w_in.ndim != 2:
        raise invalid(f"w_in must be a matrix, got shape {format_dims(w_in.shape)}")
    if w_in.shape != w_out.shape:
        raise invalid(
            f"w_in.shape == w_out.shape must hold: {format_dims(w_in.shape)} and {format_dims(w_out.shape)}"
        )
    if examples.ndim != 1 or examples.shape != labels.shape:
        shapes = [format_dims(tuple(each.shape)) for each in (examples, labels)]
        raise invalid(f"examples and labels must be vectors of one size: {shapes[0]} and {shapes[1]}")
    if lr.ndim:
        raise invalid(f"lr must be a scalar, got shape {format_dims(tuple(lr.shape))}")
    if size != len(w_in):
        raise invalid(f"vocab_size mismatches: {len(w_in)} vs. {size}")
    for name, values in (("examples", examples), ("labels", labels)):
        wrong: Sequence[int] = [i for i in values.tolist() if not 0 <= i < size]
        if wrong:
            raise invalid(f"{name} must be in [0, {size}), got {wrong[0]}")
