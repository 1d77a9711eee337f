"""Sparse tensors in batches: a queue holds numbers for them, and the tensors wait in a map.

Queues hold dense tensors only. So a sparse tensor is put into a *map* of the session and its number, an int64
[1], into the queue; a batch of numbers is exchanged for one sparse tensor, of one rank more. The numbers are
taken out of the map, hence no tensor of a batch can be computed without taking all of them out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.graphs.graph_functions import get_static_value
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.gathering import gather
from flowstone.ops.control.conditionals import cond
from flowstone.ops.control.control_flow import with_dependencies

__all__ = ["restore_sparse_tensors", "store_sparse_tensors", "where_kept"]


class StoredSparseTensor:
    """Where a component of a queue, a sparse tensor, is kept.

    `operation`: what puts it into the map; `rank`: of the tensor in a batch, None if unknown; `dtype`.
    """

    def __init__(self, operation: Operation, rank: int | None, dtype: dtypes.DType) -> None:
        self.operation, self.rank, self.dtype = operation, rank, dtype


def where_kept(keep: Tensor, function: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """``cond(keep, function, otherwise)``, without a conditional where `keep` is known."""
    known = get_static_value(keep)
    if known is None:
        return cond(keep, function, otherwise)
    return function() if known else otherwise()


def store_sparse_tensors(
    lists: list[list[Any]], keep: Tensor, enqueue_many: bool
) -> tuple[list[list[Tensor]], list[StoredSparseTensor | None]]:
    """The lists with a tensor of numbers in place of each sparse tensor, and what is known of these.

    Sparse tensors at the same place of the lists share a map. Raises ValueError if they are not sparse in
    all lists, or of different ranks.
    """
    first = _stored_list(lists[0], [None] * len(lists[0]), keep, enqueue_many)
    stored = [first[0]]
    for row in lists[1:]:
        if not _alike(lists[0], row):
            raise ValueError(f"Inconsistent SparseTensors list: {lists[0]} vs. {row}")
        stored.append(_stored_list(row, first[1], keep, enqueue_many)[0])
    return stored, first[1]


def _alike(first: list[Any], other: list[Any]) -> bool:
    ranks = [[_rank(x) if isinstance(x, SparseTensor) else "dense" for x in row] for row in (first, other)]
    return all(a == b for a, b in zip(*ranks))


def _rank(tensor: SparseTensor) -> int | None:
    return tensor.dense_shape.shape.with_rank(1)[0].value  # type: ignore[no-any-return]


def _stored_list(
    tensors: list[Any], shared: list[StoredSparseTensor | None], keep: Tensor, enqueue_many: bool
) -> tuple[list[Tensor], list[StoredSparseTensor | None]]:
    places: list[StoredSparseTensor | None] = []
    numbers: list[Any] = []
    for tensor, other in zip(tensors, shared):
        if not isinstance(tensor, SparseTensor):
            places.append(None)
            numbers.append(tensor)
            continue
        operation, number = _store(
            tensor, keep, enqueue_many, None if other is None else other.operation.name
        )
        rank = _rank(tensor)
        in_batch = rank if rank is None or enqueue_many else rank + 1
        places.append(StoredSparseTensor(operation, in_batch, tensor.dtype))
        numbers.append(number)
    return [F.ExpandDims(x, -1) if place else x for x, place in zip(numbers, places)], places


def _store(
    tensor: SparseTensor, keep: Tensor, enqueue_many: bool, shared_name: str | None
) -> tuple[Operation, Tensor]:
    """What puts the tensor into a map where it is to be kept, and the number, or numbers, of it there."""
    made: list[Operation] = []

    def add(declaration: Any, part: SparseTensor) -> Tensor:
        number: Tensor = declaration(part.indices, part.values, part.dense_shape, shared_name=shared_name)
        made.append(number.op)
        return number

    if not enqueue_many:
        number = where_kept(
            keep, lambda: add(F.AddSparseToTensorsMap, tensor), lambda: constant(-1, dtypes.int64)
        )
    elif keep.shape.ndims == 1:
        number = add(F.AddManySparseToTensorsMap, _kept_rows(tensor, keep))
    else:
        number = where_kept(
            keep, lambda: add(F.AddManySparseToTensorsMap, tensor), lambda: _no_numbers(tensor)
        )
    return made[0], number


def _no_numbers(tensor: SparseTensor) -> Tensor:
    with get_default_graph().name_scope("Shape"):
        sizes = F.Cast(tensor.dense_shape, DstT=dtypes.int32, name="Cast")
    rows = sizes[0:1]
    with get_default_graph().name_scope("ones") as scope:
        ones = F.Fill(rows, constant(1, dtypes.int64, name="Const"), name=scope)
    return -1 * ones


def _kept_rows(tensor: SparseTensor, keep: Tensor) -> SparseTensor:
    """The tensor without the elements of the rows that are not kept; the rows stay, empty."""
    of_kept_row = gather(keep, tensor.indices[:, 0])
    places = F.Reshape(F.Where(of_kept_row), [-1])
    return SparseTensor(
        gather(tensor.indices, places), gather(tensor.values, places), F.Identity(tensor.dense_shape)
    )


def restore_sparse_tensors(tensors: list[Tensor], places: list[StoredSparseTensor | None]) -> list[Any]:
    """The components of a batch, with sparse tensors in place of their numbers.

    If there are any, each component waits until all others are taken out, too."""
    if not any(places):
        return tensors
    taken = [tensor if place is None else _take(tensor, place) for tensor, place in zip(tensors, places)]
    if len(taken) == 1:
        return taken
    sources = [x.indices.op if isinstance(x, SparseTensor) else x.op for x in taken]
    return [
        _after([op for op in dict.fromkeys(sources) if op is not source], value)
        for value, source in zip(taken, sources)
    ]


def _take(numbers: Tensor, place: StoredSparseTensor) -> SparseTensor:
    numbers = F.Squeeze(numbers, squeeze_dims=[1])
    indices, values, sizes = F.TakeManySparseFromTensorsMap(
        numbers, dtype=place.dtype, shared_name=place.operation.name
    )
    if place.rank is not None:
        indices.set_shape([None, place.rank])
        sizes.set_shape([place.rank])
    return SparseTensor(indices, values, sizes)


def _after(operations: list[Operation], value: Any) -> Any:
    if not isinstance(value, SparseTensor):
        return with_dependencies(operations, value)
    parts = (value.indices, value.values, value.dense_shape)
    return SparseTensor(*[with_dependencies(operations, part) for part in parts])
