"""Datasets that choose: whose element is next, which elements are new, while what holds; and windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import Environment, FunctionCall
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.iteration import (
    Dataset,
    Element,
    Iteration,
    OneInput,
    dataset_op,
    each_apart,
    stacked,
)
from flowstone.ops.datasets.selection import Derived, DerivedByFunction

__all__: list[str] = []


# ---- whose element is next


class DirectedDataset(Dataset):
    """The next element of the dataset that each number of the selector names."""

    def __init__(self, selector: Dataset, parts: Sequence[Dataset]) -> None:
        self.selector, self.parts = selector, each_apart(parts)

    def iterate(self) -> Iteration:
        """A pass over the selector and all parts at once."""
        return _Directed(self.selector.iterate(), [part.iterate() for part in self.parts])


class _Directed(Iteration):
    def __init__(self, selector: Iteration, sources: list[Iteration]) -> None:
        self.selector, self.sources = selector, sources
        self.going = [True] * len(sources)

    def next(self, step: Any) -> Element | None:
        while any(self.going):
            choice = self.selector.next(step)
            if choice is None:
                return None
            place = int(choice[0])
            if not 0 <= place < len(self.sources):
                raise invalid(f"Selector index out of range: {place} >= {len(self.sources)}")
            if not self.going[place]:
                step.check()
                continue
            element = self.sources[place].next(step)
            if element is not None:
                return element
            self.going[place] = False
        return None

    def save(self) -> Any:
        sources = [source.save() for source in self.sources]
        return {"selector": self.selector.save(), "sources": sources, "going": list(self.going)}

    def restore(self, step: Any, state: Any) -> None:
        self.selector.restore(step, state["selector"])
        self.going = list(state["going"])
        for source, each in zip(self.sources, state["sources"], strict=True):
            source.restore(step, each)

    def close(self) -> None:
        self.selector.close()
        for source in self.sources:
            source.close()


def _make_directed(node: Node, env: Environment) -> Callable[..., Dataset]:
    return lambda selector, *parts: DirectedDataset(selector, parts)


directed_interleave_dataset_op = dataset_op(
    "DirectedInterleaveDataset",
    "selector_input_dataset: variant, data_input_datasets: N*variant",
    _make_directed,
    "N: int >= 1",
)


# ---- each once


class _Unique(OneInput):
    def __init__(self, source: Iteration) -> None:
        super().__init__(source)
        self.seen: dict[Any, None] = {}

    def next(self, step: Any) -> Element | None:
        while True:
            element = self.source.next(step)
            if element is None:
                return None
            key = tuple(_key(value) for value in element)
            if key not in self.seen:
                self.seen[key] = None
                return element
            step.check()

    def save(self) -> Any:
        return {**super().save(), "seen": list(self.seen)}

    def restore(self, step: Any, state: Any) -> None:
        super().restore(step, state)
        self.seen = dict.fromkeys(state["seen"])


def _key(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), tuple(value.reshape(-1).tolist())
    array = np.asarray(value, object)
    return array.shape, tuple(array.reshape(-1).tolist())


def _make_unique(node: Node, env: Environment) -> Callable[..., Dataset]:
    types = node.attributes["output_types"]

    def make(source: Dataset) -> Dataset:
        if len(types) != 1 or types[0] not in _COMPARED:
            raise invalid("UniqueDataset only supports inputs with a component of int32, int64 or string.")
        return Derived(source, _Unique)

    return make


_COMPARED = (dtypes.int32, dtypes.int64, dtypes.string)


unique_dataset_op = dataset_op("UniqueDataset", "input_dataset: variant", _make_unique)


# ---- while something holds


class _TakenWhile(OneInput):
    def __init__(self, source: Iteration, predicate: FunctionCall, captured: Element) -> None:
        super().__init__(source)
        self.predicate, self.captured, self.has_ended = predicate, captured, False

    def next(self, step: Any) -> Element | None:
        element = None if self.has_ended else self.source.next(step)
        if element is not None:
            (holds,) = self.predicate(step, *element, *self.captured)
            if holds:
                return element
        self.has_ended = True
        return None

    def save(self) -> Any:
        return {**super().save(), "ended": self.has_ended}

    def restore(self, step: Any, state: Any) -> None:
        super().restore(step, state)
        self.has_ended = state["ended"]


def _make_take_while(node: Node, env: Environment) -> Callable[..., Dataset]:
    predicate = env.function(node, node.attributes["predicate"])

    def make(source: Dataset, *captured: Any) -> Dataset:
        return DerivedByFunction(source, predicate, lambda each, call: _TakenWhile(each, call, captured))

    return make


take_while_dataset_op = dataset_op(
    "TakeWhileDataset", "input_dataset: variant, other_arguments: *Targuments", _make_take_while,
    "predicate: func ; Targuments: list(type) >= 0", keeps=[1],
)  # fmt: skip


# ---- windows


class _Windows(OneInput):
    def __init__(self, source: Iteration, size: int, shift: int, stride: int) -> None:
        super().__init__(source)
        self.size, self.shift, self.stride = size, shift, stride
        self.held: deque[Element] = deque()
        self.skips, self.has_ended = 0, False

    def next(self, step: Any) -> Element | None:
        span = (self.size - 1) * self.stride + 1
        while not self.has_ended and (self.skips or len(self.held) < span):
            element = self.source.next(step)
            if element is None:
                self.has_ended = True
            elif self.skips:
                self.skips -= 1
            else:
                self.held.append(element)
        if self.skips or len(self.held) < span:
            return None
        window = list(self.held)[: span : self.stride]
        dropped = min(self.shift, len(self.held))
        for _ in range(dropped):
            self.held.popleft()
        self.skips = self.shift - dropped
        return tuple(stacked(column, i) for i, column in enumerate(zip(*window)))

    def save(self) -> Any:
        state = {"held": tuple(self.held), "skips": self.skips, "ended": self.has_ended}
        return {**super().save(), **state}

    def restore(self, step: Any, state: Any) -> None:
        super().restore(step, state)
        self.held, self.skips, self.has_ended = deque(state["held"]), state["skips"], state["ended"]


def _make_windows(node: Node, env: Environment) -> Callable[..., Dataset]:
    def make(source: Dataset, *numbers: torch.Tensor) -> Dataset:
        size, shift, stride = (int(number) for number in numbers)
        for name, number in (("size", size), ("shift", shift), ("stride", stride)):
            if number <= 0:
                raise invalid(f"Window {name} must be greater than zero.")
        return Derived(source, lambda each: _Windows(each, size, shift, stride))

    return make


sliding_window_dataset_op = dataset_op(
    "SlidingWindowDataset",
    "input_dataset: variant, window_size: int64[], window_shift: int64[], window_stride: int64[]",
    _make_windows,
)
