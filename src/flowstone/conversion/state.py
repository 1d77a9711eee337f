"""The variables of a function that a branch or a loop changes, read and written from outside of it.

A variable is a cell of the closure of the branch's function, a name of its module, or an attribute or item;
what has no value is `UNDEFINED`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.tensors import nest
from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor

__all__ = ["UNDEFINED", "State", "as_leaf", "is_dataset", "is_tensor", "no_value"]


class _Missing:
    """A mark in place of a value."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name}>"


UNDEFINED = _Missing("undefined")
no_value = _Missing("no return value")  # what a function returns that has not returned


class State:
    """Some variables, by name, as the functions `parts` see them; `composites`: (text, read, write) of
    attributes.
    """

    def __init__(self, parts: Sequence[Any], names: Sequence[str], composites: Sequence[Any] = ()) -> None:
        cells: dict[str, Any] = {}
        for part in parts:
            cells.update(zip(part.__code__.co_freevars, part.__closure__ or ()))
        module = parts[-1].__globals__
        self.names = [*names, *[text for text, _, _ in composites]]
        self._slots: list[_Slot] = [
            _Cell(cells[name]) if name in cells else _Global(module, name) for name in names
        ]
        self._slots += [_Composite(read, write) for _, read, write in composites]

    def get(self) -> list[Any]:
        """The values."""
        return [slot.get() for slot in self._slots]

    def set(self, values: Sequence[Any]) -> None:
        """Gives the variables these values."""
        for slot, value in zip(self._slots, values):
            slot.set(value)


class _Slot:
    def get(self) -> Any:
        """The value."""
        raise NotImplementedError

    def set(self, value: Any) -> None:
        """Replaces the value."""
        raise NotImplementedError


class _Cell(_Slot):
    def __init__(self, cell: Any) -> None:
        self.cell = cell

    def get(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return UNDEFINED

    def set(self, value: Any) -> None:
        if value is not UNDEFINED:
            self.cell.cell_contents = value
        elif self.get() is not UNDEFINED:
            del self.cell.cell_contents


class _Global(_Slot):
    def __init__(self, module: dict[str, Any], name: str) -> None:
        self.module, self.name = module, name

    def get(self) -> Any:
        return self.module.get(self.name, UNDEFINED)

    def set(self, value: Any) -> None:
        if value is not UNDEFINED:
            self.module[self.name] = value
        else:
            self.module.pop(self.name, None)


class _Composite(_Slot):
    def __init__(self, read: Callable[[], Any], write: Callable[[Any], Any]) -> None:
        self.read, self.write = read, write

    def get(self) -> Any:
        try:
            return self.read()
        except (AttributeError, LookupError, TypeError, NameError):
            return UNDEFINED

    def set(self, value: Any) -> None:
        if value is not UNDEFINED:
            self.write(value)


# ---- values


def is_tensor(value: Any) -> bool:
    """Whether a value is known only in a step: a tensor, a variable, a composite of tensors."""
    return isinstance(value, (Tensor, SparseTensor, IndexedSlices)) or hasattr(value, "_as_graph_element")


def is_dataset(value: Any) -> bool:
    """Whether a value is a dataset of `tf.data`, a room above."""
    return hasattr(value, "_as_variant_tensor") and hasattr(value, "reduce")


def as_leaf(value: Any) -> Any:
    """A value as loops and conditionals of the graph take it: as a tensor, unless it is a composite."""
    return value if nest.is_composite(value) else convert_to_tensor(value)
