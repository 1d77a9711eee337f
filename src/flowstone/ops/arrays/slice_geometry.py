"""What a strided slice is: its sparse specification made dense, its shape, and an index that ATen can take.

A strided slice is given sparsely: begin, end and stride of some dimensions, and bit masks that make entry i
mean something else, as in NumPy's indexing: `ellipsis` (as many whole dimensions as are left), `new_axis`,
`shrink` (one index; the dimension disappears), open `begin`, open `end`. `dense_entries` turns that into one
entry for each dimension, on which everything else works.

>>> dense_entries(3, [1, 0], [2, 0], [1, 1], Masks(ellipsis=2, shrink=1))
[1, slice(None, None, 1), slice(None, None, 1)]
"""

from __future__ import annotations

from typing import Any, NamedTuple

PythonSlice = slice  # under a name that the public function `slice` does not take


class Unknown:
    """An index that only the step knows."""


UNKNOWN = Unknown()


class Masks(NamedTuple):
    """The bit masks of a strided slice; bit i speaks of entry i."""

    begin: int = 0
    end: int = 0
    ellipsis: int = 0
    new_axis: int = 0
    shrink: int = 0


def dense_entries(rank: int, begin: Any, end: Any, strides: Any, masks: Masks) -> list[Any]:
    """One entry a dimension, in order: an int (shrink), a Python slice, or None for a new axis.

    begin, end and strides are sequences of int; None among them marks what only the step knows.
    Raises ValueError for sequences of different lengths, two ellipses, a stride of 0, or more entries than
    dimensions.
    """
    if not len(begin) == len(end) == len(strides):
        raise ValueError(
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes "
            f"[{len(begin)}], [{len(end)}], and [{len(strides)}] instead."
        )
    entries: list[Any] = []
    whole_at = None
    for i, (first, last, step) in enumerate(zip(begin, end, strides)):
        bit = 1 << i
        if masks.ellipsis & bit:
            if whole_at is not None:
                raise ValueError("Multiple ellipses in slice spec not allowed")
            whole_at = len(entries)
        elif masks.new_axis & bit:
            entries.append(None)
        elif masks.shrink & bit:
            if step is not None and step <= 0:
                raise ValueError("only stride 1 allowed on non-range indexing.")
            entries.append(UNKNOWN if first is None else first)
        else:
            if step == 0:
                raise ValueError(f"strides[{i}] must be non-zero")
            open_first, open_last = masks.begin & bit, masks.end & bit
            entries.append(
                PythonSlice(
                    None if open_first else UNKNOWN if first is None else first,
                    None if open_last else UNKNOWN if last is None else last,
                    UNKNOWN if step is None else step,
                )
            )
    used = sum(entry is not None for entry in entries)
    if used > rank:
        raise ValueError(f"Index out of range using input dim {rank}; input has only {rank} dims")
    at = len(entries) if whole_at is None else whole_at
    return [*entries[:at], *[PythonSlice(None, None, 1)] * (rank - used), *entries[at:]]


def sliced_dims(dims: tuple[int | None, ...], entries: list[Any]) -> tuple[int | None, ...]:
    """The static shape of a slice. ValueError for an index outside its dimension."""
    result: list[int | None] = []
    axis = 0
    for entry in entries:
        if entry is None:
            result.append(1)
            continue
        size = dims[axis]
        if type(entry) is not PythonSlice:
            is_known = size is not None and entry is not UNKNOWN
            if is_known and not (entry < size if entry >= 0 else -entry <= size):
                raise ValueError(f"slice index {entry} of dimension {axis} out of bounds.")
        elif size is None or any([n is UNKNOWN for n in (entry.start, entry.stop, entry.step)]):
            is_whole = entry.start is None and entry.stop is None and entry.step in (1, -1)
            result.append(size if is_whole else None)
        else:
            result.append(_length(entry, size))
        axis += 1
    return tuple(result)


def _length(entry: PythonSlice, size: Any) -> Any:
    """How long a slice of a dimension is; sizes may be symbols that are compared and counted with."""
    if all([n is None or isinstance(n, int) for n in (entry.start, entry.stop, size)]):
        return len(range(*entry.indices(size)))
    try:
        start, stop = [n if n is None or n >= 0 else size + n for n in (entry.start or 0, entry.stop)]
        if entry.step != 1 or not start <= size or not (stop is None or 0 <= stop <= size):
            return None
        stop = size if stop is None else stop
        return stop - start if start <= stop else 0
    except ArithmeticError:  # depends on how large it is
        return None


def forward(sizes: Any, entries: list[Any]) -> tuple[tuple[Any, ...], list[int]]:
    """An index with positive steps only, and the axes of its result to flip: ATen takes no negative steps.

    IndexErrors are left to the indexing; `sizes` is the actual shape.
    """
    index: list[Any] = []
    flips: list[int] = []
    axis = at = 0
    for entry in entries:
        if type(entry) is PythonSlice and entry.step < 0:
            places = range(*entry.indices(sizes[axis]))
            flips.append(at)
            entry = PythonSlice(places[-1], places[0] + 1, -entry.step) if places else PythonSlice(0, 0, 1)
        index.append(entry)
        axis += entry is not None
        at += entry is None or type(entry) is PythonSlice
    return tuple(index), flips
