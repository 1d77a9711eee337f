"""Datasets of what a function of the graph makes of each element: other elements, or datasets of them.

An OutOfRangeError of the function ends the dataset, as in TensorFlow: that is how a generator ends.
"""

from __future__ import annotations

from collections.abc import Callable
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
    joined_parts,
    one_row,
)
from flowstone.ops.datasets.parts import Making, Part, PartsDataset
from flowstone.ops.datasets.selection import DerivedByFunction

__all__: list[str] = []

FUNCTION = "f: func ; Targuments: list(type) >= 0"
INPUTS = "input_dataset: variant, other_arguments: *Targuments"
AUTOTUNE = -1


class Mapped(OneInput):
    """The results of a function of each element."""

    def __init__(self, source: Iteration, function: FunctionCall, captured: Element) -> None:
        super().__init__(source)
        self.function, self.captured = function, captured

    def next(self, step: Any) -> Element | None:
        element = self.source.next(step)
        if element is None:
            return None
        try:
            return tuple(self.function(step, *element, *self.captured))
        except errors.OutOfRangeError:
            return None


def _make_map(node: Node, env: Environment) -> Callable[..., Dataset]:
    function = env.function(node, node.attributes["f"])

    def make(source: Dataset, *captured: Any) -> Dataset:
        return DerivedByFunction(source, function, lambda each, call: Mapped(each, call, captured))

    return make


_MAP_OPTIONS = (
    f"{FUNCTION} ; use_inter_op_parallelism: bool = true ; preserve_cardinality: bool = false ; "
    "force_synchronous: bool = false"
)
map_dataset_op = dataset_op("MapDataset", INPUTS, _make_map, _MAP_OPTIONS, keeps=[1])


# ---- datasets of each element


class _Flattened(OneInput):
    """The elements of the datasets that a function makes of each element, one after the other."""

    def __init__(self, source: Iteration, parts: PartsDataset) -> None:
        super().__init__(source)
        self.parts, self.opened = parts, 0
        self.part: Part | None = None

    def next(self, step: Any) -> Element | None:
        while True:
            if self.part is not None:
                found = self.part.rest.next(step)
                if found is not None:
                    return found
                self._end_part()
            element = self.source.next(step)
            if element is None:
                return None
            self.part = self.parts.part(step, self.opened, element)
            self.opened += 1

    def several(self, step: Any, count: int) -> Columns | None:
        return joined_parts(lambda left: self._rest_of_part(step, left), count)

    def _rest_of_part(self, step: Any, most: int) -> Columns | None:
        """The next elements that are of one dataset."""
        found = None if self.part is None else self.part.rest.several(step, most)
        return one_row(self.next(step)) if found is None else found

    def save(self) -> Any:
        part = None if self.part is None else self.part.save()
        return {**super().save(), "opened": self.opened, "part": part, "drawn": self.parts.save_places()}

    def restore(self, step: Any, state: Any) -> None:
        super().restore(step, state)
        self._end_part()
        self.parts.restore_places(state["drawn"])
        self.opened = state["opened"]
        if state["part"] is not None:
            self.part = self.parts.restored(step, state["part"])

    def close(self) -> None:
        super().close()
        self._end_part()

    def _end_part(self) -> None:
        if self.part is not None:
            self.part.close()
            self.part = None


def _make_flat_map(node: Node, env: Environment) -> Callable[..., Dataset]:
    function = env.function(node, node.attributes["f"])

    def make(source: Dataset, *captured: Any) -> Dataset:
        return PartsDataset(source, Making(function, captured), _Flattened)

    return make


flat_map_dataset_op = dataset_op("FlatMapDataset", INPUTS, _make_flat_map, FUNCTION, keeps=[1])


class _Interleaved(OneInput):
    """`block` elements of each of `cycle` datasets in turn; where one ends, the next element's takes its
    place.

    `by_turn`: whether a part's place is its turn in the cycle; else it is its number in the pass.
    """

    def __init__(
        self, source: Iteration, dataset: PartsDataset, cycle: int, block: int, by_turn: bool
    ) -> None:
        super().__init__(source)
        self.dataset, self.block, self.by_turn = dataset, block, by_turn
        self.parts: list[Part | None] = [None] * cycle
        self.place = self.in_block = self.opened = 0
        self.has_ended = False

    def next(self, step: Any) -> Element | None:
        empty = 0  # places without a dataset, one after the other
        while empty < len(self.parts):
            part = self.parts[self.place]
            if part is None and not self.has_ended:
                part = self._open(step)
            if part is None:
                empty += 1
                self._turn()
                continue
            empty = 0
            found = part.rest.next(step)
            if found is None:
                part.close()
                self.parts[self.place] = None
                self._turn()
                continue
            self.in_block += 1
            if self.in_block == self.block:
                self._turn()
            return found
        return None

    def several(self, step: Any, count: int) -> Columns | None:
        if self.block == 1:
            return super().several(step, count)
        return joined_parts(lambda left: self._rest_of_block(step, left), count)

    def _rest_of_block(self, step: Any, most: int) -> Columns | None:
        """The next elements that are of one block."""
        part = self.parts[self.place]
        if part is None:
            return one_row(self.next(step))
        found = part.rest.several(step, min(most, self.block - self.in_block))
        if found is None:
            return one_row(self.next(step))
        self.in_block += found[0]
        if self.in_block == self.block:
            self._turn()
        return found

    def _open(self, step: Any) -> Part | None:
        element = self.source.next(step)
        if element is None:
            self.has_ended = True
            return None
        part = self.dataset.part(step, self.place if self.by_turn else self.opened, element)
        self.parts[self.place] = part
        self.opened += 1
        return part

    def _turn(self) -> None:
        self.place, self.in_block = (self.place + 1) % len(self.parts), 0

    def save(self) -> Any:
        parts = [None if part is None else part.save() for part in self.parts]
        drawn = self.dataset.save_places()
        return {**super().save(), "parts": parts, "place": self.place, "in_block": self.in_block,
                "opened": self.opened, "ended": self.has_ended, "drawn": drawn}  # fmt: skip

    def restore(self, step: Any, state: Any) -> None:
        super().restore(step, state)
        self._end_parts()
        self.dataset.restore_places(state["drawn"])
        self.place, self.in_block, self.opened = state["place"], state["in_block"], state["opened"]
        self.has_ended = state["ended"]
        for i, saved in enumerate(state["parts"]):
            if saved is not None:
                self.parts[i] = self.dataset.restored(step, saved)

    def close(self) -> None:
        super().close()
        self._end_parts()

    def _end_parts(self) -> None:
        for i, part in enumerate(self.parts):
            if part is not None:
                part.close()
                self.parts[i] = None


def _make_interleave(node: Node, env: Environment) -> Callable[..., Dataset]:
    function = env.function(node, node.attributes["f"])
    count = len(node.attributes["Targuments"])
    by_turn = node.type == "InterleaveDataset"

    def make(source: Dataset, *rest: Any) -> Dataset:
        captured = rest[:count]
        cycle, block = int(rest[count]), int(rest[count + 1])
        if cycle == AUTOTUNE:
            cycle = max(1, torch.get_num_threads())
        if cycle < 1:
            raise invalid("cycle_length must be greater than zero.")
        if block < 1:
            raise invalid("block_length must be greater than zero.")
        if node.type == "ParallelInterleaveDatasetV2":
            _check_calls(int(rest[count + 2]), cycle)
        return PartsDataset(
            source,
            Making(function, captured),
            lambda each, parts: _Interleaved(each, parts, cycle, block, by_turn),
        )

    return make


def _check_calls(at_once: int, cycle: int) -> None:
    if at_once != AUTOTUNE and at_once < 1:
        raise invalid("num_parallel_calls must be greater than zero.")
    if at_once > cycle:
        raise invalid("num_parallel_calls must less than or equal to cycle_length.")


_CYCLE = "cycle_length: int64[], block_length: int64[]"
interleave_dataset_op = dataset_op(
    "InterleaveDataset", f"{INPUTS}, {_CYCLE}", _make_interleave, FUNCTION, keeps=[1]
)
sloppy_interleave_dataset_op = dataset_op(
    "SloppyInterleaveDataset", f"{INPUTS}, {_CYCLE}", _make_interleave, FUNCTION, keeps=[1]
)


parallel_interleave_dataset_op = dataset_op(
    "ParallelInterleaveDataset",
    f"{INPUTS}, {_CYCLE}, sloppy: bool[], buffer_output_elements: int64[], prefetch_input_elements: int64[]",
    _make_interleave, FUNCTION, keeps=[1],
)  # fmt: skip
parallel_interleave_dataset_v2_op = dataset_op(
    "ParallelInterleaveDatasetV2", f"{INPUTS}, {_CYCLE}, num_parallel_calls: int64[]", _make_interleave,
    f"{FUNCTION} ; sloppy: bool = false ; metadata: string = ''", keeps=[1],
)  # fmt: skip


# ---- with a state


class _Scanned(OneInput):
    """What a function of the state and each element gives besides the next state."""

    def __init__(self, source: Iteration, function: FunctionCall, state: Element, captured: Element) -> None:
        super().__init__(source)
        self.function, self.state, self.captured = function, state, captured

    def next(self, step: Any) -> Element | None:
        element = self.source.next(step)
        if element is None:
            return None
        try:
            results = tuple(self.function(step, *self.state, *element, *self.captured))
        except errors.OutOfRangeError:
            return None
        self.state = results[: len(self.state)]
        return results[len(self.state) :]

    def save(self) -> Any:
        return {**super().save(), "state": self.state}

    def restore(self, step: Any, state: Any) -> None:
        super().restore(step, state)
        self.state = state["state"]


def _make_scan(node: Node, env: Environment) -> Callable[..., Dataset]:
    function = env.function(node, node.attributes["f"])
    count = len(node.attributes["Tstate"])

    def make(source: Dataset, *rest: Any) -> Dataset:
        return DerivedByFunction(
            source, function, lambda each, call: _Scanned(each, call, rest[:count], rest[count:])
        )

    return make


scan_dataset_op = dataset_op(
    "ScanDataset", "input_dataset: variant, initial_state: *Tstate, other_arguments: *Targuments",
    _make_scan,
    "f: func ; Tstate: list(type) >= 1 ; Targuments: list(type) >= 0 ; preserve_cardinality: bool = false ; "
    "use_default_device: bool = true", keeps=[1, 2],
)  # fmt: skip
