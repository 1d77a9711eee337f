"""Datasets that keep elements by a key until there are enough of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations.kernel import Environment, FunctionCall
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.batching import ElementsDataset
from flowstone.ops.datasets.iteration import Dataset, Element, Iteration, OneInput, dataset_op
from flowstone.ops.datasets.parts import Making, Part, PartsDataset
from flowstone.ops.randomness.op_seeds import OwnPlaces

__all__: list[str] = []


class _GroupFunctions:
    """The functions of an element and of a key, each with what it captured."""

    def __init__(self, calls: list[FunctionCall], captured: list[Element]) -> None:
        self.key = self._bound(OwnPlaces(calls[0]), captured[0])
        self.window_size = self._bound(OwnPlaces(calls[2]), captured[2])
        self._reduce = Making(calls[1], captured[1])

    def reduce(self, step: Any, window: Any) -> Dataset:
        """The dataset that is made of a key and its elements."""
        key, elements = window
        return self._reduce(step, (_scalar(key), ElementsDataset(elements)))

    @staticmethod
    def _bound(call: FunctionCall, captured: Element) -> Callable[[Any, Element], int]:
        def number(step: Any, element: Element) -> int:
            (found,) = call(step, *element, *captured)
            if found.dim():
                raise invalid("`key_func` and `window_size_func` must return a scalar int64.")
            return int(found)

        return number


class _Grouped(OneInput):
    """The elements of the datasets that the reduce function makes of each full window of one key; in the
    end, of the windows that are not full."""

    def __init__(self, source: Iteration, functions: _GroupFunctions, parts: PartsDataset) -> None:
        super().__init__(source)
        self.functions, self.parts = functions, parts
        self.groups: dict[int, list[Element]] = {}
        self.sizes: dict[int, int] = {}
        self.part: Part | None = None  # of a key and its window
        self.has_ended = False

    def next(self, step: Any) -> Element | None:
        while True:
            if self.part is not None:
                found = self.part.rest.next(step)
                if found is not None:
                    return found
                self.part.close()
                self.part = None
            if self.has_ended:
                if not self.groups:
                    return None
                self._open(step, min(self.groups))
                continue
            element = self.source.next(step)
            if element is None:
                self.has_ended = True
                continue
            key = self.functions.key(step, element)
            self.groups.setdefault(key, []).append(element)
            if len(self.groups[key]) == self._size(step, key):
                self._open(step, key)

    def _size(self, step: Any, key: int) -> int:
        found = self.sizes.get(key)
        if found is None:
            found = self.functions.window_size(step, (_scalar(key),))
            if found < 1:
                raise invalid(f"Window size must be greater than zero, but got {found}.")
            self.sizes[key] = found
        return found

    def _open(self, step: Any, key: int) -> None:
        self.part = self.parts.part(step, 0, (key, self.groups.pop(key)))

    def save(self) -> Any:
        part = None if self.part is None else self.part.save()
        groups = {key: list(elements) for key, elements in self.groups.items()}
        return {**super().save(), "groups": groups, "part": part, "ended": self.has_ended,
                "drawn": self.parts.save_places()}  # fmt: skip

    def restore(self, step: Any, state: Any) -> None:
        super().restore(step, state)
        self._end_part()
        self.parts.restore_places(state["drawn"])
        self.groups = {key: list(elements) for key, elements in state["groups"].items()}
        self.has_ended = state["ended"]
        if state["part"] is not None:
            self.part = self.parts.restored(step, state["part"])

    def close(self) -> None:
        super().close()
        self._end_part()

    def _end_part(self) -> None:
        if self.part is not None:
            self.part.close()
            self.part = None


def _scalar(number: int) -> Any:
    return torch.tensor(number, dtype=torch.int64)


def _make_group_by_window(node: Node, env: Environment) -> Callable[..., Dataset]:
    attributes = node.attributes
    kinds = ("key", "reduce", "window_size")
    calls = [env.function(node, attributes[f"{kind}_func"]) for kind in kinds]
    counts = [len(attributes[f"T{kind}_func_other_arguments"]) for kind in kinds]

    def make(source: Dataset, *rest: Any) -> Dataset:
        captured, place = [], 0
        for count in counts:
            captured.append(rest[place : place + count])
            place += count
        functions = _GroupFunctions(calls, captured)
        return PartsDataset(source, functions.reduce, lambda each, parts: _Grouped(each, functions, parts))

    return make


_ARGUMENTS = ", ".join(
    f"{kind}_func_other_arguments: *T{kind}_func_other_arguments" for kind in ("key", "reduce", "window_size")
)
_TYPES = " ; ".join(
    f"T{kind}_func_other_arguments: list(type) >= 0" for kind in ("key", "reduce", "window_size")
)
group_by_window_dataset_op = dataset_op(
    "GroupByWindowDataset", f"input_dataset: variant, {_ARGUMENTS}", _make_group_by_window,
    f"key_func: func ; reduce_func: func ; window_size_func: func ; {_TYPES} ; metadata: string = ''",
    keeps=[1, 2, 3],
)  # fmt: skip
