"""Providers of examples: each gives named items, the tensors of the next example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["DataProvider"]


class DataProvider:
    """The items of the next example, by name.

    Args:
        items_to_tensors: the tensors by the items' names.
        num_samples: how many examples there are.
    """

    def __init__(self, items_to_tensors: Mapping[str, Any], num_samples: int | None) -> None:
        self._items_to_tensors = items_to_tensors
        self._num_samples = num_samples

    def get(self, items: Sequence[str]) -> list[Any]:
        """The tensors of `items`, in their order. ValueError for an item that there is not."""
        for item in items:
            if item not in self._items_to_tensors:
                raise ValueError(
                    f"Item [{item}] is invalid. Valid entries include: {list(self._items_to_tensors)}"
                )
        return [self._items_to_tensors[item] for item in items]

    def list_items(self) -> Iterable[str]:
        """The names of the items."""
        return self._items_to_tensors.keys()

    def num_samples(self) -> int | None:
        """How many examples there are."""
        return self._num_samples
