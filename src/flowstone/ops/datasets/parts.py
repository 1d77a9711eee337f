"""Datasets whose elements are those of other datasets, their *parts*, which a function of the graph makes.

A part has a place: its number in the pass, or which of the datasets that take turns it is. What shuffles in a
part draws on after the last part in the same place, in this pass or an earlier one, and what was cached there
is read, as in TensorFlow 1.15.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from flowstone.framework.declarations.kernel import FunctionCall
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.iteration import Dataset, Element, Iteration
from flowstone.ops.randomness.op_seeds import OwnPlaces

__all__: list[str] = []


class Making:
    """How a function that has `captured` these makes a dataset of a part's element."""

    def __init__(self, function: FunctionCall, captured: Element) -> None:
        self._function, self._captured = OwnPlaces(function), captured

    def __call__(self, step: Any, element: Element) -> Dataset:
        (found,) = self._function(step, *element, *self._captured)
        if not isinstance(found, Dataset):
            raise invalid("The function must return a single scalar of dtype DT_VARIANT: a dataset.")
        return found

    def apart(self) -> Making:
        """The same, whose seeded operations begin anew."""
        other = copy.copy(self)
        other._function = self._function.apart()
        return other


class Part:
    """A pass over the dataset that was made of `element`, in this place."""

    __slots__ = ("_dataset", "_drawn", "_place", "element", "rest")

    def __init__(self, dataset: Dataset, drawn: dict[int, list[Any]], place: int, element: Any) -> None:
        self._dataset, self._drawn, self._place, self.element = dataset, drawn, place, element
        self.rest = dataset.iterate()
        self._note()

    def _note(self) -> None:
        drawn = self._dataset.drawn()
        if any(drawn):
            self._drawn[self._place] = drawn

    def close(self) -> None:
        """Ends the pass; the next part in this place draws on after it."""
        self.rest.close()
        self._note()

    def save(self) -> Any:
        """What `PartsDataset.restored` takes."""
        return {"place": self._place, "element": self.element, "rest": self.rest.save()}


class PartsDataset(Dataset):
    """Of each pass over `source`, `passes` makes one that opens parts.

    Its state `_drawn` says by place how much the last part there drew, if it
    drew anything.
    """

    def __init__(
        self,
        source: Dataset,
        make: Callable[[Any, Any], Dataset],
        passes: Callable[[Iteration, PartsDataset], Iteration],
    ) -> None:
        self.source, self._make, self._passes = source, make, passes
        self._drawn: dict[int, list[Any]] = {}

    def iterate(self) -> Iteration:
        """A pass over the parts of a new pass over the source."""
        return self._passes(self.source.iterate(), self)

    def part(self, step: Any, place: int, element: Any) -> Part:
        """Opens the part that is made of `element`."""
        made = self._make(step, element)
        if made.drawn():  # else nothing in it draws
            made = made.apart()
            if place in self._drawn:
                made.go_on_after(iter(self._drawn[place]))
        return Part(made, self._drawn, place, element)

    def restored(self, step: Any, saved: Any) -> Part:
        """The part that `Part.save` gave."""
        part = self.part(step, saved["place"], saved["element"])
        part.rest.restore(step, saved["rest"])
        return part

    def apart(self) -> Dataset:
        """An equal dataset of which no part has drawn."""
        other = super().apart()
        assert isinstance(other, PartsDataset)
        other._drawn = {}
        return other

    def drawn(self) -> list[Any]:
        """With what its parts drew first."""
        return [dict(self._drawn), *super().drawn()]

    def go_on_after(self, drawn: Iterator[Any]) -> None:
        """With what its parts drew first."""
        self._drawn = dict(next(drawn))
        super().go_on_after(drawn)

    def save_places(self) -> dict[int, list[Any]]:
        """How much was drawn in each place."""
        return _saved(self._drawn)  # type: ignore[no-any-return]

    def restore_places(self, saved: dict[int, list[Any]]) -> None:
        """Takes back what `save_places` gave."""
        self._drawn = dict(saved)


def _saved(drawn: Any) -> Any:
    """What was drawn, in values that can be written."""
    if isinstance(drawn, dict):
        return {place: _saved(each) for place, each in drawn.items()}
    if isinstance(drawn, list):
        return [_saved(each) for each in drawn]
    return drawn.save() if hasattr(drawn, "save") else drawn
