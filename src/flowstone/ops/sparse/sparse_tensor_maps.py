"""Maps that keep sparse tensors between steps, so that queues can hold their numbers (int64).

A tensor that is put in gets the next number; taking it by its number removes it. A map lives in the session's
containers under the shared name of the nodes that use it, by default the name of the one that adds.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import invalid

_SHARING = "container: string = '' ; shared_name: string = ''"
_PARTS = "sparse_indices: int64, sparse_values: T, sparse_shape: int64"
_Parts = tuple[torch.Tensor, Any, list[int]]


class SparseTensorMap:
    """Sparse tensors, as (indices, values, sizes), by number; safe for concurrent use."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._numbers = itertools.count()
        self._tensors: dict[int, _Parts] = {}
        self._lock = threading.Lock()

    def add(self, tensors: Sequence[_Parts]) -> list[int]:
        """Keeps these tensors; returns their numbers."""
        with self._lock:
            numbers = list(itertools.islice(self._numbers, len(tensors)))
            self._tensors.update(zip(numbers, tensors))
        return numbers

    def take(self, numbers: Sequence[int]) -> list[_Parts]:
        """Removes and returns the tensors of these numbers. InvalidArgumentError if one is not there."""
        taken = []
        with self._lock:
            for number in numbers:
                if number not in self._tensors:
                    raise invalid(f"Unable to find SparseTensor: {number} in map: {self.name}")
                taken.append(self._tensors.pop(number))
        return taken


def _map_of(node: Node, env: Environment) -> SparseTensorMap:
    name = node.attributes["shared_name"] or node.name
    key = ("SparseTensorMap", name)
    assert env.resources is not None  # a session's: the op is stateful
    found: SparseTensorMap = env.resources.look_up_or_create(
        node.attributes["container"], key, lambda: SparseTensorMap(name)
    )
    return found


def _check_ranks(node: Node, *ranks: int) -> None:
    for i, rank in enumerate(ranks):
        dims = node.dims(i)
        if dims is not None and len(dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}")


def _checked_sizes(indices: torch.Tensor, values: Any, shape: torch.Tensor) -> list[int]:
    """The sizes of a sparse tensor. InvalidArgumentError unless its parts fit together."""
    if indices.ndim != 2:
        raise invalid(
            f"Input indices should be a matrix but received shape {format_dims(tuple(indices.shape))}"
        )
    for part, what in ((values, "values"), (shape, "shape")):
        if part.ndim != 1:
            raise invalid(
                f"Input {what} should be a vector but received shape {format_dims(tuple(part.shape))}"
            )
    sizes: list[int] = shape.tolist()
    if len(indices) != len(values):
        raise invalid(
            "indices and values rows (indexing dimension) must match. "
            f"(indices = {len(indices)}, values = {len(values)})"
        )
    if indices.shape[1] != len(sizes):
        raise invalid(
            "Number of dimensions must match second dimension of indices. "
            f"Got {len(sizes)} dimensions, indices shape: {format_dims(tuple(indices.shape))}"
        )
    for size in sizes:
        if size < 0:
            raise invalid(f"Dimension {size} must be >= 0")
    return sizes


def _copy(values: Any) -> Any:
    return values.clone() if isinstance(values, torch.Tensor) else values.copy()


# ---- adding


def _declare_addition(name: str, output: str) -> OpDeclaration:
    return op(name, f"{_PARTS} -> {output}: int64", _SHARING, T=None, stateful=True).no_gradient()


add_sparse_op = _declare_addition("AddSparseToTensorsMap", "sparse_handle")
add_many_sparse_op = _declare_addition("AddManySparseToTensorsMap", "sparse_handles")


@add_sparse_op.infer
def _(node: Node) -> tuple[()]:
    _check_ranks(node, 2, 1, 1)
    return ()


@add_sparse_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., torch.Tensor]:
    kept = _map_of(node, env)

    def add(indices: torch.Tensor, values: Any, shape: torch.Tensor) -> torch.Tensor:
        sizes = _checked_sizes(indices, values, shape)
        return torch.tensor(kept.add([(indices.clone(), _copy(values), sizes)])[0])

    return add


@add_many_sparse_op.infer
def _(node: Node) -> tuple[None]:
    _check_ranks(node, 2, 1, 1)
    return (None,)


@add_many_sparse_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., torch.Tensor]:
    kept = _map_of(node, env)

    def add(indices: torch.Tensor, values: Any, shape: torch.Tensor) -> torch.Tensor:
        sizes = _checked_sizes(indices, values, shape)
        if len(sizes) < 2:
            raise invalid(f"Rank of input SparseTensor should be > 1, but saw rank: {len(sizes)}")
        return torch.tensor(kept.add(_rows(indices.clone(), _copy(values), sizes)), dtype=torch.int64)

    return add


def _rows(indices: torch.Tensor, values: Any, sizes: list[int]) -> list[_Parts]:
    """The sparse tensors that are the rows of one whose elements are in order."""
    first = indices[:, 0].contiguous()
    _check_rows(indices, first, sizes)
    ends = torch.searchsorted(first, torch.arange(1, sizes[0] + 1)).tolist()
    starts = [0, *ends[:-1]]
    return [(indices[a:b, 1:], values[a:b], sizes[1:]) for a, b in zip(starts, ends)]


def _check_rows(indices: torch.Tensor, first: torch.Tensor, sizes: list[int]) -> None:
    outside = (indices < 0) | (indices >= torch.tensor(sizes))
    if bool(outside.any()):
        i = int(outside.any(1).nonzero()[0])
        raise invalid(
            f"indices[{i}] = {_listed(indices[i])} is out of bounds: need 0 <= index < {_listed(sizes)}"
        )
    descends = first[1:] < first[:-1]
    if bool(descends.any()):
        i = int(descends.nonzero()[0]) + 1
        raise invalid(
            f"indices[{i}] = {_listed(indices[i])} is out of order. Many sparse ops require sorted indices."
        )


def _listed(numbers: Any) -> str:
    return format_dims(tuple(int(n) for n in numbers))


# ---- taking

take_many_sparse_op = op(
    "TakeManySparseFromTensorsMap",
    "sparse_handles: int64 -> sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
    _SHARING,
    dtype=None,
    stateful=True,
).no_gradient()


@take_many_sparse_op.infer
def _(node: Node) -> list[Any]:
    _check_ranks(node, 1)
    return [(None, None), (None,), (None,)]


@take_many_sparse_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    kept, dtype = _map_of(node, env), node.attributes["dtype"]

    def take(handles: torch.Tensor) -> Any:
        if handles.ndim != 1:
            raise invalid(
                f"sparse_handles should be a vector but received shape {format_dims(tuple(handles.shape))}"
            )
        if len(handles) == 0:
            raise invalid("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows")
        tensors = kept.take(handles.tolist())
        _check_taken(tensors, dtype)
        return _stacked(tensors)

    return take


def _check_taken(tensors: list[_Parts], dtype: dtypes.DType) -> None:
    rank = len(tensors[0][2])
    for i, (_, values, sizes) in enumerate(tensors):
        found = dtypes.from_torch(values.dtype) if isinstance(values, torch.Tensor) else dtypes.string
        if found is not dtype.base_dtype:
            raise invalid(
                f"Requested SparseTensor of type {dtype.name} but SparseTensor[{i}].values.dtype() == "
                f"{found.name}"
            )
        if len(sizes) != rank:
            raise invalid(
                f"Inconsistent rank across SparseTensors: rank prior to SparseTensor[{i}] was: {rank + 1} "
                f"but rank of SparseTensor[{i}] is: {len(sizes) + 1}"
            )


def _stacked(tensors: list[_Parts]) -> tuple[torch.Tensor, Any, torch.Tensor]:
    """One sparse tensor of these as rows, as large as the largest in each dimension."""
    numbered = [
        torch.cat([torch.full((len(indices), 1), i), indices], 1) for i, (indices, _, _) in enumerate(tensors)
    ]
    values = [part for _, part, _ in tensors]
    joined = torch.cat(values) if isinstance(values[0], torch.Tensor) else np.concatenate(values)
    sizes = [len(tensors), *map(max, zip(*[sizes for _, _, sizes in tensors]))]
    return torch.cat(numbered), joined, torch.tensor(sizes)
