"""Two sparse tensors of one shape, element by element: SparseAdd, SparseSparseMaximum, SparseSparseMinimum.

The result has an element wherever one of the two has; what the other lacks is zero. Indices are expected in
row-major order. Rows that are not, or repeat, are put in order and added up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.numbers.elementwise import ALL_NUMBERS, REAL
from flowstone.ops.numbers.unsigned_integers import ordered
from flowstone.ops.sparse.elements import add_at, put
from flowstone.ops.sparse.index_rows import (
    check_rank,
    check_within,
    checked_parts,
    listed,
    numbered_together,
    places_of,
    search,
    stable_order,
)

_PARTS = "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64"


# ---- the union of places


class _Union(NamedTuple):
    """The places that two tensors' elements have together.

    `of_a`, `of_b`: which of them each element has; `rows`: their index rows, in order; `shared`: those that
    several elements have.
    """

    of_a: torch.Tensor
    of_b: torch.Tensor
    rows: torch.Tensor
    shared: torch.Tensor


def _union(a_rows: torch.Tensor, b_rows: torch.Tensor) -> _Union:
    if a_rows is b_rows:
        (a,) = (b,) = numbered_together(a_rows)
    else:
        a, b = numbered_together(a_rows, b_rows)
    if (a is b or torch.equal(a, b)) and _is_increasing(a):
        own = torch.arange(len(a), device=a.device)
        return _Union(own, own, a_rows.clone(), own)
    numbers = torch.cat((a, b))
    order = stable_order(numbers)
    ordered = numbers.index_select(0, order)
    is_new = torch.ones(len(ordered), dtype=torch.bool, device=a.device)
    torch.ne(ordered[1:], ordered[:-1], out=is_new[1:])
    ranks = torch.cumsum(is_new, 0) - 1
    places = torch.empty_like(ranks).scatter_(0, order, ranks)
    rows = torch.cat((a_rows, b_rows)).index_select(0, order.index_select(0, places_of(is_new)))
    return _Union(places[: len(a)], places[len(a) :], rows, ranks[places_of(~is_new)])


def _is_increasing(numbers: torch.Tensor) -> bool:
    return len(numbers) < 2 or bool((numbers[1:] > numbers[:-1]).all())


def _check_pair(sizes_a: Sequence[int], sizes_b: Sequence[int]) -> None:
    if len(sizes_a) != len(sizes_b):
        raise invalid(
            f"Operands do not have the same ranks; got shapes: {listed(sizes_a)} and {listed(sizes_b)}"
        )
    for axis, (m, n) in enumerate(zip(sizes_a, sizes_b)):
        if m != n:
            raise invalid(f"Operands' shapes do not match: got {m} and {n} for dimension {axis}")


# ---- sums

sparse_add_op = op(
    "SparseAdd",
    f"{_PARTS}, thresh: Treal -> sum_indices: int64, sum_values: T, sum_shape: int64",
    T=ALL_NUMBERS,
    Treal=REAL,
    host=["a_shape", "b_shape", "thresh", "sum_shape"],
    capturable=False,
    cost=8,
)


@sparse_add_op.infer
def _(node: Node) -> Shapes:
    shape = node.dims(2)
    check_rank(shape, 1)
    return [(None, None if shape is None else shape[0]), (None,), shape or (None,)]


@sparse_add_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def add(
        a_rows: torch.Tensor,
        a_values: torch.Tensor,
        a_shape: torch.Tensor,
        b_rows: torch.Tensor,
        b_values: torch.Tensor,
        b_shape: torch.Tensor,
        thresh: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        sizes = checked_parts(a_rows, a_values, a_shape, "a_", negative=True)
        _check_pair(sizes, checked_parts(b_rows, b_values, b_shape, "b_", negative=True))
        if thresh.ndim:
            raise invalid(f"The magnitude threshold must be a scalar: got shape {listed(thresh.shape)}")
        union = _union(a_rows, b_rows)
        values = _added(union, a_values, b_values)
        small = _small(values, union, thresh.item())
        if not len(small):
            return union.rows, values, a_shape.clone()
        kept = torch.ones(len(values), dtype=torch.bool, device=values.device)
        kept[small] = False
        return union.rows[kept], values[kept], a_shape.clone()

    return add


def _added(union: _Union, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if union.of_a is union.of_b and (a.is_floating_point() or a.is_complex()):
        return a + b
    values = torch.zeros(len(union.rows), dtype=a.dtype, device=a.device)
    return add_at(add_at(values, union.of_a, a), union.of_b, b)


def _small(values: torch.Tensor, union: _Union, limit: float) -> torch.Tensor:
    """Those of the shared places whose value's magnitude does not reach the limit."""
    places = union.shared
    found = values if places is union.of_a else values[places]
    if not (found.is_complex() or found.is_floating_point()):
        found = found.long()
    return places[~(found.abs() >= limit)]  # NaN does not


@sparse_add_op.gradient
def _(op: Operation, d_indices: Tensor, d_values: Tensor, d_shape: Tensor) -> Gradients:
    a_indices, b_indices = op.inputs[0], op.inputs[3]
    flows = F.SparseAddGrad.several(d_values, a_indices, b_indices, op.outputs[0])
    return None, flows[0], None, None, flows[1], None, None


sparse_add_grad_op = op(
    "SparseAddGrad",
    "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64 -> a_val_grad: T, "
    "b_val_grad: T",
    T=ALL_NUMBERS,
    capturable=False,
    cost=8,
).not_differentiable()


@sparse_add_grad_op.infer
def _(node: Node) -> Shapes:
    dims = [node.dims(1), node.dims(2)]
    for each in dims:
        check_rank(each, 2)
    return [(None if each is None else each[0],) for each in dims]


@sparse_add_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def spread(
        flow: torch.Tensor, a_rows: torch.Tensor, b_rows: torch.Tensor, sum_rows: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        for what, rows in (("a_indices", a_rows), ("b_indices", b_rows), ("sum_indices", sum_rows)):
            if rows.ndim != 2 or rows.shape[1] != sum_rows.shape[-1]:
                raise invalid(
                    f"The densified operands should have the same ndims, as matrices of index rows; {what} "
                    f"has the shape {listed(rows.shape)}, sum_indices {listed(sum_rows.shape)}"
                )
        if flow.ndim != 1 or len(flow) != len(sum_rows):
            raise invalid(
                "# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of sum): got "
                f"{listed(flow.shape)} and {len(sum_rows)}"
            )
        is_a, is_b = (torch.equal(rows, sum_rows) for rows in (a_rows, b_rows))
        if is_a and is_b:
            return flow.clone(), flow.clone()
        a, b, total = numbered_together(a_rows, b_rows, sum_rows)
        if not _is_increasing(total):
            total, order = torch.sort(total)
            flow = flow[order]
        return _flow_to(a, total, flow), _flow_to(b, total, flow)

    return spread


def _flow_to(numbers: torch.Tensor, total: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
    """The gradients of the sums with these numbers; zero for those that were left out."""
    if not len(total):
        return torch.zeros(len(numbers), dtype=flow.dtype, device=flow.device)
    places = search(total, numbers).clamp_(max=len(total) - 1)
    return flow[places].masked_fill_(total.index_select(0, places) != numbers, 0)


# ---- extremes


def _extreme(name: str, types: tuple[DType, ...], function: Callable[..., torch.Tensor]) -> OpDeclaration:
    declaration = op(
        name,
        f"{_PARTS} -> output_indices: int64, output_values: T",
        T=types,
        host=["a_shape", "b_shape"],
        capturable=False,
        cost=8,
    ).not_differentiable()

    @declaration.infer
    def _(node: Node) -> Shapes:
        for i, rank in enumerate((2, 1, 1) * 2):
            check_rank(node.dims(i), rank)
        return [(None, None), (None,)]

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        choose = ordered(node.dtype(1), function)

        def combine(
            a_rows: torch.Tensor,
            a_values: torch.Tensor,
            a_shape: torch.Tensor,
            b_rows: torch.Tensor,
            b_values: torch.Tensor,
            b_shape: torch.Tensor,
        ) -> tuple[torch.Tensor, torch.Tensor]:
            sizes = checked_parts(a_rows, a_values, a_shape, "a_")
            _check_pair(sizes, checked_parts(b_rows, b_values, b_shape, "b_"))
            check_within(a_rows, sizes, "a_indices")
            check_within(b_rows, sizes, "b_indices")
            union = _union(a_rows, b_rows)
            a = torch.zeros(len(union.rows), dtype=a_values.dtype, device=a_values.device)
            b = torch.zeros_like(a)
            put(a, union.of_a, a_values)
            put(b, union.of_b, b_values)
            return union.rows, choose(a, b)

        return combine

    return declaration


sparse_sparse_maximum_op = _extreme("SparseSparseMaximum", REAL, torch.maximum)
sparse_sparse_minimum_op = _extreme("SparseSparseMinimum", ALL_NUMBERS, torch.minimum)
