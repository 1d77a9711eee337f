"""What the native tier offers to kernels that parse records, in slots as those of `machine_code.py`.

`example_reader()` reads serialised Examples and SequenceExamples, `csv_reader()` lines of comma-separated
values. They are None where there is no machine code, or none yet; kernels then read by Python, NumPy and
protobuf, with the same results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from flowstone.framework.machine.machine_code import Slot

__all__ = ["CsvReader", "ExampleReader", "ListWalk", "Walk", "csv_reader", "example_reader"]

Array = np.ndarray[Any, Any]


class Walk(Protocol):
    """What messages have of each wanted feature, and jobs: arrays, contiguous, that `read` fills."""

    @property
    def totals(self) -> Sequence[int]:
        """How many values all messages have."""

    @property
    def missing(self) -> Sequence[int]:
        """How many messages lack the feature."""

    @property
    def most(self) -> Sequence[int]:
        """The most values of a message."""

    def counts(self, feature: int) -> Array:
        """How many values each message has."""

    def is_there(self, feature: int) -> Array:
        """Whether each message has the feature."""

    def fill_rows(self, feature: int, out: Array, width: int, fill: Array | None, step: int) -> None:
        """Has `out` filled with rows of so many elements, which no message has more of. What it has less is
        filled: with the elements of `fill` at the same places (`step` 1), or the one that it has (0)."""

    def fill_list(
        self, feature: int, out: Array, places: Array | None = None, shape: Array | None = None
    ) -> None:
        """Has `out` filled with all values, `places` [total, rank] with where they are, int64, and `shape`
        [rank] with the sizes of that. The rank is 2, or without the message's number 1."""

    def read(self) -> None:
        """Does the jobs. MemoryError where there is no memory for a string."""


class ListWalk(Protocol):
    """What SequenceExamples have of wanted lists of features."""

    def steps(self, feature: int) -> Array:
        """How many features the list of each message has, -1 where there is no list."""

    def features(self, feature: int) -> Walk:
        """Those of all lists of a key, which is feature 0, as if each were a message's."""


class ExampleReader(Protocol):
    """Serialised Examples and SequenceExamples, objects of bytes."""

    def keys(self, kinds: Mapping[bytes, int]) -> Any:
        """Features by their keys, in UTF-8, with their kinds: bytes 1, floats 2, integers 3."""

    def walk(self, messages: Array, keys: Any) -> Walk | None:
        """What a contiguous vector of messages has of these features. None where one is damaged, has a
        feature of another kind, or is written in an unusual way."""

    def walk_lists(self, messages: Array, keys: Any) -> ListWalk | None:
        """The same of SequenceExamples and lists of features; their contexts are skipped."""


class CsvReader(Protocol):
    """Lines of comma-separated values."""

    def __call__(
        self,
        lines: Array,
        delimiter: bytes,
        quote: bytes,
        missing: bytes,
        chosen: Sequence[int],
        defaults: Sequence[Array],
    ) -> list[Array] | None:
        """Columns, of the types of the defaults, from a contiguous vector of lines: the chosen ones, or all.

        `quote`: the character that fields may stand in, or none. A default has one value, that of fields
        which are empty or say `missing`, or none. None where a line is wrong, or not bytes, or written in an
        unusual way."""


csv_reader: Slot[[], CsvReader] = Slot()
example_reader: Slot[[], ExampleReader] = Slot()
