"""The text corpus of the examples: the words and characters of `data/kjv`, as numbers.

Words are lower-case; a punctuation mark is a word. Number 0 stands for all words that are not among the most
frequent ones, which are numbered by falling frequency, as samplers by Zipf's law want them.
"""

from __future__ import annotations

import gzip
import os
import re
from collections import Counter
from typing import NamedTuple

import numpy as np

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "kjv", "kjv.txt.gz")
WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|[.,;:?!()]")
UNKNOWN = "<unknown>"


class Corpus(NamedTuple):
    """A text as numbers, int32 [length], and what each number stands for."""

    ids: np.ndarray
    vocabulary: list[str]


def read_text() -> str:
    """The whole text in lower case, a verse a line."""
    with gzip.open(PATH, "rt", encoding="utf-8") as file:
        return file.read().lower()


def read_words(vocabulary_size: int) -> Corpus:
    """The text as words, of which the `vocabulary_size` - 1 most frequent are told apart."""
    words = WORD.findall(read_text())
    frequent = [word for word, _ in Counter(words).most_common(vocabulary_size - 1)]
    vocabulary = [UNKNOWN, *frequent]
    number = {word: k for k, word in enumerate(vocabulary)}
    return Corpus(np.array([number.get(word, 0) for word in words], np.int32), vocabulary)


def read_characters(length: int) -> Corpus:
    """The first `length` characters."""
    text = read_text()[:length]
    vocabulary = sorted(set(text))
    number = {character: k for k, character in enumerate(vocabulary)}
    return Corpus(np.array([number[character] for character in text], np.int32), vocabulary)


def columns(ids: np.ndarray, batch: int) -> np.ndarray:
    """The text cut into `batch` pieces of equal length, a row each: [batch, length // batch]."""
    length = len(ids) // batch
    return ids[: batch * length].reshape(batch, length)
