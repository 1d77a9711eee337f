"""Categories and their ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Any

__all__ = ["CategoricalVocabulary"]


class CategoricalVocabulary:
    """Ids of categories, in the order in which they came; 0 is that of unknown ones.

    Args:
        unknown_token: what `reverse` calls id 0.
        support_reverse: whether `reverse` will be asked for.
    """

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token = unknown_token
        self._mapping: dict[Any, int] = {unknown_token: 0}
        self._support_reverse = support_reverse
        if support_reverse:
            self._reverse_mapping: list[Any] = [unknown_token]
        self._freq: dict[Any, int] = defaultdict(int)
        self._freeze = False

    def __len__(self) -> int:
        """How many ids there are, with that of unknown categories."""
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """From now on new categories are unknown; or, for False, get ids again."""
        self._freeze = freeze

    def get(self, category: Hashable) -> int:
        """The id of a category; a new one gets the next id, or 0 after `freeze`."""
        if category not in self._mapping:
            if self._freeze:
                return 0
            self._mapping[category] = len(self._mapping)
            if self._support_reverse:
                self._reverse_mapping.append(category)
        return self._mapping[category]

    def add(self, category: Hashable, count: int = 1) -> None:
        """Counts the category `count` times more; unknown ones are not counted."""
        if self.get(category) > 0:
            self._freq[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keeps what was counted more often than `min_frequency`, and less often than `max_frequency` if that
        is positive. Ids are given anew: the most frequent category has 1, those as frequent are in order.
        """
        counted = sorted(sorted(self._freq.items(), key=lambda pair: str(pair[0])), key=lambda pair: -pair[1])
        kept = [
            (category, count)
            for category, count in counted
            if count > min_frequency and not 0 < max_frequency <= count
        ]
        self._freq = dict(kept)
        categories = [self._unknown_token, *self._freq]
        self._mapping = {category: number for number, category in enumerate(categories)}
        if self._support_reverse:
            self._reverse_mapping = categories

    def reverse(self, class_id: int) -> Any:
        """The category of an id. IndexError for one that is none, ValueError without `support_reverse`."""
        if not self._support_reverse:
            raise ValueError(
                "This vocabulary wasn't initialized with support_reverse to support reverse() function."
            )
        return self._reverse_mapping[class_id]
