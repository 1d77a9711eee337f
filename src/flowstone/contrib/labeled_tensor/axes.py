"""Axes with names and, where they have them, labels for each position.

>>> Axis("channel", ["red", "green", "blue"]).index("blue")
2
>>> list(Axes([("row", 4), ("channel", 3)]))
['row', 'channel']
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import flowstone as tf

__all__ = ["Axes", "Axis", "AxisLike", "AxisValue", "DimensionLike", "LabelsLike", "as_axis", "concat_axes"]

DimensionLike = tf.Dimension | int | None
LabelsLike = np.ndarray | range | list[Any] | tuple[Any, ...]
AxisValue = LabelsLike | DimensionLike


class Axis:
    """The name of an axis, with its size or the labels of its positions.

    Args:
        name: a string.
        value: the size (an int, a Dimension, or None where it is not known), or the labels: a list, tuple,
            range or array of hashable values, no two equal.

    Raises TypeError for a name or a value of another type and for labels that are not hashable, ValueError if
    two labels are equal.
    """

    def __init__(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of an axis is a string, not {name!r}")
        self._name = name
        self._labels: tuple[Hashable, ...] | None = None
        self._positions: dict[Hashable, int] = {}
        if isinstance(value, (np.ndarray, range, list, tuple)):
            labels = tuple(value)
            self._positions = {label: position for position, label in enumerate(labels)}
            if len(self._positions) != len(labels):
                raise ValueError(f"the labels of an axis differ from each other; these do not: {labels}")
            self._labels = labels
            value = len(labels)
        elif not (value is None or isinstance(value, (int, np.integer, tf.Dimension))):
            raise TypeError(f"the value of an axis is its size or its labels, not {value!r}")
        self._dimension = tf.Dimension(value)

    @property
    def name(self) -> str:
        """The axis's name."""
        return self._name

    @property
    def size(self) -> int | None:
        """The number of positions; None where it is not known."""
        size: int | None = self._dimension.value
        return size

    @property
    def dimension(self) -> Any:
        """The size as a Dimension."""
        return self._dimension

    @property
    def labels(self) -> tuple[Hashable, ...] | None:
        """The labels of the positions; None for an axis without labels."""
        return self._labels

    @property
    def value(self) -> Any:
        """The labels, or the Dimension of an axis without labels."""
        return self._dimension if self._labels is None else self._labels

    def index(self, value: Hashable) -> int:
        """The position of the label `value`.

        Raises ValueError for an axis without labels, KeyError if the axis lacks the label.
        """
        if self._labels is None:
            raise ValueError(f"the axis {self._name!r} has no labels")
        return self._positions[value]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Axis):
            return False
        return (self.name, self.size, self.labels) == (other.name, other.size, other.labels)

    def __hash__(self) -> int:
        return hash((self.name, self.size, self.labels))

    def __len__(self) -> int:
        size = self.size
        if size is None:
            raise ValueError(f"axis {self.name!r} has unknown length")
        return size

    def __repr__(self) -> str:
        return f"Axis({self.name!r}, {self.value!r})"


AxisLike = Axis | tuple[str, AxisValue]


def as_axis(axis_data: Any) -> Axis:
    """The Axis of an Axis or of a pair ``(name, value)``; TypeError for anything else."""
    if isinstance(axis_data, Axis):
        return axis_data
    if not isinstance(axis_data, tuple) or len(axis_data) != 2:
        raise TypeError(f"an axis is an Axis or a pair of a name and a value, not {axis_data!r}")
    return Axis(*axis_data)


class Axes(Mapping[str, Axis]):
    """The axes of a tensor in their order: a mapping from names to Axis objects.

    Args:
        axes: a list of Axis objects or pairs ``(name, value)``.

    Raises TypeError for items of another type, ValueError if two axes have the same name.
    """

    def __init__(self, axes: Sequence[Any]) -> None:
        self._axes: dict[str, Axis] = {}
        for axis in map(as_axis, axes):
            if axis.name in self._axes:
                raise ValueError(f"Duplicate axis name: {axis.name}")
            self._axes[axis.name] = axis

    def __getitem__(self, name: str) -> Axis:
        return self._axes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._axes

    def __iter__(self) -> Iterator[str]:
        return iter(self._axes)

    def __len__(self) -> int:
        return len(self._axes)

    def __hash__(self) -> int:
        return hash(tuple(self._axes.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axes) and self._axes == other._axes

    def __repr__(self) -> str:
        rows = [f"({axis.name!r}, {axis.value!r})" for axis in self.values()]
        return f"Axes([{(',' + chr(10) + ' ' * 6).join(rows)}])"

    def remove(self, axis_name: str) -> Axes:
        """The axes without the one of this name; KeyError if there is none."""
        if axis_name not in self:
            raise KeyError(axis_name)
        return Axes([axis for axis in self.values() if axis.name != axis_name])


def concat_axes(axes: Sequence[Any]) -> Axis:
    """The axis of tensors joined along it: the labels in turn if all have labels, else the sum of sizes.

    Raises ValueError if there is no axis or the names differ, or if two labels are equal.
    """
    if not axes:
        raise ValueError("concat_axes takes at least one axis")
    together = [as_axis(axis) for axis in axes]
    names = sorted({axis.name for axis in together})
    if len(names) > 1:
        raise ValueError(f"axes do not all have the same name: {names}")
    labels = [axis.labels for axis in together]
    if all(each is not None for each in labels):
        return Axis(names[0], [label for each in labels for label in each or ()])
    sizes = [axis.size for axis in together]
    return Axis(names[0], None if None in sizes else sum(size or 0 for size in sizes))
