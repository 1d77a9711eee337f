"""`Dataset` and `Iteration`: what the values of dataset ops are, and one pass over such a dataset.

An element is a tuple of runtime values (`framework/declarations/kernel.py`), one a component. Nobody
overwrites one: it may share memory with the dataset. Whoever asks for elements is in torch's inference mode,
and passes a step, whose cancellation ends every wait. One thread at a time uses an iteration.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.rows import Rows, slice_of

Element: TypeAlias = "tuple[Any, ...]"
Columns: TypeAlias = "tuple[int, list[Any]]"  # how many elements, and each component of all of them, stacked


class Iteration(ABC):
    """One pass over a dataset."""

    @abstractmethod
    def next(self, step: Any) -> Element | None:
        """The next element, None at the end. An error that it raises takes one element."""

    def several(self, step: Any, count: int) -> Columns | None:
        """Up to `count` elements in batches; None at the end. Where elements have different shapes, an
        InvalidArgumentError."""
        elements: list[Element] = []
        while len(elements) < count:
            element = self.next(step)
            if element is None:
                break
            elements.append(element)
        if not elements:
            return None
        return len(elements), [stacked(column, i) for i, column in enumerate(zip(*elements))]

    @abstractmethod
    def save(self) -> Any:
        """The state, from which an iteration of an equal dataset goes on: tuples, dicts, numbers, values."""

    @abstractmethod
    def restore(self, step: Any, state: Any) -> None:
        """Goes on where an iteration of an equal dataset had this state."""

    def close(self) -> None:  # noqa: B027  (most keep nothing running)
        """Ends what it keeps running, such as threads. No element is asked for afterwards."""


class Dataset(ABC):
    """A sequence of elements that can be iterated any number of times, by several threads at once."""

    @abstractmethod
    def iterate(self) -> Iteration:
        """A pass from the beginning."""

    def rows(self) -> Rows | None:
        """The elements by number, where that costs nothing; None elsewhere."""
        return None

    def repeated(self) -> Dataset:
        """The dataset whose passes, one after the other, are a repetition of this one."""
        return self

    def inputs(self) -> list[Dataset]:
        """The datasets that it is made of."""
        found: list[Dataset] = []
        for value in vars(self).values():
            if isinstance(value, Dataset):
                found.append(value)
            elif isinstance(value, (list, tuple)):
                found += [each for each in value if isinstance(each, Dataset)]
        return found

    def apart(self) -> Dataset:
        """An equal dataset, whose passes draw random numbers as if this one had none, and keep nothing of its
        passes."""
        other = copy.copy(self)
        for name, value in vars(self).items():
            if hasattr(value, "apart"):  # datasets, and what draws or keeps something for the passes
                setattr(other, name, value.apart())
            elif isinstance(value, (list, tuple)) and value and isinstance(value[0], Dataset):
                setattr(other, name, [each.apart() for each in value])
        return other

    def drawn(self) -> list[Any]:
        """How much was drawn for the passes so far, of it and what it is made of."""
        return [count for each in self.inputs() for count in each.drawn()]

    def go_on_after(self, drawn: Iterator[Any]) -> None:
        """Takes back what `drawn` gave of an equal dataset: later passes are those after it."""
        for each in self.inputs():
            each.go_on_after(drawn)


def each_apart(parts: Sequence[Dataset]) -> list[Dataset]:
    """The datasets as parts of one, where a dataset may stand several times: the passes of each part draw
    from streams of their own, so that a shuffled dataset beside itself has one order."""
    return [*parts[:1], *(part.apart() for part in parts[1:])]


class OneInput(Iteration):
    """A pass over what becomes of one other pass, `source`."""

    def __init__(self, source: Iteration) -> None:
        self.source = source

    def save(self) -> Any:
        """The source's state; subclasses add theirs."""
        return {"source": self.source.save()}

    def restore(self, step: Any, state: Any) -> None:
        """Restores the source."""
        self.source.restore(step, state["source"])

    def close(self) -> None:
        """Ends the source."""
        self.source.close()


# ---- values


def stacked(column: Sequence[Any], component: int) -> Any:
    """The values of one component of several elements in a batch. InvalidArgumentError unless they have one
    shape."""
    first = column[0]
    if isinstance(first, torch.Tensor):
        try:
            return torch.stack(column)  # type: ignore[arg-type]
        except RuntimeError:
            shape = first.shape
            at = next(i for i, value in enumerate(column) if value.shape != shape)
            raise _other_shape(component, first, at, column[at]) from None
    if isinstance(first, np.ndarray):
        batch = np.empty((len(column), *first.shape), object)
        for i, value in enumerate(column):
            if value.shape != first.shape:
                raise _other_shape(component, first, i, value)
            batch[i] = value if value.ndim else value.item()
        return batch
    boxes = np.empty(len(column), object)
    boxes[:] = column
    return boxes


def joined_parts(more: Callable[[int], Columns | None], count: int) -> Columns | None:
    """Batches of up to `count` elements of those that ``more(most)`` gives, until it gives None."""
    found, parts = 0, []
    while found < count:
        part = more(count - found)
        if part is None:
            break
        found += part[0]
        parts.append(part[1])
    if not parts:
        return None
    return found, parts[0] if len(parts) == 1 else [_joined(i, each) for i, each in enumerate(zip(*parts))]


def _joined(component: int, parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], torch.Tensor) and len({part.shape[1:] for part in parts}) == 1:
        return torch.cat(parts)  # type: ignore[arg-type]
    return stacked([slice_of(part, i) for part in parts for i in range(len(part))], component)


def one_row(element: Element | None) -> Columns | None:
    """A batch of one element."""
    return None if element is None else (1, [stacked([value], i) for i, value in enumerate(element)])


def _other_shape(component: int, first: Any, at: int, other: Any) -> Exception:
    return invalid(
        f"Cannot batch tensors with different shapes in component {component}. First element had shape "
        f"{list(first.shape)} and element {at} had shape {list(other.shape)}."
    )


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a value of an element."""
    return tuple(getattr(value, "shape", ()))


# ---- declarations

ELEMENTS = "output_types: list(type) >= 1 ; output_shapes: list(shape) >= 1"
Maker: TypeAlias = "Callable[[Node, Environment], Callable[..., Dataset]]"


def dataset_op(
    name: str,
    inputs: str,
    make: Maker,
    attributes: str = "",
    elements: str = ELEMENTS,
    output: str = "handle",
    **traits: Any,
) -> OpDeclaration:
    """Declares an op whose result is a dataset; `make(node, env)` is its kernel."""
    texts = [text for text in (attributes, elements) if text]
    declared = " ; ".join(texts)
    traits = {"capturable": False, "role": "dataset", **traits}
    declaration = op(name, f"{inputs} -> {output}: variant", declared, **traits)
    declaration.infer(_dims_of_handle)
    declaration.kernel(CPU)(make)
    declaration.not_differentiable()
    return declaration


def _dims_of_handle(node: Node) -> Dims:
    return ()
