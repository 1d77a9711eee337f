"""Datasets in random order, and of random numbers: TensorFlow's own for the same seeds.

A pass holds up to `size` elements; the next one is drawn among these, and the first of them takes its place.
Where the input is slices of tensors, it holds their numbers instead of the elements.

TensorFlow 1.15 joins a shuffle and the repetition right after it, unless passes shall not differ: the passes
of a `ShuffledDataset.repeated` draw from one stream, that of the seeds themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch

from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.handles import deleting_op, resource_op
from flowstone.ops.datasets.iteration import Columns, Dataset, Element, Iteration, dataset_op
from flowstone.ops.datasets.rows import Rows
from flowstone.ops.datasets.selection import RepeatDataset
from flowstone.ops.randomness.op_seeds import first_state, seeds_of
from flowstone.ops.randomness.random_words import RandomWords

__all__: list[str] = []

SeedSource: TypeAlias = "PassSeeds | None"  # None: the dataset's own

_ENDLESS = 1 << 62  # a size for as many as there are
_UNKNOWN_CARDINALITY = -2  # as a size, which TensorFlow 2 takes: as many as there are


class PassSeeds:
    """The seeds of each pass: drawn from the stream of `seeds` if the passes `differ`, else these."""

    def __init__(self, seeds: tuple[int, int], differ: bool) -> None:
        self._seeds, self._differ = seeds, differ
        self._words, self._lock = RandomWords(first_state(*seeds)), threading.Lock()

    def draw(self) -> tuple[int, int]:
        """The seeds of the next pass."""
        if not self._differ:
            return self._seeds
        with self._lock:
            return self._words.next(), self._words.next()

    def words(self, seeds: tuple[int, int]) -> RandomWords:
        """What a pass with these seeds draws from."""
        return RandomWords(first_state(*seeds))

    def repeated(self) -> PassSeeds:
        """Where the passes of a repetition draw from."""
        return OneStream(self._seeds) if self._differ else self

    def apart(self) -> PassSeeds:
        """Equal ones, from the first pass on."""
        return type(self)(self._seeds, self._differ)

    def save(self) -> int:
        """How much was drawn."""
        return self._words.drawn

    def restore(self, drawn: int) -> None:
        """Makes the next pass the one after so much was drawn."""
        with self._lock:
            self._words.go_to(drawn)


class OneStream(PassSeeds):
    """One stream, from which all passes draw, one after the other."""

    def __init__(self, seeds: tuple[int, int], differ: bool = False) -> None:
        super().__init__(seeds, differ=False)

    def words(self, seeds: tuple[int, int]) -> RandomWords:
        """The stream."""
        return self._words


class SharedSeeds(PassSeeds):
    """A resource: all passes of all datasets that name it draw from it."""

    def apart(self) -> PassSeeds:
        """Itself."""
        return self


class _Shuffled(Iteration):
    """A pass over `source`: elements, or numbers of rows if `rows` are given."""

    def __init__(self, source: Iteration | None, rows: Rows | None, size: int, passes: PassSeeds) -> None:
        self.source, self.rows, self.size = source, rows, size
        self.passes, self.seeds = passes, passes.draw()
        self.words = passes.words(self.seeds)
        self.held: list[Any] = []  # a ring of `size` places
        self.first = self.count = 0  # of the elements that are held
        self.read, self.has_ended = 0, False

    def _fill(self, step: Any) -> None:
        rows, source = self.rows, self.source
        while self.count < self.size and not self.has_ended:
            if rows is not None:
                element: Any = self.read if rows.total is None or self.read < rows.total else None
            else:
                element = source.next(step)  # type: ignore[union-attr]
            if element is None:
                self.has_ended = True
                return
            self.read += 1
            place = self.first + self.count
            if place < self.size and place == len(self.held):
                self.held.append(element)
            else:
                self.held[place % self.size] = element
            self.count += 1

    def _draw(self, step: Any) -> Any:
        """The next element or number; None at the end."""
        if self.count < self.size and not self.has_ended:
            self._fill(step)
        if not self.count:
            return None
        held, first = self.held, self.first
        place = (first + self.words.next() % self.count) % self.size
        found = held[place]
        held[place] = held[first]
        held[first] = None
        self.first, self.count = (first + 1) % self.size, self.count - 1
        return found

    def next(self, step: Any) -> Element | None:
        found = self._draw(step)
        if self.rows is None or found is None:
            return found  # type: ignore[no-any-return]
        return self.rows.element(found)

    def several(self, step: Any, count: int) -> Columns | None:
        if self.rows is None:
            return super().several(step, count)
        numbers: list[int] = []
        while len(numbers) < count and (number := self._draw(step)) is not None:
            numbers.append(number)
        return (len(numbers), self.rows.batch(numbers)) if numbers else None

    def save(self) -> Any:
        source = None if self.source is None else self.source.save()
        return {"source": source, "held": list(self.held), "first": self.first, "count": self.count,
                "read": self.read, "ended": self.has_ended, "drawn": self.words.drawn,
                "seeds": self.seeds, "passes": self.passes.save()}  # fmt: skip

    def restore(self, step: Any, state: Any) -> None:
        if self.source is not None:
            self.source.restore(step, state["source"])
        self.held, self.first, self.count = list(state["held"]), state["first"], state["count"]
        self.read, self.has_ended = state["read"], state["ended"]
        self.seeds = state["seeds"]
        self.passes.restore(state["passes"])
        self.words = self.passes.words(self.seeds)
        self.words.go_to(state["drawn"])

    def close(self) -> None:
        if self.source is not None:
            self.source.close()


class ShuffledDataset(Dataset):
    """The elements of `source` in random order, in each pass by the seeds that `passes` draws for it.

    `joins`: whether a repetition is joined with it.
    """

    def __init__(self, source: Dataset, size: int, passes: PassSeeds, joins: bool = False) -> None:
        self.source, self.size, self.passes, self.joins = source, size, passes, joins

    def iterate(self) -> Iteration:
        """A pass over all elements."""
        rows = self.source.rows()
        if rows is not None and (rows.total is not None or self.size < _ENDLESS):
            return _Shuffled(None, rows, self.size, self.passes)
        return _Shuffled(self.source.iterate(), None, self.size, self.passes)

    def repeated(self) -> Dataset:
        """The same, of which all passes draw from one stream, if a repetition is joined with it."""
        return ShuffledDataset(self.source, self.size, self.passes.repeated()) if self.joins else self

    def drawn(self) -> list[Any]:
        """With its own seeds first; None for seeds that others share."""
        own = None if isinstance(self.passes, SharedSeeds) else self.passes.save()
        return [own, *super().drawn()]

    def go_on_after(self, drawn: Iterator[Any]) -> None:
        """With its own seeds first."""
        own = next(drawn)
        if own is not None:
            self.passes.restore(own)
        super().go_on_after(drawn)


def _buffer_size(number: Any) -> int:
    size = int(number)
    if size < 1 and size != _UNKNOWN_CARDINALITY:
        raise invalid("buffer_size must be greater than zero.")
    return size if size > 0 else _ENDLESS


def _make_shuffle(node: Node, env: Environment) -> Callable[..., Dataset]:
    differ = node.attributes["reshuffle_each_iteration"]

    def make(source: Dataset, buffer_size: Any, seed: Any, seed2: Any, seeds: SeedSource = None) -> Dataset:
        passes = seeds or PassSeeds(seeds_of((seed, seed2)), differ)
        joins = node.type == "ShuffleDataset" and bool(seed or seed2)  # what later versions make stays alone
        return ShuffledDataset(source, _buffer_size(buffer_size), passes, joins)

    return make


def _make_shuffle_v2(node: Node, env: Environment) -> Callable[..., Dataset]:
    def make(source: Dataset, buffer_size: Any, seeds: SeedSource) -> Dataset:
        passes = seeds or PassSeeds(seeds_of((0, 0)), True)
        return ShuffledDataset(source, _buffer_size(buffer_size), passes)

    return make


def _make_shuffle_and_repeat(node: Node, env: Environment) -> Callable[..., Dataset]:
    differ = node.attributes["reshuffle_each_iteration"]

    def make(source: Dataset, buffer_size: Any, seed: Any, seed2: Any, count: Any) -> Dataset:
        passes = PassSeeds(seeds_of((seed, seed2)), differ)
        shuffled = ShuffledDataset(source, _buffer_size(buffer_size), passes, bool(seed or seed2))
        return RepeatDataset(shuffled, int(count), joins=True)

    return make


_SHUFFLE = "input_dataset: variant, buffer_size: int64[]"
_DIFFERS = "reshuffle_each_iteration: bool = true ; metadata: string = ''"
shuffle_dataset_op = dataset_op(
    "ShuffleDataset", f"{_SHUFFLE}, seed: int64[], seed2: int64[]", _make_shuffle, _DIFFERS
)
shuffle_dataset_v2_op = dataset_op(
    "ShuffleDatasetV2", f"{_SHUFFLE}, seed_generator: resource", _make_shuffle_v2, "metadata: string = ''",
    stateful=True, keeps=[2],
)  # fmt: skip
shuffle_dataset_v3_op = dataset_op(
    "ShuffleDatasetV3", f"{_SHUFFLE}, seed: int64[], seed2: int64[], seed_generator: resource", _make_shuffle,
    _DIFFERS, stateful=True, keeps=[4],
)  # fmt: skip


shuffle_and_repeat_dataset_op = dataset_op(
    "ShuffleAndRepeatDataset", f"{_SHUFFLE}, seed: int64[], seed2: int64[], count: int64[]",
    _make_shuffle_and_repeat, _DIFFERS,
)  # fmt: skip


def _new_source(seed: Any, seed2: Any, reshuffles: Any = True) -> SeedSource:
    return SharedSeeds(seeds_of((seed, seed2)), bool(reshuffles))


resource_op("DummySeedGenerator", lambda: None)  # the dataset's own seeds are meant
resource_op("AnonymousRandomSeedGenerator", _new_source, "seed: int64[], seed2: int64[]", has_deleter=True)
resource_op(
    "AnonymousSeedGenerator", _new_source, "seed: int64[], seed2: int64[], reshuffle: bool", has_deleter=True
)
deleting_op("DeleteRandomSeedGenerator")
deleting_op("DeleteSeedGenerator")


# ---- random numbers


class _RandomNumbers(Iteration):
    def __init__(self, seeds: tuple[int, int]) -> None:
        self.words = RandomWords(first_state(*seeds))

    def next(self, step: Any) -> Element | None:
        return (torch.tensor(self.words.next(), dtype=torch.int64),)

    def save(self) -> Any:
        return self.words.drawn

    def restore(self, step: Any, state: Any) -> None:
        self.words.go_to(state)


class RandomDataset(Dataset):
    """Random numbers of 32 bits, without end."""

    def __init__(self, seeds: tuple[int, int]) -> None:
        self.seeds = seeds

    def iterate(self) -> Iteration:
        """A pass over the numbers, which are the same in each."""
        return _RandomNumbers(self.seeds)


def _make_random(node: Node, env: Environment) -> Callable[..., Dataset]:
    return lambda seed, seed2: RandomDataset(seeds_of((seed, seed2)))


random_dataset_op = dataset_op(
    "RandomDataset", "seed: int64[], seed2: int64[]", _make_random, "metadata: string = ''", stateful=True
)
