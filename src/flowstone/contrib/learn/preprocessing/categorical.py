"""Rows of categories as rows of ids."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from flowstone.contrib.learn.preprocessing.categorical_vocabulary import CategoricalVocabulary

__all__ = ["CategoricalProcessor", "setup_processor_data_feeder"]


def setup_processor_data_feeder(x: Any) -> Any:
    """The rows of `x`: the values of a pandas object, else `x` itself."""
    return x.to_numpy() if hasattr(x, "to_numpy") else x


class CategoricalProcessor:
    """Maps categories to ids, column by column.

    Args:
        min_frequency: categories that are not more frequent in `fit` are unknown, if it is not 0.
        share: whether all columns have one vocabulary.
        vocabularies: those of the columns; None: `fit` makes them.
    """

    def __init__(self, min_frequency: int = 0, share: bool = False, vocabularies: Any = None) -> None:
        self.min_frequency, self.share = min_frequency, share
        self.vocabularies_: Any = vocabularies

    def freeze(self, freeze: bool = True) -> None:
        """Freezes the vocabularies, or unfreezes them."""
        for vocabulary in self.vocabularies_:
            vocabulary.freeze(freeze)

    def fit(self, x: Iterable[Any], unused_y: Any = None) -> CategoricalProcessor:
        """Learns the categories of rows, and freezes the vocabularies."""
        for row in setup_processor_data_feeder(x):
            if self.vocabularies_ is None:
                self.vocabularies_ = self._new_vocabularies(len(row))
            for vocabulary, value in zip(self.vocabularies_, row):
                if not _is_missing(value):
                    vocabulary.add(value)
        if self.min_frequency > 0:
            for vocabulary in self.vocabularies_:
                vocabulary.trim(self.min_frequency)
        self.freeze()
        return self

    def _new_vocabularies(self, number: int) -> list[CategoricalVocabulary]:
        if self.share:
            return [CategoricalVocabulary()] * number
        return [CategoricalVocabulary() for _ in range(number)]

    def fit_transform(self, x: Iterable[Any], unused_y: Any = None) -> Iterator[Any]:
        """`fit`, then `transform`."""
        self.fit(x)
        return self.transform(x)

    def transform(self, x: Iterable[Any]) -> Iterator[Any]:
        """Gives the ids of each row: int64, [columns]; 0 where a value is unknown or missing."""
        self.freeze()
        for row in setup_processor_data_feeder(x):
            ids = np.zeros(len(row), np.int64)
            for column, (vocabulary, value) in enumerate(zip(self.vocabularies_, row)):
                if not _is_missing(value):
                    ids[column] = vocabulary.get(value)
            yield ids


def _is_missing(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
