"""N-grams: neighbours of a row joined, row by row of a ragged matrix of strings."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import Strings, as_array, attribute_bytes

_FEW = 200  # strings whose rows are joined one after the other
_Array = np.ndarray[Any, Any]

string_ngrams_op = op(
    "StringNGrams",
    "data: string, data_splits: Tsplits -> ngrams: string, ngrams_splits: Tsplits",
    "separator: string ; ngram_widths: list(int) >= 0 ; left_pad: string ; right_pad: string ; "
    "pad_width: int ; preserve_short_sequences: bool ; Tsplits: type in [int32, int64] = int64",
    by_element=True,
)
string_ngrams_op.no_gradient()


@string_ngrams_op.infer
def _(node: Node) -> Shapes:
    for i in (0, 1):
        dims = node.dims(i)
        if dims is not None and len(dims) != 1:
            raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
    return [(None,), node.dims(1) or (None,)]


class _Rows:
    """How one row becomes n-grams: the attributes of a node."""

    def __init__(self, node: Node) -> None:
        self.separator, self.left, self.right = (
            attribute_bytes(node, name) for name in ("separator", "left_pad", "right_pad")
        )
        self.widths, self.pad = node.attributes["ngram_widths"], node.attributes["pad_width"]
        self.keeps_short = node.attributes["preserve_short_sequences"]
        if any(width <= 0 for width in self.widths):
            raise invalid("ngram_widths must contain positive values")
        if not self.widths and self.keeps_short and self.pad < 0:
            raise invalid(
                "Pad width should be >= 0 when preserve_short_sequences is True and ngram_widths are not "
                f"provided, got {self.pad}"
            )

    def padding(self, width: int) -> int:
        return width - 1 if self.pad < 0 else min(self.pad, width - 1)

    def ngrams(self, row: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        for width in self.widths:
            found += self._of_width(row, width)
        if not found and self.keeps_short and row:
            width = len(row) + 2 * max(self.pad, 0)  # all that there is
            if width:
                found = self._of_width(row, width, max(self.pad, 0))
        return found

    def _of_width(self, row: list[bytes], width: int, padding: int | None = None) -> list[bytes]:
        padding = self.padding(width) if padding is None else padding
        padded = [self.left] * padding + row + [self.right] * padding
        shifted = (padded[i:] for i in range(width))
        return list(map(self.separator.join, zip(*shifted)))

    def all_ngrams(self, strings: Strings, splits: _Array) -> tuple[Strings, _Array]:
        """The n-grams of all rows, one row after the other, and how many each has."""
        lengths = np.diff(splits)
        counts = [np.maximum(lengths + 2 * self.padding(width) - width + 1, 0) for width in self.widths]
        totals = np.sum([np.zeros_like(lengths), *counts], axis=0)
        short = np.flatnonzero((totals == 0) & (lengths > 0)) if self.keeps_short else lengths[:0]
        totals[short] = 1
        next_place = np.cumsum(totals) - totals
        found = np.empty(int(totals.sum()), object)
        for width, count in zip(self.widths, counts):
            row = np.repeat(np.arange(len(lengths)), count)
            if len(row):
                within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
                padded, begins = self._padded(strings, splits, self.padding(width))
                columns = [padded[begins[row] + within + i].tolist() for i in range(width)]
                joined = list(map(self.separator.join, zip(*columns)))
                found[next_place[row] + within] = as_array(joined, (len(joined),))
                next_place += count
        for i in short.tolist():
            found[next_place[i]] = self.ngrams(strings[splits[i] : splits[i + 1]].tolist())[0]
        return found, totals

    def _padded(self, strings: Strings, splits: _Array, padding: int) -> tuple[Strings, _Array]:
        """The rows with the padding at their ends, and where each begins."""
        if not padding:
            return strings, splits[:-1]
        lengths, rows = np.diff(splits), len(splits) - 1
        begins = splits[:-1] + 2 * padding * np.arange(rows)
        padded = np.full(len(strings) + 2 * padding * rows, self.left, object)
        padded[np.arange(len(strings)) + padding * (2 * np.repeat(np.arange(rows), lengths) + 1)] = strings
        for i in range(padding):
            padded[begins + padding + lengths + i] = self.right
        return padded, begins


def _check_splits(splits: list[int], size: int) -> None:
    if splits[0] != 0:
        raise invalid(f"First split value must be 0, got {splits[0]}")
    last = 0
    for split in splits[1:]:
        if not last <= split <= size:
            raise invalid(f"Invalid split value {split}, must be in [{last}, {size}]")
        last = split
    if last != size:
        raise invalid(f"Last split value must be data size. Expected {size}, got {last}")


@string_ngrams_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[..., tuple[Strings, torch.Tensor]]:
    rows = _Rows(node)
    dtype = node.attributes["Tsplits"].torch

    def join(data: Strings, data_splits: torch.Tensor) -> tuple[Strings, torch.Tensor]:
        splits, strings = data_splits.tolist(), data.tolist()
        if not splits:
            return as_array([b""] * len(strings), (len(strings),)), data_splits.clone()
        _check_splits(splits, len(strings))
        if len(strings) > _FEW:
            ngrams, counts = rows.all_ngrams(data, data_splits.numpy().astype(np.int64))
            return ngrams, torch.from_numpy(np.append(0, np.cumsum(counts))).to(dtype)
        found = [rows.ngrams(strings[begin:end]) for begin, end in itertools.pairwise(splits)]
        values = [each for row in found for each in row]
        ends: Any = np.cumsum([0, *map(len, found)])
        return as_array(values, (len(values),)), torch.from_numpy(ends).to(dtype)

    return join
