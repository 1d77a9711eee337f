"""What becomes of arguments whose layout machine code is not for: other code, or copies that it is for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from flowstone.framework.machine import machine
from flowstone.native.clusters.clusters import OPEN, Array, Cluster

__all__ = ["are_of", "copied", "has_pitch", "laid_out_for", "pitched_for", "without_strides"]


def laid_out_for(cluster: Cluster, inputs: Sequence[Any]) -> Cluster | None:
    """The cluster that takes inputs laid out as these are; None if there is none, or they are not of its
    types and sizes."""
    if not are_of(cluster, inputs):
        return None
    plain = without_strides(cluster)
    found = pitched_for(plain, inputs) or plain
    bounded = [i for i, _ in cluster.bounds]
    arrays = list(found.inputs)
    for i, x in enumerate(inputs):
        if not x.is_contiguous() and not (arrays[i].pitched and has_pitch(x.shape, x.stride())):
            strides = _strides(arrays[i], x)
            if i in bounded or not strides:
                return None
            arrays[i] = arrays[i]._replace(pitched=False, strides=strides)
    other = found._replace(inputs=tuple(arrays))
    return other if other != cluster and _has_columns_of(other, cluster) else None


def without_strides(cluster: Cluster) -> Cluster:
    """The cluster whose inputs are contiguous, or pitched."""
    return cluster._replace(inputs=tuple([array._replace(strides=()) for array in cluster.inputs]))


def _strides(array: Array, x: Any) -> tuple[int, ...]:
    """An input's strides, if they are the same in every step, and neighbours in memory are neighbours in the
    loops or found in a cache again; else nothing."""
    sizes, strides = tuple(x.shape), x.stride()
    if len(sizes) != len(array.dims) or sizes[1:] != array.dims[1:]:
        return ()
    if array.dims[0] == OPEN:  # of which other strides may depend
        last = _contiguous(sizes[1:])
        is_known = all([n == 1 or a in (0, b) for n, a, b in zip(sizes[1:], strides[1:], last)])
        return (0, *strides[1:]) if strides[0] == 0 and is_known else ()
    is_by_rows = [stride for n, stride in zip(sizes, strides) if n != 1][-1] <= 1
    if not is_by_rows and not machine.current().stays_cached(x.numel() * x.element_size()):
        return ()
    return tuple([stride if n != 1 else 0 for n, stride in zip(sizes, strides)])


def _contiguous(sizes: Sequence[int]) -> list[int]:
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


def _has_columns_of(other: Cluster, cluster: Cluster) -> bool:
    """Whether reductions of the other cluster go over the same rows and columns."""
    goes_by_rows = any(step.over or step.op == "ColumnIndex" for step in cluster.steps)
    return not goes_by_rows or other.loops().columns == cluster.loops().columns


def pitched_for(cluster: Cluster, inputs: Sequence[Any]) -> Cluster | None:
    """The cluster that takes inputs laid out as these are, whose rows lie apart; None if there is none, or
    they are not of its types and sizes."""
    if not are_of(cluster, inputs):
        return None
    arrays = list(cluster.inputs)
    for i, x in enumerate(inputs):
        if not x.is_contiguous() and not arrays[i].pitched and has_pitch(x.shape, x.stride()):
            arrays[i] = arrays[i]._replace(pitched=True)
    rank = len(cluster.dims)
    is_by_rows = cluster.split in (None, rank - 1)
    if tuple(arrays) == cluster.inputs or not is_by_rows or len(cluster.lead) > 1:
        return None
    if any(array.pitched and array.dims != cluster.dims for array in arrays):
        return None
    return cluster._replace(inputs=tuple(arrays))


def copied(cluster: Cluster, inputs: Sequence[Any]) -> list[Any] | None:
    """The inputs with copies in place of those that are not contiguous; None if all are, or they are not of
    the cluster's types and sizes."""
    if not are_of(cluster, inputs) or all([x.is_contiguous() for x in inputs]):
        return None
    return [x.contiguous() for x in inputs]


def are_of(cluster: Any, inputs: Sequence[Any]) -> bool:
    """Whether the inputs are of the types and sizes of a cluster's, or a product's."""
    for x, array in zip(inputs, cluster.inputs):
        if not hasattr(x, "stride") or str(x.dtype) != f"torch.{array.dtype}":
            return False
        size = math.prod(array.dims)
        if x.numel() % -size if size < 0 else x.numel() != size:
            return False
    return True


def has_pitch(dims: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether rows of the last dimension are whole, and equally far from each other."""
    if len(dims) < 2 or dims[-1] < 2 or strides[-1] != 1:
        return False
    kept = [(n, stride) for n, stride in zip(dims[:-1], strides[:-1]) if n != 1]
    if not kept or kept[-1][1] < dims[-1]:
        return False
    return all(a[1] == b[0] * b[1] for a, b in itertools.pairwise(kept))
