"""`tensorflow.models.rnn.ptb.reader`: the Penn Treebank as numbers of words, as the tutorial reads it."""

from __future__ import annotations

import collections
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

import flowstone

__all__ = ["ptb_iterator", "ptb_raw_data"]


def _read_words(filename: str) -> list[str]:
    with flowstone.gfile.GFile(filename, "r") as file:
        return str(file.read()).replace("\n", " <eos> ").split()


def _build_vocab(filename: str) -> dict[str, int]:
    """The number of each word, the most frequent first, words of one frequency by the alphabet."""
    counts = collections.Counter(_read_words(filename))
    words = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: number for number, word in enumerate(words)}


def ptb_raw_data(data_path: str) -> tuple[list[int], list[int], list[int], int]:
    """The words of ptb.train.txt, ptb.valid.txt and ptb.test.txt as numbers, and how many words there are."""
    paths = [os.path.join(data_path, f"ptb.{part}.txt") for part in ("train", "valid", "test")]
    numbers = _build_vocab(paths[0])
    parts = [[numbers[word] for word in _read_words(path) if word in numbers] for path in paths]
    return parts[0], parts[1], parts[2], len(numbers)


def ptb_iterator(raw_data: Any, batch_size: int, num_steps: int) -> Iterator[tuple[Any, Any]]:
    """Pairs (inputs, targets) of int32 [batch_size, num_steps]; the targets are the words one further on.

    Raises ValueError if there are too few words for a batch.
    """
    words = np.array(raw_data, np.int32)
    length = len(words) // batch_size
    rows = words[: batch_size * length].reshape(batch_size, length)
    count = (length - 1) // num_steps
    if count == 0:
        raise ValueError("epoch_size == 0, decrease batch_size or num_steps")
    for index in range(count):
        start = index * num_steps
        yield rows[:, start : start + num_steps], rows[:, start + 1 : start + num_steps + 1]
