"""Rows of a sparse or ragged tensor that have no element get one: SparseFillEmptyRows, RaggedFillEmptyRows.

On a host machine code makes one pass over ordered elements. For others, and without it, NumPy works out what
goes where, in a quarter of the time of ATen's calls for some hundred elements.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine import array_code
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import merge
from flowstone.ops.arrays.arrays import invalid, sizes_of
from flowstone.ops.sparse.elements import copied, filled, put, taken
from flowstone.ops.sparse.index_rows import check_rank, checked_parts, listed, places_of

sparse_fill_empty_rows_op = op(
    "SparseFillEmptyRows",
    "indices: int64, values: T, dense_shape: int64, default_value: T -> output_indices: int64, "
    "output_values: T, empty_row_indicator: bool, reverse_index_map: int64",
    T=None,
    host=["dense_shape"],
    capturable=False,
    cost=4,
)


@sparse_fill_empty_rows_op.infer
def _(node: Node) -> Shapes:
    indices, values, shape = node.dims(0), node.dims(1), node.dims(2)
    for i, expected in enumerate((2, 1, 1, 0)):
        check_rank(node.dims(i), expected)
    count = merge(None if indices is None else indices[:1], values) or (None,)
    rank = merge(None if indices is None else indices[1:], shape) or (None,)
    if rank == (0,):
        raise ValueError("dense_shape must not be empty")
    sizes = sizes_of(node, 2)
    return [(None, *rank), (None,), (sizes[0] if sizes else None,), count]


@sparse_fill_empty_rows_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    kind = node.dtype(1).torch

    return lambda rows, values, shape, default: _filled(kind, rows, values, shape, default)


def _filled(kind: Any, rows: torch.Tensor, values: Any, shape: torch.Tensor, default: Any) -> tuple[Any, ...]:
    """The four outputs."""
    if getattr(default, "ndim", 0):
        raise invalid(f"default_value must be a scalar, saw shape: {listed(default.shape)}")
    sizes = checked_parts(rows, values, shape)
    if not sizes:
        raise invalid("Dense shape cannot be empty.")
    if rows.device.type == "cpu":
        code = array_code.filled_rows(kind)
        found = code(rows, values, sizes[0], default) if code else None
        return found or _filled_by_numpy(rows, values, sizes[0], default)
    empty = _empty_rows(rows, sizes[0])
    numbers = places_of(empty)
    if not len(numbers) and _is_ordered(rows[:, 0]):
        return rows.clone(), copied(values), empty, torch.arange(len(rows), device=rows.device)
    places, order = _places(rows[:, 0], empty)
    total = len(rows) + len(numbers)
    indices = rows.new_zeros((total, rows.shape[1]))
    indices.index_copy_(0, places, rows if order is None else rows.index_select(0, order))
    added = torch.ones(total, dtype=torch.bool, device=rows.device)
    added[places] = False
    indices[:, 0].index_copy_(0, places_of(added), numbers)
    elements = filled(default, total)
    put(elements, places, values if order is None else taken(values, order))
    if order is not None:
        places = torch.empty_like(places).scatter_(0, order, places)
    return indices, elements, empty, places


def _filled_by_numpy(rows: torch.Tensor, values: Any, count: int, default: Any) -> tuple[Any, ...]:
    """The four outputs, all on a host."""
    array = rows.numpy()
    first = array[:, 0]
    order = None if not (first[1:] < first[:-1]).any() else np.argsort(first, kind="stable")
    if order is not None:
        array, first = array[order], first[order]
    if len(first) and (first[0] < 0 or first[-1] >= count):
        _refuse(rows, count)
    is_empty = torch.empty(count, dtype=torch.bool)  # first: of too many NumPy says that they are invalid
    lengths = np.bincount(first, minlength=count)
    empty = np.equal(lengths, 0, out=is_empty.numpy())
    numbers = np.flatnonzero(empty)
    if not len(numbers) and order is None:
        return rows.clone(), copied(values), is_empty, torch.arange(len(rows))
    places = np.arange(len(first)) + np.cumsum(empty)[first]
    found = np.zeros((len(first) + len(numbers), array.shape[1]), np.int64)
    found[places] = array
    found[np.cumsum(lengths)[numbers] + np.arange(len(numbers)), 0] = numbers
    elements, where = filled(default, len(found)), torch.from_numpy(places)
    put(elements, where, values if order is None else taken(values, torch.from_numpy(order)))
    if order is not None:
        where = torch.empty_like(where)
        where.numpy()[order] = places
    return torch.from_numpy(found), elements, is_empty, where


def _refuse(rows: torch.Tensor, count: int) -> NoReturn:
    """InvalidArgumentError that names an element of a row that there is not."""
    if not count:
        raise invalid(f"Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {len(rows)}")
    first = rows[:, 0]
    i = int(((first < 0) | (first >= count)).nonzero()[0])
    raise invalid(f"indices({i}, 0) is invalid: {int(first[i])} must be in [0, {count})")


def _empty_rows(rows: torch.Tensor, count: int) -> torch.Tensor:
    """Which rows have no element. InvalidArgumentError for elements of other rows."""
    first = rows[:, 0]
    if len(rows):
        low, high = (int(x) for x in torch.aminmax(first))
        if low < 0 or high >= count:
            _refuse(rows, count)
    empty = torch.ones(count, dtype=torch.bool, device=rows.device)
    empty[first] = False
    return empty


def _is_ordered(first: torch.Tensor) -> bool:
    return len(first) < 2 or bool((first[1:] >= first[:-1]).all())


def _places(first: torch.Tensor, empty: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Where the elements go when they are ordered by rows, and their order, None for that which they have."""
    order = None
    if not _is_ordered(first):
        first, order = torch.sort(first, stable=True)
    return torch.arange(len(first), device=first.device) + torch.cumsum(empty, 0)[first], order


ragged_fill_empty_rows_op = op(
    "RaggedFillEmptyRows",
    "value_rowids: int64, values: T, nrows: int64, default_value: T -> output_value_rowids: int64, "
    "output_values: T, empty_row_indicator: bool, reverse_index_map: int64",
    T=None,
    host=["nrows"],
    capturable=False,
    cost=4,
)


@ragged_fill_empty_rows_op.infer
def _(node: Node) -> Shapes:
    for i, expected in enumerate((1, 1, 0, 0)):
        check_rank(node.dims(i), expected)
    return [(None,), (None,), (None,), merge(node.dims(0), node.dims(1)) or (None,)]


@ragged_fill_empty_rows_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    kind = node.dtype(1).torch

    def fill(ids: torch.Tensor, values: Any, count: torch.Tensor, default: Any) -> tuple[Any, ...]:
        if ids.ndim != 1:
            raise invalid(f"value_rowids must be a vector, saw: {listed(ids.shape)}")
        if count.ndim:
            raise invalid(f"nrows must be a scalar, saw: {listed(count.shape)}")
        rows, *rest = _filled(kind, ids[:, None], values, count.reshape(1), default)
        return rows[:, 0], *rest

    return fill


@sparse_fill_empty_rows_op.gradient
@ragged_fill_empty_rows_op.gradient
def _(op: Operation, d_indices: Tensor, d_values: Tensor, d_empty: Tensor, d_map: Tensor) -> Gradients:
    flows = getattr(F, f"{op.type}Grad").several(op.outputs[3], d_values)
    return None, flows[0], None, flows[1]


_FLOWS = "reverse_index_map: int64, grad_values: T -> d_values: T, d_default_value: T"
sparse_fill_empty_rows_grad_op = op(
    "SparseFillEmptyRowsGrad", _FLOWS, T=None, capturable=False, cost=2
).no_gradient()
ragged_fill_empty_rows_grad_op = op(
    "RaggedFillEmptyRowsGrad", _FLOWS, T=None, capturable=False, cost=2
).no_gradient()


@sparse_fill_empty_rows_grad_op.infer
@ragged_fill_empty_rows_grad_op.infer
def _(node: Node) -> Shapes:
    check_rank(node.dims(0), 1)
    check_rank(node.dims(1), 1)
    return [node.dims(0) or (None,), ()]


@sparse_fill_empty_rows_grad_op.kernel(CPU, GPU)
@ragged_fill_empty_rows_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def spread(places: torch.Tensor, flow: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if places.ndim != 1:
            raise invalid(f"reverse_index_map must be a vector, saw: {listed(places.shape)}")
        if flow.ndim != 1:
            raise invalid(f"grad_values must be a vector, saw: {listed(flow.shape)}")
        if len(places):
            low, high = (int(x) for x in torch.aminmax(places))
            if low < 0 or high >= len(flow):
                wrong = low if low < 0 else high
                raise invalid(f"Elements in reverse index must be in [0, {len(flow)}) but got {wrong}")
        rest = flow.clone()
        rest[places] = 0
        return flow[places], rest.sum(dtype=flow.dtype)

    return spread
