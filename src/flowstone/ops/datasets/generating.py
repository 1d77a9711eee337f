"""Datasets of what a function of the graph gives each time it is called, until it raises OutOfRangeError."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import Environment, FunctionCall
from flowstone.framework.tensors.node import Node
from flowstone.ops.datasets.iteration import Dataset, Element, Iteration, dataset_op

__all__: list[str] = []


class _Generation(Iteration):
    """A pass with the state that `begin` gave; `end` is called once, if there is one."""

    def __init__(self, dataset: GeneratedDataset) -> None:
        self.begin, self.more, self.end = dataset.functions
        self.new_step = dataset.new_step
        self.state: Element | None = None
        self.has_ended = False
        self.count = 0

    def next(self, step: Any) -> Element | None:
        if self.has_ended:
            return None
        if self.state is None:
            self.state = tuple(self.begin(step))
        try:
            element = tuple(self.more(step, *self.state))
        except errors.OutOfRangeError:
            self._finalize(step)
            return None
        self.count += 1
        return element

    def _finalize(self, step: Any) -> None:
        state, self.state, self.has_ended = self.state, None, True
        if state is not None:
            self.end(step, *state)

    def save(self) -> Any:
        raise errors.UnimplementedError(
            None, None, "The state of a generator cannot be saved: nothing but the generator knows it."
        )

    def restore(self, step: Any, state: Any) -> None:
        raise AssertionError("nothing was saved")

    def close(self) -> None:
        if not self.has_ended:
            # Nobody waits for an element, so nobody could be told of an error.
            with torch.inference_mode(), contextlib.suppress(errors.OpError):
                self._finalize(self.new_step())


class GeneratedDataset(Dataset):
    """What three functions generate: one begins a pass, one gives an element of what the first gave, one ends
    the pass. Each is called with the step before its arguments; `new_step` makes one."""

    def __init__(self, functions: Sequence[FunctionCall], new_step: Callable[[], Any]) -> None:
        self.functions, self.new_step = functions, new_step

    def iterate(self) -> Iteration:
        """A pass that begins when its first element is asked for."""
        return _Generation(self)


_KINDS = ("init", "next", "finalize")


def _bound(call: FunctionCall, captured: Element) -> FunctionCall:
    return lambda step, *values: call(step, *values, *captured)


def _make_generator(node: Node, env: Environment) -> Callable[..., Dataset]:
    calls = [env.function(node, node.attributes[f"{kind}_func"]) for kind in _KINDS]
    counts = [len(node.attributes[f"T{kind}_func_args"]) for kind in _KINDS]

    def make(*arguments: Any) -> Dataset:
        bound, place = [], 0
        for call, count in zip(calls, counts):
            bound.append(_bound(call, arguments[place : place + count]))
            place += count
        return GeneratedDataset(bound, env.new_step)

    return make


generator_dataset_op = dataset_op(
    "GeneratorDataset",
    ", ".join(f"{kind}_func_other_args: *T{kind}_func_args" for kind in _KINDS),
    _make_generator,
    " ; ".join(
        [*(f"{kind}_func: func" for kind in _KINDS),
         *(f"T{kind}_func_args: list(type) >= 0" for kind in _KINDS), "metadata: string = ''"]
    ),
    stateful=True,
    keeps=[0, 1, 2],
)  # fmt: skip
