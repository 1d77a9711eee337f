"""Sets in the last dimension of dense and sparse tensors: unions, intersections, differences, sizes.

All other dimensions say which set it is: two operands have the same number of dimensions, and the same sizes
but for the last. A result is a sparse tensor whose sets are in increasing order (text by its bytes), without
repetition; its last size is that of the largest set. An integer becomes one number with its set's, so that
the work is sorting and comparing numbers; texts of a set are a Python set, a set at a time.

The kernels are for CPUs: how large results are is only known there, as in TensorFlow, which has no others.

>>> _combined("a-b", np.array([3, 1, 1]), np.array([1, 2]))
array([3])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.distinct_texts import numbered
from flowstone.ops.sparse.few_sets import FEW, few_combined
from flowstone.ops.sparse.index_rows import (
    LARGEST,
    check_countable,
    check_rank,
    check_rows,
    check_sparse_dims,
    checked_parts,
    listed,
    positions,
    rows_at,
)

TYPES = (
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint16,
    dtypes.string,
)
_RESULT = "result_indices: int64, result_values: T, result_shape: int64"
_KIND = "set_operation: string ; validate_indices: bool = true"
_KINDS = ("a-b", "b-a", "intersection", "union")

_Array = np.ndarray[Any, Any]
_Element = tuple[torch.Tensor, Any]  # of each element: the number of its set, and its value


# ---- numbers of elements


def _values_numbered(first: Any, second: Any) -> tuple[_Array, _Array, int, Callable[[_Array], Any]]:
    """Numbers of two vectors' values in their order, how many numbers there may be, and the values of
    numbers.
    """
    dtype = first.dtype
    a, b = (values.numpy().astype(np.int64, copy=False) for values in (first, second))
    extremes = [int(x) for values in (a, b) if len(values) for x in (values.min(), values.max())]
    low, high = min(extremes, default=0), max(extremes, default=0)
    if high - low < LARGEST // 4:
        return a - low, b - low, high - low + 1, lambda numbers: torch.from_numpy(numbers + low).to(dtype)
    return _ranked(a, b, lambda found: torch.from_numpy(found).to(dtype))


def _ranked(a: _Array, b: _Array, convert: Callable[[_Array], Any]) -> tuple[_Array, _Array, int, Any]:
    table, numbers = np.unique(np.concatenate((a, b)), return_inverse=True)
    return numbers[: len(a)], numbers[len(a) :], len(table), lambda found: convert(table[found])


def _elements_numbered(
    first: _Element, second: _Element
) -> tuple[_Array, _Array, Callable[[_Array], tuple[_Array, Any]]]:
    """One number an element: that of its set, then that of its value. Last, the function that gives back the
    sets and values of such numbers.
    """
    a, b, span, values_of = _values_numbered(first[1], second[1])
    sets = [first[0].numpy(), second[0].numpy()]
    highest = max((int(each.max()) for each in sets if len(each)), default=0)
    if (highest + 1) * span <= LARGEST:
        known = sets
        set_of: Callable[[_Array], _Array] = lambda numbers: numbers  # noqa: E731
    else:
        table, ranks = np.unique(np.concatenate(sets), return_inverse=True)
        known = [ranks[: len(sets[0])], ranks[len(sets[0]) :]]
        set_of = table.__getitem__
        if len(table) * span > LARGEST:
            a, b, span, values_of = _ranked(a, b, values_of)

    def parts(numbers: _Array) -> tuple[_Array, Any]:
        upper, lower = np.divmod(numbers, span)
        return set_of(upper), values_of(lower)

    return known[0] * span + a, known[1] * span + b, parts


_ENTRIES = 16  # of a table for each number, up to which it takes less time than sorting


def _table(*parts: _Array) -> list[_Array] | None:
    """For each part, which of all numbers from 0 to the largest are in it; None where these are many more."""
    entries = 1 + max((int(each.max()) for each in parts if len(each)), default=-1)
    if entries > _ENTRIES * sum(map(len, parts)):
        return None
    tables = [np.zeros(entries, bool) for _ in parts]
    for table, part in zip(tables, parts):
        table[part] = True
    return tables


def _distinct(numbers: _Array) -> _Array:
    """The numbers, which are not negative, in increasing order, each once."""
    if table := _table(numbers):
        return np.flatnonzero(table[0])
    ordered = np.sort(numbers)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


def _combined(kind: str, a: _Array, b: _Array) -> _Array:
    """The numbers of the result, in increasing order."""
    if tables := _table(a, b):
        x, y = tables if kind != "b-a" else tables[::-1]
        return np.flatnonzero(x | y if kind == "union" else x & y if kind == "intersection" else x & ~y)
    if kind == "union":
        return _distinct(np.concatenate((a, b)))
    if kind == "b-a":
        a, b = b, a
    a, b = _distinct(a), _distinct(b)
    both = np.sort(np.concatenate((a, b)), kind="stable")  # two runs, which are merged
    shared = both[1:][both[1:] == both[:-1]]
    if kind == "intersection" or not len(shared):
        return shared if kind == "intersection" else a
    kept = np.ones(len(a), bool)
    kept[np.searchsorted(a, shared)] = False
    return a[kept]


# ---- texts, in Python's sets


def _runs(element: _Element, sets: _Array) -> list[list[bytes]]:
    """The texts of each of these sets."""
    numbers, texts = element[0].numpy(), element[1]
    if len(numbers) > 1 and (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        numbers, texts = numbers[order], texts[order]
    begins, ends = (np.searchsorted(numbers, sets, side).tolist() for side in ("left", "right"))
    found = texts.tolist()
    return [found[a:b] for a, b in zip(begins, ends)]


_OF_TEXTS: dict[str, Callable[[list[bytes], list[bytes]], set[bytes]]] = {
    "a-b": lambda a, b: set(a).difference(b),
    "b-a": lambda a, b: set(b).difference(a),
    "intersection": lambda a, b: set(a).intersection(b),
    "union": lambda a, b: {*a, *b},
}


def _texts_combined(kind: str, first: _Element, second: _Element) -> tuple[_Array, _Array]:
    """The set and the text of each element of the results."""
    sets = np.unique(np.concatenate((first[0].numpy(), second[0].numpy())))
    combine = _OF_TEXTS[kind]
    results = [sorted(combine(a, b)) for a, b in zip(_runs(first, sets), _runs(second, sets))]
    texts = [text for result in results for text in result]
    array = np.empty(len(texts), object)
    array[:] = texts
    return np.repeat(sets, [len(result) for result in results]), array


# ---- operations


def _operate(
    kind: str, first: _Element, second: _Element, sizes: Sequence[int]
) -> tuple[torch.Tensor, Any, torch.Tensor]:
    """The sparse tensor of results; `sizes` are those before the last."""
    if isinstance(first[1], torch.Tensor):
        if len(first[1]) + len(second[1]) <= FEW:
            return few_combined(kind, first, second, sizes)
        a, b, parts = _elements_numbered(first, second)
        sets, values = parts(_combined(kind, a, b))
    else:
        sets, values = _texts_combined(kind, first, second)
    starts = np.concatenate(([True], sets[1:] != sets[:-1])) if len(sets) else np.zeros(0, bool)
    begins = np.flatnonzero(starts)
    lengths = np.diff(begins, append=len(sets))
    places = np.arange(len(sets)) - np.repeat(begins, lengths)
    rows = torch.cat((rows_at(torch.from_numpy(sets), sizes), torch.from_numpy(places)[:, None]), 1)
    largest = int(lengths.max()) if len(lengths) else 0
    return rows, values, torch.tensor([*sizes, largest], dtype=torch.int64)


# ---- operands


def _dense_elements(values: Any) -> _Element:
    count, size = math.prod(values.shape[:-1]), values.shape[-1]
    return torch.arange(count)[:, None].expand(count, size).reshape(-1), values.reshape(-1)


def _sparse_elements(rows: torch.Tensor, values: Any, sizes: Sequence[int]) -> _Element:
    return positions(rows[:, :-1], sizes[:-1]), values


def _check_dense(name: str, values: Any) -> None:
    if values.ndim < 2:
        raise invalid(f"{name} must have at least 2 dimensions, but has the shape {listed(values.shape)}")


def _check_sets(first: Sequence[int], second: Sequence[int]) -> None:
    if list(first[:-1]) != list(second[:-1]):
        raise invalid(
            f"Mismatched sets: the sizes before the last must be equal, but are {listed(first[:-1])} and "
            f"{listed(second[:-1])}"
        )


def _sparse_sizes(
    rows: torch.Tensor, values: Any, shape: torch.Tensor, what: str, validate: bool
) -> list[int]:
    sizes = checked_parts(rows, values, shape, what)
    if len(sizes) < 2:
        raise invalid(f"{what}shape = {listed(sizes)} must have at least 2 dimensions")
    check_countable(sizes, f"{what}shape")
    if validate:
        check_rows(rows, sizes, f"{what}indices")
    return sizes


def _kept(rows: torch.Tensor, values: Any, sizes: Sequence[int]) -> tuple[torch.Tensor, Any]:
    """The elements, unchecked before, that belong to a set. InternalError where one lies beyond its end."""
    limits = torch.tensor(list(sizes))
    outside = (rows < 0) | (rows >= limits)
    if not bool(outside.any()):
        return rows, values
    if bool(outside[:, -1].any()):
        i = int(outside[:, -1].nonzero()[0])
        raise errors.InternalError(
            None, None, f"indices[{i}] = {listed(rows[i])} is outside of the shape {listed(sizes)}"
        )
    inside = ~outside.any(1)
    kept = values[inside] if isinstance(values, torch.Tensor) else values[inside.numpy()]
    return rows[inside], kept


def _kind_of(node: Node) -> str:
    """The operation; InvalidArgumentError, in the step, for what is none."""
    return str(node.attributes["set_operation"]).lower()


def _check_kind(kind: str) -> None:
    if kind not in _KINDS:
        raise invalid(f"Invalid set_operation {kind}: it must be one of {', '.join(_KINDS)}")


def _result_dims(rank: int | None) -> list[Dims]:
    return [(None, rank), (None,), (rank,)]


def _check_set_rank(dims: Dims) -> None:
    if dims is not None and len(dims) < 2:
        raise ValueError(f"Shape must be at least rank 2 but is rank {len(dims)}")


def _sparse_rank(node: Node, first: int) -> int | None:
    """The number of dimensions of the sparse sets at input `first`."""
    check_sparse_dims(node, first)
    dims = node.dims(first + 2)
    rank = None if dims is None else dims[0]
    if rank is not None and rank < 2:
        raise ValueError(f"Input {first}, expected rank >= 2, got {rank}.")
    return rank


def _same_rank(first: int | None, second: int | None) -> int | None:
    if first is not None and second is not None and first != second:
        raise ValueError(f"Dimension must be {first} but is {second}")
    return second if first is None else first


# ---- two dense tensors

dense_to_dense_op = op(
    "DenseToDenseSetOperation", f"set1: T, set2: T -> {_RESULT}", _KIND, T=TYPES, cost=20
).not_differentiable()


@dense_to_dense_op.infer
def _(node: Node) -> Shapes:
    first, second = node.dims(0), node.dims(1)
    if first is not None:
        _check_set_rank(first)
        check_rank(second, len(first))
    _check_set_rank(second)
    if first is not None and second is not None:
        merge(first[:-1], second[:-1])
    known = second if first is None else first
    return _result_dims(None if known is None else len(known))


@dense_to_dense_op.kernel(CPU)  # sets may be of strings, and their sizes are only known on the host
def _(node: Node, env: Environment) -> Kernel:
    kind = _kind_of(node)

    def operate(first: Any, second: Any) -> Any:
        _check_kind(kind)
        _check_dense("set1", first)
        _check_dense("set2", second)
        _check_sets(first.shape, second.shape)
        return _operate(kind, _dense_elements(first), _dense_elements(second), first.shape[:-1])

    return operate


# ---- a dense and a sparse tensor

dense_to_sparse_op = op(
    "DenseToSparseSetOperation",
    f"set1: T, set2_indices: int64, set2_values: T, set2_shape: int64 -> {_RESULT}",
    _KIND,
    T=TYPES,
    cost=20,
).not_differentiable()


@dense_to_sparse_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    _check_set_rank(dims)
    rank = _sparse_rank(node, 1)
    return _result_dims(_same_rank(None if dims is None else len(dims), rank))


@dense_to_sparse_op.kernel(CPU)  # sets may be of strings, and their sizes are only known on the host
def _(node: Node, env: Environment) -> Kernel:
    kind, validate = _kind_of(node), node.attributes["validate_indices"]

    def operate(first: Any, rows: torch.Tensor, values: Any, shape: torch.Tensor) -> Any:
        _check_kind(kind)
        _check_dense("set1", first)
        second = _sparse_sizes(rows, values, shape, "set2_", validate)
        _check_sets(first.shape, second)
        if not validate:
            rows, values = _kept(rows, values, second)
        return _operate(kind, _dense_elements(first), _sparse_elements(rows, values, second), second[:-1])

    return operate


# ---- two sparse tensors

sparse_to_sparse_op = op(
    "SparseToSparseSetOperation",
    "set1_indices: int64, set1_values: T, set1_shape: int64, set2_indices: int64, set2_values: T, "
    f"set2_shape: int64 -> {_RESULT}",
    _KIND,
    T=TYPES,
    cost=20,
).not_differentiable()


@sparse_to_sparse_op.infer
def _(node: Node) -> Shapes:
    return _result_dims(_same_rank(_sparse_rank(node, 0), _sparse_rank(node, 3)))


@sparse_to_sparse_op.kernel(CPU)  # sets may be of strings, and their sizes are only known on the host
def _(node: Node, env: Environment) -> Kernel:
    kind, validate = _kind_of(node), node.attributes["validate_indices"]

    def operate(
        rows1: torch.Tensor,
        values1: Any,
        shape1: torch.Tensor,
        rows2: torch.Tensor,
        values2: Any,
        shape2: torch.Tensor,
    ) -> Any:
        _check_kind(kind)
        sizes1 = _sparse_sizes(rows1, values1, shape1, "set1_", validate)
        sizes2 = _sparse_sizes(rows2, values2, shape2, "set2_", validate)
        _check_sets(sizes1, sizes2)
        if not validate:
            rows1, values1 = _kept(rows1, values1, sizes1)
            rows2, values2 = _kept(rows2, values2, sizes2)
        first, second = _sparse_elements(rows1, values1, sizes1), _sparse_elements(rows2, values2, sizes2)
        return _operate(kind, first, second, sizes1[:-1])

    return operate


# ---- sizes

set_size_op = op(
    "SetSize",
    "set_indices: int64, set_values: T, set_shape: int64 -> size: int32",
    "validate_indices: bool = true",
    T=TYPES,
    cost=10,
).not_differentiable()


@set_size_op.infer
def _(node: Node) -> Shapes:
    return None


@set_size_op.kernel(CPU)  # sets may be of strings, and their sizes are only known on the host
def _(node: Node, env: Environment) -> Kernel:
    validate = node.attributes["validate_indices"]

    def measure(rows: torch.Tensor, values: Any, shape: torch.Tensor) -> torch.Tensor:
        sizes = _sparse_sizes(rows, values, shape, "set_", validate)[:-1]
        if not validate and len(rows) and bool(((rows < 0) | (rows >= shape)).any()):
            raise errors.InternalError(None, None, f"an index is outside of the shape {listed(shape)}")
        result = torch.zeros(sizes, dtype=torch.int32)
        if not isinstance(values, torch.Tensor):
            values = torch.from_numpy(numbered(values.tolist())[1])
        elements, none = _sparse_elements(rows, values, [*sizes, 0]), (rows.new_zeros(0), values[:0])
        numbers, _, parts = _elements_numbered(elements, none)
        sets = torch.from_numpy(parts(_distinct(numbers))[0])
        return result.view(-1).index_add_(0, sets, torch.ones(len(sets), dtype=torch.int32)).view(sizes)

    return measure
