"""Batches of generators and Sequences with tuples as inputs, targets or weights: the package knows lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowstone.keras.published import own

__all__ = ["with_lists"]


def _listed(batch: Any) -> Any:
    if not isinstance(batch, tuple):
        return batch
    return tuple(list(part) if type(part) is tuple else part for part in batch)


class _Batches:
    """The items of an iterator: one at a time, as far as that one can be asked by several threads."""

    def __init__(self, items: Iterator[Any]) -> None:
        self._items = items

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        return _listed(next(self._items))


def _sequence(sequence: Any) -> Any:
    class ListedSequence(own("utils").Sequence):  # type: ignore[misc]
        def __len__(self) -> int:
            return len(sequence)

        def __getitem__(self, index: int) -> Any:
            return _listed(sequence[index])

        def on_epoch_end(self) -> None:
            sequence.on_epoch_end()

    return ListedSequence()


def with_lists(generator: Any) -> Any:
    """The same batches, of a generator or a Sequence, with lists in place of tuples below the first."""
    if isinstance(generator, own("utils").Sequence):
        return _sequence(generator)
    return _Batches(generator) if hasattr(generator, "__next__") else generator
