"""Edit distances (Levenshtein, 1966) of sequences in sparse tensors, whose last dimension is the place."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Shapes, op
from flowstone.framework.tensors.composite import SparseTensor, SparseTensorValue
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import merge
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.distinct_texts import numbered

__all__ = ["edit_distance"]

_CELLS = 1 << 16  # of a row of all pairs that are worked out together
_Runs = tuple[Any, Any, Any]
_PARTS = ("hypothesis_indices", "hypothesis_values", "hypothesis_shape")
_OTHERS = ("truth_indices", "truth_values", "truth_shape")
# On every device the sequences are read on the host, where each is a walk.
edit_distance_op = op(
    "EditDistance",
    "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, "
    "truth_indices: int64, truth_values: T, truth_shape: int64 -> output: float",
    "normalize: bool = true",
    T=None,
    host=(*_PARTS, *_OTHERS, "output"),
)
edit_distance_op.not_differentiable()


@edit_distance_op.infer
def _(node: Node) -> Shapes:
    for i, rank in ((0, 2), (1, 1), (2, 1), (3, 2), (4, 1), (5, 1)):
        dims = node.dims(i)
        if dims is not None and len(dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}")
    for i in (0, 3):
        at, sizes = node.dims(i), node.dims(i + 2)
        if at and sizes and None not in (at[1], sizes[0]) and at[1] != sizes[0]:
            raise ValueError(f"Index rank ({at[1]}) and shape rank ({sizes[0]}) do not match.")
    merge(node.dims(2), node.dims(5))
    first, second = node.constant(2), node.constant(5)
    if first is None or second is None:
        return None
    return tuple(int(max(a, b)) for a, b in zip(first[:-1], second[:-1]))


@edit_distance_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    normalize = node.attributes["normalize"]

    def distances(*parts: Any) -> torch.Tensor:
        arrays = [part if isinstance(part, np.ndarray) else _array(part) for part in parts]
        (a_at, a, a_shape), (b_at, b, b_shape) = arrays[:3], arrays[3:]
        if len(a_shape) != len(b_shape):
            raise invalid(
                f"hypothesis and truth must be of one rank, but have {len(a_shape)} and {len(b_shape)}"
            )
        if len(a_shape) < 2:
            raise invalid(f"Input SparseTensors must have rank at least 2, not {len(a_shape)}")
        least = min(*a_shape, *b_shape)
        if least < 0:
            raise invalid(f"Dimension {least} must be >= 0")
        sizes = np.maximum(a_shape, b_shape)[:-1]
        for at, values in ((a_at, a), (b_at, b)):
            _check(at, values, sizes)
        result = np.zeros(sizes, np.float32)
        pairs = _Pairs(*_comparable(a, b), _runs(a_at, sizes), _runs(b_at, sizes))
        result.reshape(-1)[pairs.keys] = pairs.distances(normalize)
        return torch.from_numpy(result)

    return distances


def _array(part: torch.Tensor) -> Any:
    return (part.float() if part.dtype is torch.bfloat16 else part).numpy()


def _check(at: Any, values: Any, sizes: Any) -> None:
    if at.shape != (len(values), len(sizes) + 1):
        raise invalid(
            f"{len(values)} values of rank {len(sizes) + 1} need as many indices, got {list(at.shape)}"
        )
    outside = ((at[:, :-1] < 0) | (at[:, :-1] >= sizes)).any(1)
    if outside.any():
        row = int(np.argmax(outside))
        message = f"indices[{row}] = {at[row].tolist()} is of no sequence: there are {sizes.tolist()}"
        raise errors.InternalError(None, None, message)


def _comparable(a: Any, b: Any) -> tuple[Any, Any]:
    """The values; for texts numbers, which are equal where they are."""
    if a.dtype != object:
        return a, b
    texts = a.tolist() + b.tolist()
    numbers = numbered(texts)[1]
    return numbers[: len(a)], numbers[len(a) :]


def _runs(at: Any, sizes: Any) -> _Runs:
    """The sequences of these index rows: their numbers, which rise, where they begin, their lengths."""
    strides = np.cumprod(np.append(sizes, 1)[:0:-1])[::-1]
    numbers = (at[:, :-1] * strides).sum(1)
    changes = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    begins = np.concatenate((np.zeros(min(len(at), 1), np.int64), changes))
    keys, last = np.unique(numbers[begins][::-1], return_index=True)  # the last of several runs of one
    chosen = len(begins) - 1 - last
    return keys, begins[chosen], np.diff(begins, append=len(at))[chosen]


class _Pairs:
    """A hypothesis and a truth for each of `keys`, side by side."""

    def __init__(self, hypotheses: Any, truths: Any, first: _Runs, second: _Runs) -> None:
        self._values = hypotheses, truths
        self.keys = np.union1d(first[0], second[0])
        self._begins = np.zeros((2, len(self.keys)), np.int64)
        self._lengths = np.zeros((2, len(self.keys)), np.int64)
        for i, (keys, begins, lengths) in enumerate((first, second)):
            at = np.searchsorted(self.keys, keys)
            self._begins[i, at], self._lengths[i, at] = begins, lengths

    def distances(self, normalize: bool) -> Any:
        """The distance of each pair; those of similar lengths are worked out together."""
        hypothesis, truth = self._lengths
        found, longest = np.zeros(len(self.keys)), self._lengths.max(0)
        order = np.lexsort((-hypothesis, longest))
        while len(order):
            widest = np.arange(1, len(order) + 1) * (longest[order] + 1)  # cells if so many are taken
            count = max(int(np.searchsorted(widest, _CELLS)), 1)
            chosen = order[:count][np.argsort(-hypothesis[order[:count]], kind="stable")]
            found[chosen] = self._of(chosen)
            order = order[count:]
        if not normalize:
            return found
        return np.where(truth > 0, found / np.maximum(truth, 1), np.where(hypothesis > 0, np.inf, 0.0))

    def _columns(self, side: int, chosen: Any) -> Any:
        """The sequences as columns, the longer ones' ends below the shorter ones."""
        values, lengths = self._values[side], self._lengths[side, chosen]
        places = self._begins[side, chosen] + np.arange(lengths.max())[:, None]
        if not len(values):
            return np.zeros(places.shape, values.dtype)
        return values.take(places, mode="clip")

    def _of(self, chosen: Any) -> Any:
        """How many elements are put in, taken out or replaced; the longest hypothesis comes first.

        A row of the table of each pair at a time, less the places in the row: so what is put in is a minimum
        of what stands before.
        """
        hypothesis, truth = self._lengths[:, chosen]
        elements, truths = self._columns(0, chosen), self._columns(1, chosen)
        table = np.zeros((len(truths) + 1, len(chosen)), np.int32, order="C" if len(chosen) > 8 else "F")
        going_on = np.searchsorted(-hypothesis, -np.arange(len(elements))).tolist()
        for element, count in zip(elements, going_on):
            rows = table[:, :count]
            better = rows[:-1] - (truths[:, :count] == element[:count])
            rows += 1
            np.minimum(rows[1:], better, out=rows[1:])
            np.minimum.accumulate(rows, 0, out=rows)
        return table[truth, np.arange(len(chosen))] + truth


def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance") -> Tensor:
    """The edit distances float32 [...] of the sequences of two sparse tensors [..., places].

    `normalize`: over the length of the truth; infinite where only that is empty. TypeError for dense tensors.
    """
    for given, what in ((hypothesis, "Hypothesis"), (truth, "Truth")):
        if not isinstance(given, (SparseTensor, SparseTensorValue)):
            raise TypeError(f"{what} must be a SparseTensor.")
    parts = [part for x in (hypothesis, truth) for part in (x.indices, x.values, x.dense_shape)]
    return F.EditDistance(*parts, normalize=normalize, name=name)
