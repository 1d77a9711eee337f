"""`tensorflow.python.eager.monitoring`: counts and values that a library keeps of its use."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "BoolGauge",
    "Buckets",
    "Counter",
    "ExponentialBuckets",
    "IntGauge",
    "Metric",
    "Sampler",
    "StringGauge",
]


class Metric:
    """Cells by their labels.

    Args:
        name: of the metric, as a path; description: what it counts.
        labels: the names of the labels, whose values `get_cell` takes.
    """

    _first: ClassVar[Any] = 0

    def __init__(self, name: str, description: str, *labels: str) -> None:
        self._name, self._description, self._labels = name, description, labels
        self._cells: dict[tuple[str, ...], Cell] = {}

    def get_cell(self, *labels: str) -> Cell:
        """The cell of these labels. ValueError for another number of them."""
        if len(labels) != len(self._labels):
            raise ValueError(f"The {type(self).__name__} expects taking {len(self._labels)} labels")
        return self._cells.setdefault(labels, Cell(self._first))


class Cell:
    """One value."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def value(self) -> Any:
        """The value."""
        return self._value

    def set(self, value: Any) -> None:
        """Sets the value of a gauge."""
        self._value = value

    def increase_by(self, value: int) -> None:
        """Adds to the value of a counter."""
        self._value += value

    def add(self, sample: float) -> None:
        """Adds a sample."""
        self._value = [*self._value, sample]


class Counter(Metric):
    """Numbers that grow."""


class IntGauge(Metric):
    """Integers."""


class StringGauge(Metric):
    """Texts."""

    _first = ""


class BoolGauge(Metric):
    """Truth values."""

    _first = False


class Buckets:
    """The limits of a histogram."""

    def __init__(self, buckets: Any) -> None:
        self.buckets = buckets


class ExponentialBuckets(Buckets):
    """Limits `scale` · `growth_factor` ^ i, for i below `bucket_count`."""

    def __init__(self, scale: float, growth_factor: float, bucket_count: int) -> None:
        super().__init__([scale * growth_factor**i for i in range(bucket_count)])


class Sampler(Metric):
    """Samples, by `buckets`."""

    _first = ()

    def __init__(self, name: str, buckets: Buckets, description: str, *labels: str) -> None:
        super().__init__(name, description, *labels)
        self.buckets = buckets
