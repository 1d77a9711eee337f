"""Edit distances (Levenshtein, 1966) of sequences in sparse tensors, whose last dimension is the place."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.composite import SparseTensor, SparseTensorValue
from flowstone.framework.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.node import Node
from flowstone.framework.operation import F, Shapes, op
from flowstone.framework.shape import merge
from flowstone.framework.tensor import Tensor
from flowstone.ops.arrays.arrays import invalid

__all__ = ["edit_distance"]

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
    merge(node.dims(2), node.dims(5))
    first, second = node.constant(2), node.constant(5)
    if first is None or second is None:
        return None
    return tuple(int(max(a, b)) for a, b in zip(first[:-1], second[:-1]))


@edit_distance_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    normalize = node.attributes["normalize"]

    def distances(*parts: Any) -> torch.Tensor:
        arrays = [part if isinstance(part, np.ndarray) else part.numpy() for part in parts]
        (a_at, a, a_shape), (b_at, b, b_shape) = arrays[:3], arrays[3:]
        if len(a_shape) != len(b_shape):
            raise invalid(
                f"hypothesis and truth must be of one rank, but have {len(a_shape)} and {len(b_shape)}"
            )
        sizes = np.maximum(a_shape, b_shape)[:-1]
        for at, values in ((a_at, a), (b_at, b)):
            _check(at, values, sizes)
        result = np.zeros(sizes, np.float32)
        hypotheses, truths = _sequences(a_at, a), _sequences(b_at, b)
        for key in hypotheses.keys() | truths.keys():
            result[key] = _distance(hypotheses.get(key, a[:0]), truths.get(key, b[:0]), normalize)
        return torch.from_numpy(result)

    return distances


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


def _sequences(at: Any, values: Any) -> dict[tuple[int, ...], Any]:
    """The values of each sequence, by its place among the sequences."""
    if not len(at):
        return {}
    changes = np.flatnonzero((at[1:, :-1] != at[:-1, :-1]).any(1)) + 1
    starts = np.concatenate([[0], changes])
    keys = [tuple(row) for row in at[starts, :-1].tolist()]
    return dict(zip(keys, np.split(values, changes)))


def _distance(hypothesis: Any, truth: Any, normalize: bool) -> float:
    """How many elements are put in, taken out or replaced; a row of the table at a time."""
    places = np.arange(len(truth) + 1)
    row = places.copy()
    for element in hypothesis:
        replaced = row[:-1] + (truth != element)
        row = np.concatenate([row[:1] + 1, np.minimum(row[1:] + 1, replaced)])
        row = np.minimum.accumulate(row - places) + places  # what is put in
    if not normalize:
        return float(row[-1])
    if not len(truth):
        return float("inf") if len(hypothesis) else 0.0
    return float(row[-1]) / len(truth)


def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance") -> Tensor:
    """The edit distances float32 [...] of the sequences of two sparse tensors [..., places].

    `normalize`: over the length of the truth; infinite where only that is empty. TypeError for dense tensors.
    """
    for given, what in ((hypothesis, "Hypothesis"), (truth, "Truth")):
        if not isinstance(given, (SparseTensor, SparseTensorValue)):
            raise TypeError(f"{what} must be a SparseTensor.")
    parts = [part for x in (hypothesis, truth) for part in (x.indices, x.values, x.dense_shape)]
    return F.EditDistance(*parts, normalize=normalize, name=name)
