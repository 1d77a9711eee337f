"""Parts of sparse tensors: SparseSlice, SparseSplit, and their opposite, SparseConcat."""

from __future__ import annotations

import math
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.numbers.elementwise import ALL_NUMBERS
from flowstone.ops.sparse.elements import joined, put, taken
from flowstone.ops.sparse.index_rows import (
    LARGEST,
    check_rank,
    check_within,
    checked_parts,
    in_order,
    listed,
    numbered_together,
    places_of,
)

# ---- slices

sparse_slice_op = op(
    "SparseSlice",
    "indices: int64, values: T, shape: int64, start: int64, size: int64 -> output_indices: int64, "
    "output_values: T, output_shape: int64",
    T=None,
    host=["shape", "start", "size", "output_shape"],
    capturable=False,
    cost=4,
)


@sparse_slice_op.infer
def _(node: Node) -> Shapes:
    shape = node.dims(2)
    check_rank(node.dims(0), 2)
    check_rank(node.dims(1), 1)
    check_rank(shape, 1)
    check_rank(node.dims(3), 1)
    check_rank(node.dims(4), 1)
    return [(None, None if shape is None else shape[0]), (None,), shape]


@sparse_slice_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def cut(
        rows: torch.Tensor, values: Any, shape: torch.Tensor, start: torch.Tensor, size: torch.Tensor
    ) -> tuple[torch.Tensor, Any, torch.Tensor]:
        sizes = checked_parts(rows, values, shape)
        for what, given in (("start", start), ("size", size)):
            if given.ndim != 1 or len(given) != len(sizes):
                raise invalid(
                    f"Expected {what} to be a vector of length {len(sizes)} but got shape "
                    f"{listed(given.shape)}"
                )
        if math.prod(sizes) > LARGEST:
            raise invalid(f"Shape {listed(sizes)} would have more than 2**63 - 1 elements")
        starts, lengths = start.tolist(), size.tolist()
        for length in lengths:
            if length < 0:
                raise invalid(f"Expected a non-negative size, got {length}")
        left = [max(min(n, whole - first), 0) for n, whole, first in zip(lengths, sizes, starts)]
        inside = places_of(_inside(rows, starts, lengths))
        found = rows.index_select(0, inside)
        if any(starts):
            found -= start.to(rows.device)
        return found, taken(values, inside), torch.tensor(left, dtype=torch.int64)

    return cut


def _inside(rows: torch.Tensor, starts: list[int], lengths: list[int]) -> torch.Tensor:
    """Which rows are in the slice."""
    result = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
    for column, first, length in zip(rows.unbind(1), starts, lengths):
        result &= column >= first
        result &= column <= min(first + length - 1, LARGEST)
    return result


@sparse_slice_op.gradient
def _(op: Operation, d_indices: Tensor, d_values: Tensor, d_shape: Tensor) -> Gradients:
    indices, _, _, start, _ = op.inputs
    return None, F.SparseSliceGrad(d_values, indices, start, op.outputs[0]), None, None, None


sparse_slice_grad_op = op(
    "SparseSliceGrad",
    "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64 -> val_grad: T",
    T=ALL_NUMBERS,
    host=["input_start"],
    capturable=False,
    cost=8,
).no_gradient()


@sparse_slice_grad_op.infer
def _(node: Node) -> Shapes:
    indices = node.dims(1)
    check_rank(indices, 2)
    return (None if indices is None else indices[0],)


@sparse_slice_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def spread(
        flow: torch.Tensor, rows: torch.Tensor, start: torch.Tensor, found: torch.Tensor
    ) -> torch.Tensor:
        _check_slice(flow, rows, start, found)
        before, after = numbered_together(rows - start.to(rows.device), found)
        kept = torch.isin(before, after)
        result = torch.zeros(len(rows), dtype=flow.dtype, device=flow.device)
        places = kept.nonzero().squeeze(1)
        if len(places) != len(flow):
            raise errors.InternalError(
                None,
                None,
                "Elements of backprop_val_grad aren't all propagated. Num elements:"
                f"{len(flow)}, used: {len(places)}",
            )
        put(result, places, flow)
        return result

    return spread


def _check_slice(flow: torch.Tensor, rows: torch.Tensor, start: torch.Tensor, found: torch.Tensor) -> None:
    if rows.ndim != 2 or found.ndim != 2:
        raise invalid(
            f"Input and output indices should be matrices but received shapes {listed(rows.shape)} and "
            f"{listed(found.shape)}"
        )
    if flow.ndim != 1 or len(flow) != len(found):
        raise invalid(
            f"Input backprop_val_grad should be a vector of {len(found)} elements but received shape "
            f"{listed(flow.shape)}"
        )
    if rows.shape[1] != found.shape[1] or start.ndim != 1 or len(start) != rows.shape[1]:
        raise invalid(
            f"input_indices, output_indices and input_start should have the same number of dimensions, but "
            f"their shapes are {listed(rows.shape)}, {listed(found.shape)} and {listed(start.shape)}"
        )
    if len(found) > len(rows):
        raise invalid(
            "# rows of output_indices should be not greater than of input_indices, "
            f"got {len(found)} and {len(rows)}"
        )


# ---- splits

sparse_split_op = op(
    "SparseSplit",
    "split_dim: int64, indices: int64, values: T, shape: int64 -> output_indices: num_split*int64, "
    "output_values: num_split*T, output_shape: num_split*int64",
    "num_split: int >= 1",
    T=None,
    host=["split_dim", "shape", "output_shape"],
    capturable=False,
    cost=4,
).no_gradient()


@sparse_split_op.infer
def _(node: Node) -> Shapes:
    shape, count = node.dims(3), node.attributes["num_split"]
    rank = shape[0] if shape is not None and len(shape) == 1 else None
    return [*[(None, rank)] * count, *[(None,)] * count, *[shape] * count]


@sparse_split_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    count = node.attributes["num_split"]

    def split(split_dim: torch.Tensor, rows: torch.Tensor, values: Any, shape: torch.Tensor) -> list[Any]:
        if split_dim.ndim:
            raise invalid(f"Input axis should be a scalar but received shape {listed(split_dim.shape)}")
        sizes = checked_parts(rows, values, shape)
        axis = int(split_dim)
        if not -len(sizes) <= axis < len(sizes):
            raise invalid(f"Input axis should be in range [{-len(sizes)}, {len(sizes)}), got {axis}")
        axis %= len(sizes)
        if not 1 <= count <= sizes[axis]:
            raise invalid(
                "Input num_split should be between 1 and the splitting dimension size "
                f"({sizes[axis]}), got {count}"
            )
        check_within(rows, sizes)
        return _split(rows, values, sizes, axis, count)

    return split


def _split(rows: torch.Tensor, values: Any, sizes: list[int], axis: int, count: int) -> list[Any]:
    """The index rows of all pieces, then their values, then their shapes; longer pieces come first."""
    short, longer = divmod(sizes[axis], count)
    lengths = [short + (i < longer) for i in range(count)]
    found, parts, shapes = [], [], []
    column, begin = rows[:, axis].contiguous(), 0
    for length in lengths:
        inside = places_of((column >= begin) & (column < begin + length))
        piece = rows.index_select(0, inside)
        piece[:, axis] -= begin
        found.append(piece)
        parts.append(taken(values, inside))
        shapes.append(torch.tensor([*sizes[:axis], length, *sizes[axis + 1 :]], dtype=torch.int64))
        begin += length
    return [*found, *parts, *shapes]


# ---- concatenation

sparse_concat_op = op(
    "SparseConcat",
    "indices: N*int64, values: N*T, shapes: N*int64 -> output_indices: int64, output_values: T, "
    "output_shape: int64",
    "concat_dim: int ; N: int >= 2",
    T=None,
    host=["shapes", "output_shape"],
    capturable=False,
    cost=10,
).not_differentiable()


@sparse_concat_op.infer
def _(node: Node) -> Shapes:
    count = node.attributes["N"]
    total: int | None = 0
    width: Dims = (None,)
    shape: Dims = (None,)
    for i in range(count):
        indices, values, sizes = (node.dims(i + part * count) for part in range(3))
        check_rank(indices, 2)
        length = merge(None if indices is None else indices[:1], values)
        width = merge(width, None if indices is None else indices[1:])
        shape = merge(shape, sizes)
        elements = length[0] if length is not None else None
        total = None if total is None or elements is None else total + elements
    assert width is not None
    assert shape is not None
    return [(total, *width), (total,), shape]


@sparse_concat_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    count, concat_dim = node.attributes["N"], node.attributes["concat_dim"]

    def concatenate(*inputs: Any) -> tuple[torch.Tensor, Any, torch.Tensor]:
        rows, values, shapes = (inputs[part * count : (part + 1) * count] for part in range(3))
        sizes = [
            checked_parts(*each, f"{i}: ", negative=True) for i, each in enumerate(zip(rows, values, shapes))
        ]
        axis = _checked_axis(sizes, concat_dim)
        shifted, length = [], 0
        for each, size in zip(rows, sizes):
            if length:
                each = each.clone()
                each[:, axis] += length
            shifted.append(each)
            length += size[axis]
            if size[axis] < 0 or length > LARGEST:
                raise errors.InternalError(None, None, f"Encountered overflow from large input shape {size}.")
        output_shape = torch.tensor([*sizes[0][:axis], length, *sizes[0][axis + 1 :]], dtype=torch.int64)
        found, elements = torch.cat(shifted), joined(values)
        order = in_order(found)
        if order is not None:
            found, elements = found.index_select(0, order), taken(elements, order)
        return found, elements, output_shape

    return concatenate


def _checked_axis(sizes: list[list[int]], axis: int) -> int:
    """The axis, counted from the front. InvalidArgumentError unless the shapes agree but for it."""
    rank = len(sizes[0])
    if not -rank <= axis < rank:
        raise invalid(f"Concat dimension must be in range [{-rank}, {rank}), got {axis}")
    axis %= rank
    for i, size in enumerate(sizes):
        if len(size) != rank:
            raise invalid(
                f"Ranks of all input tensors must match: expected {rank} but got {len(size)} at position {i}"
            )
        for d, (n, expected) in enumerate(zip(size, sizes[0])):
            if d != axis and n != expected:
                raise invalid(
                    f"Input shapes must match: expected {expected} for dimension {d} but got {n} at "
                    f"position {i}"
                )
    return axis
