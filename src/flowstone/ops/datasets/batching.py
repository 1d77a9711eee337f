"""Datasets of batches, of windows, and of what batches are made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import Environment, FunctionCall
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.iteration import (
    ELEMENTS,
    Dataset,
    Element,
    Iteration,
    OneInput,
    dataset_op,
    shape_of,
    stacked,
)
from flowstone.ops.datasets.parallel_mapping import MappedAtOnce, calls_at_once
from flowstone.ops.datasets.rows import slice_of
from flowstone.ops.datasets.selection import Derived, DerivedByFunction

__all__: list[str] = []


def batch_size_of(size: Any) -> int:
    """A size of batches. InvalidArgumentError unless it is positive."""
    size = int(size)
    if size < 1:
        raise invalid("Batch size must be greater than zero.")
    return int(size)


class _Batched(OneInput):
    def __init__(self, source: Iteration, size: int, drops: bool) -> None:
        super().__init__(source)
        self.size, self.drops = size, drops

    def next(self, step: Any) -> Element | None:
        found = self.source.several(step, self.size)
        if found is None or (self.drops and found[0] < self.size):
            return None
        return tuple(found[1])


def _make_batch(node: Node, env: Environment) -> Callable[..., Dataset]:
    def make(source: Dataset, batch_size: Any, drop_remainder: Any = False) -> Dataset:
        size, drops = batch_size_of(batch_size), bool(drop_remainder)
        return Derived(source, lambda each: _Batched(each, size, drops))

    return make


batch_dataset_op = dataset_op("BatchDataset", "input_dataset: variant, batch_size: int64[]", _make_batch)
batch_dataset_v2_op = dataset_op(
    "BatchDatasetV2", "input_dataset: variant, batch_size: int64[], drop_remainder: bool[]", _make_batch,
    "parallel_copy: bool = false ; metadata: string = ''",
)  # fmt: skip


# ---- padded


class _PaddedBatched(OneInput):
    def __init__(
        self, source: Iteration, size: int, shapes: Sequence[Sequence[int]], padding: Element, drops: bool
    ) -> None:
        super().__init__(source)
        self.size, self.shapes, self.padding, self.drops = size, shapes, padding, drops

    def next(self, step: Any) -> Element | None:
        elements: list[Element] = []
        while len(elements) < self.size:
            element = self.source.next(step)
            if element is None:
                break
            elements.append(element)
        if not elements or (self.drops and len(elements) < self.size):
            return None
        return tuple(
            [
                _padded(i, column, shape, value)
                for i, (column, shape, value) in enumerate(zip(zip(*elements), self.shapes, self.padding))
            ]
        )


def _padded(component: int, column: Sequence[Any], shape: Sequence[int], padding: Any) -> Any:
    """The values in a batch, each padded at its ends to `shape`, or where that is negative to the longest."""
    first = shape_of(column[0])
    for value in column:
        if len(shape_of(value)) != len(shape):
            raise invalid(
                f"All elements in a batch must have the same rank as the padded shape for component "
                f"{component}: expected rank {len(shape)} but got element with rank {len(shape_of(value))}"
            )
    longest = [max(sizes) for sizes in zip(*[shape_of(value) for value in column])]
    target = [n if wanted < 0 else wanted for n, wanted in zip(longest, shape)]
    if any(n > wanted for n, wanted in zip(longest, target)):
        raise errors.DataLossError(
            None,
            None,
            f"Attempted to pad to a smaller size than the input element: component {component} has elements "
            f"of {longest}, and the padded shape is {list(shape)}.",
        )
    if first == tuple(target) and all(shape_of(value) == first for value in column):
        return stacked(column, component)
    if isinstance(column[0], torch.Tensor):
        batch: Any = torch.full((len(column), *target), padding.item(), dtype=column[0].dtype)
    else:
        batch = np.full((len(column), *target), padding.item(), object)
    for row, value in zip(batch, column):
        row[tuple([slice(n) for n in shape_of(value)])] = value
    return batch


def _make_padded_batch(node: Node, env: Environment) -> Callable[..., Dataset]:
    count, drops_too = node.attributes["N"], node.type == "PaddedBatchDatasetV2"

    def make(source: Dataset, batch_size: Any, *rest: Any) -> Dataset:
        size, drops = batch_size_of(batch_size), drops_too and bool(rest[-1])
        shapes = [each.tolist() for each in rest[:count]]
        padding = rest[count : 2 * count]
        for i, value in enumerate(padding):
            if shape_of(value):
                raise invalid(f"All padding values must be scalars; but at component {i} they are not.")
        return Derived(source, lambda each: _PaddedBatched(each, size, shapes, padding, drops))

    return make


_PADDED = "padded_shapes: N*int64, padding_values: *Toutput_types"
_PADDED_TYPES = "Toutput_types: list(type) >= 1 ; N: int >= 1"
padded_batch_dataset_op = dataset_op(
    "PaddedBatchDataset", f"input_dataset: variant, batch_size: int64[], {_PADDED}", _make_padded_batch,
    _PADDED_TYPES, "output_shapes: list(shape) >= 1", keeps=[3],
)  # fmt: skip
padded_batch_dataset_v2_op = dataset_op(
    "PaddedBatchDatasetV2",
    f"input_dataset: variant, batch_size: int64[], {_PADDED}, drop_remainder: bool[]", _make_padded_batch,
    f"parallel_copy: bool = false ; {_PADDED_TYPES} ; metadata: string = ''",
    "output_shapes: list(shape) >= 1", keeps=[3],
)  # fmt: skip


# ---- of what a function makes


class _MappedBatches(_Batched):
    """Batches of results, of which one is lost as a whole with an error of one of its elements."""

    def next(self, step: Any) -> Element | None:
        elements: list[Element] = []
        failure: errors.OpError | None = None
        for _ in range(self.size):
            try:
                element = self.source.next(step)
            except errors.OpError as error:
                step.check()
                failure = failure or error
                continue
            if element is None:
                break
            elements.append(element)
        if failure is not None:
            raise failure
        if not elements or (self.drops and len(elements) < self.size):
            return None
        return tuple(stacked(column, i) for i, column in enumerate(zip(*elements)))


def _make_map_and_batch(node: Node, env: Environment) -> Callable[..., Dataset]:
    function, new_step = env.function(node, node.attributes["f"]), env.new_step
    count, counts_batches = len(node.attributes["Targuments"]), node.type == "MapAndBatchDataset"

    def make(source: Dataset, *rest: Any) -> Dataset:
        captured, size = rest[:count], batch_size_of(rest[count])
        if counts_batches:
            calls, drops = calls_at_once(rest[count + 1], "num_parallel_batches") * size, False
        else:
            calls, drops = calls_at_once(rest[count + 1]), bool(rest[count + 2])

        def passes(each: Iteration, call: FunctionCall) -> Iteration:
            return _MappedBatches(MappedAtOnce(each, call, captured, calls, new_step), size, drops)

        return DerivedByFunction(source, function, passes)

    return make


map_and_batch_dataset_op = dataset_op(
    "MapAndBatchDataset",
    "input_dataset: variant, other_arguments: *Targuments, "
    "batch_size: int64[], num_parallel_batches: int64[]",
    _make_map_and_batch, "f: func ; Targuments: list(type) >= 0", keeps=[1],
)  # fmt: skip
later_map_and_batch_dataset_op = dataset_op(
    "ExperimentalMapAndBatchDataset",
    "input_dataset: variant, other_arguments: *Targuments, "
    "batch_size: int64[], num_parallel_calls: int64[], drop_remainder: bool[]",
    _make_map_and_batch,
    "f: func ; Targuments: list(type) >= 0", f"{ELEMENTS} ; preserve_cardinality: bool = false", keeps=[1],
)  # fmt: skip


# ---- batches of sparse tensors


class _SparseBatched(OneInput):
    def __init__(self, source: Iteration, size: int, row_shape: Sequence[int]) -> None:
        super().__init__(source)
        self.size, self.row_shape = size, row_shape

    def next(self, step: Any) -> Element | None:
        elements: list[Any] = []
        while len(elements) < self.size:
            element = self.source.next(step)
            if element is None:
                break
            self._check(list(shape_of(element[0])))  # before the next is taken, which begins a batch then
            elements.append(element[0])
        if not elements:
            return None
        longest = [max(sizes) for sizes in zip(*map(shape_of, elements))]
        row_shape = [n if wanted < 0 else wanted for n, wanted in zip(longest, self.row_shape)]
        return (_sparse_batch(elements, row_shape),)

    def _check(self, shape: list[int]) -> None:
        wanted = list(self.row_shape)
        if len(shape) != len(wanted):
            raise invalid(
                f"Input element had shape ({shape}) that is incompatible with the row shape ({wanted})."
            )
        if any(n > most >= 0 for n, most in zip(shape, wanted)):
            raise errors.DataLossError(
                None, None, f"Input element had shape ({shape}) that is larger than the row shape ({wanted})."
            )


def _sparse_batch(elements: Sequence[Any], row_shape: Sequence[int]) -> Any:
    """The serialised sparse tensor, a vector of its indices, values and shape, of dense rows."""
    indices = []
    for i, value in enumerate(elements):
        places = torch.cartesian_prod(*[torch.arange(n) for n in shape_of(value)])
        places = places.reshape(-1, len(row_shape))
        indices.append(torch.cat([torch.full((len(places), 1), i), places], 1))
    if isinstance(elements[0], torch.Tensor):
        values: Any = torch.cat([value.reshape(-1) for value in elements])
    else:
        values = np.concatenate([value.reshape(-1) for value in elements])
    boxes = np.empty(3, object)
    boxes[:] = [torch.cat(indices), values, torch.tensor([len(elements), *row_shape])]
    return boxes


def _make_sparse_batch(node: Node, env: Environment) -> Callable[..., Dataset]:
    def make(source: Dataset, batch_size: Any, row_shape: torch.Tensor) -> Dataset:
        size, shape = batch_size_of(batch_size), row_shape.tolist()
        return Derived(source, lambda each: _SparseBatched(each, size, shape))

    return make


dense_to_sparse_batch_dataset_op = dataset_op(
    "DenseToSparseBatchDataset", "input_dataset: variant, batch_size: int64[], row_shape: int64",
    _make_sparse_batch,
)  # fmt: skip


# ---- the way back


class _Unbatched(OneInput):
    def __init__(self, source: Iteration) -> None:
        super().__init__(source)
        self.batch: Element = ()
        self.place = self.end = 0

    def next(self, step: Any) -> Element | None:
        while self.place == self.end:
            batch = self.source.next(step)
            if batch is None:
                return None
            sizes = {shape_of(x)[:1] for x in batch}
            if len(sizes) > 1 or () in sizes:
                raise invalid(
                    "Input element must have the same batch size in each component, but they have the "
                    f"shapes {[list(shape_of(x)) for x in batch]}"
                )
            self.batch, self.place, self.end = batch, 0, len(batch[0])
        self.place += 1
        return tuple([slice_of(x, self.place - 1) for x in self.batch])

    def save(self) -> Any:
        rest = tuple([x[self.place :] for x in self.batch])
        return {**super().save(), "rest": rest if self.place < self.end else ()}

    def restore(self, step: Any, state: Any) -> None:
        super().restore(step, state)
        self.batch, self.place = state["rest"], 0
        self.end = len(self.batch[0]) if self.batch else 0


def _make_unbatch(node: Node, env: Environment) -> Callable[..., Dataset]:
    return lambda source: Derived(source, _Unbatched)


unbatch_dataset_op = dataset_op(
    "UnbatchDataset", "input_dataset: variant", _make_unbatch, "metadata: string = ''"
)


# ---- windows, which are datasets


class ElementsDataset(Dataset):
    """These elements."""

    def __init__(self, elements: Sequence[Element]) -> None:
        self.elements = elements

    def iterate(self) -> Iteration:
        """A pass over the elements."""
        return _Elements(self.elements)


class _Elements(Iteration):
    def __init__(self, elements: Sequence[Element]) -> None:
        self.elements, self.place = elements, 0

    def next(self, step: Any) -> Element | None:
        if self.place == len(self.elements):
            return None
        self.place += 1
        return self.elements[self.place - 1]

    def save(self) -> Any:
        return {"elements": list(self.elements), "place": self.place}

    def restore(self, step: Any, state: Any) -> None:
        self.elements, self.place = state["elements"], state["place"]


class _Windows(OneInput):
    def __init__(self, source: Iteration, size: int, shift: int, stride: int, drops: bool) -> None:
        super().__init__(source)
        self.size, self.shift, self.stride, self.drops = size, shift, stride, drops
        self.held: deque[Element] = deque()
        self.to_skip, self.has_ended = 0, False

    def next(self, step: Any) -> Element | None:
        span = (self.size - 1) * self.stride + 1
        while not self.has_ended and len(self.held) < span:
            element = self.source.next(step)
            if element is None:
                self.has_ended = True
            elif self.to_skip:
                self.to_skip -= 1
            else:
                self.held.append(element)
        if not self.held or (self.drops and len(self.held) < span):
            return None
        window = list(self.held)[: span : self.stride]
        columns = [list(column) for column in zip(*window)]
        self._move_on()
        return tuple([ElementsDataset([(value,) for value in column]) for column in columns])

    def _move_on(self) -> None:
        self.to_skip = max(0, self.shift - len(self.held))
        for _ in range(min(self.shift, len(self.held))):
            self.held.popleft()

    def save(self) -> Any:
        return {**super().save(), "held": list(self.held), "skip": self.to_skip, "ended": self.has_ended}

    def restore(self, step: Any, state: Any) -> None:
        super().restore(step, state)
        self.held, self.to_skip, self.has_ended = deque(state["held"]), state["skip"], state["ended"]


def _make_window(node: Node, env: Environment) -> Callable[..., Dataset]:
    def make(source: Dataset, *numbers: Any) -> Dataset:
        size, shift, stride = (int(number) for number in numbers[:3])
        for what, number in (("size", size), ("shift", shift), ("stride", stride)):
            if number < 1:
                raise invalid(f"Window {what} must be greater than zero.")
        drops = bool(numbers[3])
        return Derived(source, lambda each: _Windows(each, size, shift, stride, drops))

    return make


window_dataset_op = dataset_op(
    "WindowDataset",
    "input_dataset: variant, size: int64[], shift: int64[], stride: int64[], drop_remainder: bool[]",
    _make_window, "metadata: string = ''",
)  # fmt: skip
