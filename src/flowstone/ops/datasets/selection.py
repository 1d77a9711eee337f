"""Datasets that hand on elements of others: all, some, again, one after the other, or side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import Environment, FunctionCall
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.iteration import (
    Columns,
    Dataset,
    Element,
    Iteration,
    OneInput,
    dataset_op,
    each_apart,
    joined_parts,
)
from flowstone.ops.datasets.rows import Rows
from flowstone.ops.randomness.op_seeds import OwnPlaces

__all__: list[str] = []


class Derived(Dataset):
    """A dataset made of another one by `passes(source)`, which makes the pass of a pass over it."""

    def __init__(self, source: Dataset, passes: Callable[[Iteration], Iteration]) -> None:
        self.source, self._passes = source, passes

    def iterate(self) -> Iteration:
        """A pass of a new pass over the source."""
        return self._passes(self.source.iterate())


class DerivedByFunction(Dataset):
    """A dataset made of another one by a function: `passes(source, function)` makes the passes.

    Wherever the dataset is made, the function's seeded operations begin anew, as in TensorFlow.
    """

    def __init__(
        self, source: Dataset, function: FunctionCall, passes: Callable[[Iteration, FunctionCall], Iteration]
    ) -> None:
        self.source, self._function, self._passes = source, OwnPlaces(function), passes

    def iterate(self) -> Iteration:
        """A pass of a new pass over the source."""
        return self._passes(self.source.iterate(), self._function)


# ---- again


class RepeatDataset(Dataset):
    """A dataset `count` times; without end if that is negative. `joins`: whether as its `repeated` says."""

    def __init__(self, source: Dataset, count: int, joins: bool) -> None:
        self.source, self.count, self.joins = source, count, joins
        if joins and count == 0 and source.repeated() is not source:
            raise invalid("count must be greater than zero or equal to -1.")

    def iterate(self) -> Iteration:
        """A pass over all."""
        return _Repeated(self.source.repeated() if self.joins else self.source, self.count)

    def rows(self) -> Rows | None:
        """Its rows, if the source has such."""
        rows = self.source.rows() if self.count else None
        if rows is None or rows.total != rows.length:
            return None
        return rows._replace(total=None if self.count < 0 else rows.length * self.count)


class _Repeated(Iteration):
    def __init__(self, source: Dataset, count: int) -> None:
        self.dataset, self.count = source, count
        self.done, self.any = 0, False  # passes that have ended; whether this one gave an element
        self.source: Iteration | None = source.iterate() if count else None

    def next(self, step: Any) -> Element | None:
        while self.source is not None:
            element = self.source.next(step)
            if element is not None:
                self.any = True
                return element
            self._again()
        return None

    def several(self, step: Any, count: int) -> Columns | None:
        return joined_parts(lambda left: self._rest_of_pass(step, left), count)

    def _rest_of_pass(self, step: Any, most: int) -> Columns | None:
        """The next elements that are of one pass."""
        while self.source is not None:
            found = self.source.several(step, most)
            if found is not None:
                self.any = True
                return found
            self._again()
        return None

    def _again(self) -> None:
        assert self.source is not None
        self.source.close()
        self.done += 1
        goes_on = self.done != self.count and (self.any or self.count > 0)  # nothing for ever ends at once
        self.any = False
        if not goes_on and self.count > 1 and self.dataset.drawn():
            self.dataset.iterate().close()  # as in TensorFlow, where a repetition begins a pass too many
        self.source = self.dataset.iterate() if goes_on else None

    def save(self) -> Any:
        state = None if self.source is None else self.source.save()
        return {"done": self.done, "any": self.any, "source": state}

    def restore(self, step: Any, state: Any) -> None:
        self.close()
        self.done, self.any, self.source = state["done"], state["any"], None
        if state["source"] is not None:
            self.source = self.dataset.iterate()
            self.source.restore(step, state["source"])

    def close(self) -> None:
        if self.source is not None:
            self.source.close()


def _make_repeat(node: Node, env: Environment) -> Callable[..., Dataset]:
    may_join = not node.attributes.get("_apart", False)  # by the dataset's options
    return lambda source, count: RepeatDataset(source, int(count), may_join and int(count) != 1)


repeat_dataset_op = dataset_op("RepeatDataset", "input_dataset: variant, count: int64[]", _make_repeat)


# ---- the first, and the others


class _Taken(OneInput):
    def __init__(self, source: Iteration, count: int) -> None:
        super().__init__(source)
        self.left = count  # negative: all

    def next(self, step: Any) -> Element | None:
        if not self.left:
            return None
        self.left -= 1
        return self.source.next(step)

    def several(self, step: Any, count: int) -> Columns | None:
        if not self.left:
            return None
        found = self.source.several(step, count if self.left < 0 else min(count, self.left))
        if found is not None:
            self.left -= found[0]
        return found

    def save(self) -> Any:
        return {**super().save(), "left": self.left}

    def restore(self, step: Any, state: Any) -> None:
        super().restore(step, state)
        self.left = state["left"]


class _Skipped(OneInput):
    def __init__(self, source: Iteration, count: int) -> None:
        super().__init__(source)
        self.left = count

    def _skip(self, step: Any) -> None:
        while self.left:
            if self.left < 0 or self.source.next(step) is None:
                self.left, self.source = 0, _NOTHING
                break
            self.left -= 1

    def next(self, step: Any) -> Element | None:
        if self.left:
            self._skip(step)
        return self.source.next(step)

    def several(self, step: Any, count: int) -> Columns | None:
        if self.left:
            self._skip(step)
        return self.source.several(step, count)

    def save(self) -> Any:
        return {**super().save(), "left": self.left, "ended": self.source is _NOTHING}

    def restore(self, step: Any, state: Any) -> None:
        if state["ended"]:
            self.source = _NOTHING
        super().restore(step, state)
        self.left = state["left"]


class _Nothing(Iteration):
    def next(self, step: Any) -> Element | None:
        return None

    def save(self) -> Any:
        return None

    def restore(self, step: Any, state: Any) -> None:
        pass


_NOTHING = _Nothing()


def _make_take(node: Node, env: Environment) -> Callable[..., Dataset]:
    return lambda source, count: Derived(source, lambda each: _Taken(each, int(count)))


def _make_skip(node: Node, env: Environment) -> Callable[..., Dataset]:
    return lambda source, count: Derived(source, lambda each: _Skipped(each, int(count)))


take_dataset_op = dataset_op("TakeDataset", "input_dataset: variant, count: int64[]", _make_take)
skip_dataset_op = dataset_op("SkipDataset", "input_dataset: variant, count: int64[]", _make_skip)


class _Shard(OneInput):
    def __init__(self, source: Iteration, shards: int, index: int) -> None:
        super().__init__(source)
        self.shards, self.index, self.place = shards, index, 0

    def next(self, step: Any) -> Element | None:
        while True:
            element = self.source.next(step)
            self.place += 1
            if element is None or (self.place - 1) % self.shards == self.index:
                return element

    def save(self) -> Any:
        return {**super().save(), "place": self.place}

    def restore(self, step: Any, state: Any) -> None:
        super().restore(step, state)
        self.place = state["place"]


def _make_shard(node: Node, env: Environment) -> Callable[..., Dataset]:
    def make(source: Dataset, num_shards: torch.Tensor, index: torch.Tensor) -> Dataset:
        shards, number = int(num_shards), int(index)
        if shards < 1:
            raise invalid(f"Number of shards must be greater than zero (currently num_shards = {shards}).")
        if not 0 <= number < shards:
            raise invalid(f"Index must be between 0 and {shards - 1} (currently index = {number}).")
        return Derived(source, lambda each: _Shard(each, shards, number))

    return make


shard_dataset_op = dataset_op(
    "ShardDataset", "input_dataset: variant, num_shards: int64[], index: int64[]", _make_shard,
    "require_non_empty: bool = false ; metadata: string = ''",
)  # fmt: skip


# ---- those for which something holds


class _Filtered(OneInput):
    def __init__(self, source: Iteration, predicate: FunctionCall, captured: Element) -> None:
        super().__init__(source)
        self.predicate, self.captured = predicate, captured

    def next(self, step: Any) -> Element | None:
        while True:
            element = self.source.next(step)
            if element is None:
                return None
            (holds,) = self.predicate(step, *element, *self.captured)
            if holds.dim():
                raise invalid(
                    "Filter predicate `f` must return a scalar bool, but returned the shape "
                    f"{list(holds.shape)}"
                )
            if holds:
                return element


def _make_filter(node: Node, env: Environment) -> Callable[..., Dataset]:
    predicate = env.function(node, node.attributes["predicate"])

    def make(source: Dataset, *captured: Any) -> Dataset:
        return DerivedByFunction(source, predicate, lambda each, call: _Filtered(each, call, captured))

    return make


filter_dataset_op = dataset_op(
    "FilterDataset", "input_dataset: variant, other_arguments: *Targuments", _make_filter,
    "predicate: func ; Targuments: list(type) >= 0", keeps=[1],
)  # fmt: skip


class _FilteredByLast(OneInput):
    def next(self, step: Any) -> Element | None:
        while True:
            element = self.source.next(step)
            if element is None or element[-1]:
                return None if element is None else element[:-1]


def _make_filter_by_last(node: Node, env: Environment) -> Callable[..., Dataset]:
    return lambda source: Derived(source, _FilteredByLast)


filter_by_last_component_dataset_op = dataset_op(
    "FilterByLastComponentDataset", "input_dataset: variant", _make_filter_by_last, output="output"
)


class _WithoutErrors(OneInput):
    def next(self, step: Any) -> Element | None:
        while True:
            try:
                return self.source.next(step)
            except errors.CancelledError:
                raise
            except Exception:  # of any kind: the element is left out
                step.check()


def _make_ignore_errors(node: Node, env: Environment) -> Callable[..., Dataset]:
    return lambda source: Derived(source, _WithoutErrors)


ignore_errors_dataset_op = dataset_op("IgnoreErrorsDataset", "input_dataset: variant", _make_ignore_errors)


# ---- several


class ConcatenatedDataset(Dataset):
    """The elements of one dataset, then those of another."""

    def __init__(self, first: Dataset, second: Dataset) -> None:
        self.parts = each_apart([first, second])

    def iterate(self) -> Iteration:
        """A pass over both."""
        return _Concatenated(self.parts)


class _Concatenated(Iteration):
    def __init__(self, parts: Sequence[Dataset]) -> None:
        self.parts, self.place = parts, 0
        self.source = parts[0].iterate()

    def next(self, step: Any) -> Element | None:
        while True:
            element = self.source.next(step)
            if element is not None or self.place + 1 == len(self.parts):
                return element
            self._go_to(self.place + 1)

    def _go_to(self, place: int) -> None:
        self.source.close()
        self.place, self.source = place, self.parts[place].iterate()

    def save(self) -> Any:
        drawn = [each.drawn() for each in self.parts]
        return {"place": self.place, "source": self.source.save(), "drawn": drawn}

    def restore(self, step: Any, state: Any) -> None:
        self._go_to(state["place"])
        for part, drawn in zip(self.parts, state["drawn"], strict=True):
            part.go_on_after(iter(drawn))
        self.source.restore(step, state["source"])

    def close(self) -> None:
        self.source.close()


def _make_concatenate(node: Node, env: Environment) -> Callable[..., Dataset]:
    return ConcatenatedDataset


concatenate_dataset_op = dataset_op(
    "ConcatenateDataset", "input_dataset: variant, another_dataset: variant", _make_concatenate
)


class ZippedDataset(Dataset):
    """Elements of several datasets side by side, until the first ends."""

    def __init__(self, parts: Sequence[Dataset]) -> None:
        self.parts = each_apart(parts)

    def iterate(self) -> Iteration:
        """A pass over all at once."""
        return _Zipped([part.iterate() for part in self.parts])


class _Zipped(Iteration):
    def __init__(self, sources: list[Iteration]) -> None:
        self.sources, self.has_ended = sources, False

    def next(self, step: Any) -> Element | None:
        if self.has_ended:
            return None
        elements: list[Any] = []
        for source in self.sources:
            element = source.next(step)
            if element is None:
                self.has_ended = True
                return None
            elements += element
        return tuple(elements)

    def save(self) -> Any:
        return {"ended": self.has_ended, "sources": [source.save() for source in self.sources]}

    def restore(self, step: Any, state: Any) -> None:
        self.has_ended = state["ended"]
        for source, each in zip(self.sources, state["sources"], strict=True):
            source.restore(step, each)

    def close(self) -> None:
        for source in self.sources:
            source.close()


def _make_zip(node: Node, env: Environment) -> Callable[..., Dataset]:
    return lambda *parts: ZippedDataset(parts)


zip_dataset_op = dataset_op("ZipDataset", "input_datasets: N*variant", _make_zip, "N: int >= 1")
