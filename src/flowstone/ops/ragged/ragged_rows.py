"""Operations on rows of different lengths: ranges, picked rows, and the indices of all values.

RaggedRange, RaggedGather and RaggedTensorToSparse, as GraphDefs have them. Rows are given by their splits:
row i has the values from ``splits[i]`` to ``splits[i + 1]``.

>>> _inner_places(torch.tensor([3, 0]), torch.tensor([2, 1]))
tensor([3, 4, 0])
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.arrays.arrays import invalid, is_text, whole_numbers
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.sparse.elements import taken
from flowstone.ops.sparse.index_rows import check_rank

_SPLITS = "Tsplits: type in [int32, int64] = int64"

# ---- layout


def check_splits(
    splits: torch.Tensor, count: int | None, what: str = "Ragged splits", whole: bool = True
) -> None:
    """InvalidArgumentError unless the splits begin with 0, do not fall, and end with `count`; with `whole`
    False they may be those of a part of the values.
    """
    if splits.ndim != 1 or not len(splits):
        raise invalid(f"{what} must be a vector with at least one element, got {list(splits.shape)}")
    if int(splits[0]) < 0 or (whole and int(splits[0])):
        raise invalid(f"{what} must begin with 0, got {int(splits[0])}")
    if bool((splits[1:] < splits[:-1]).any()):
        raise invalid(f"{what} must be sorted, got {splits.tolist()[:20]}")
    if count is not None and (int(splits[-1]) > count or (whole and int(splits[-1]) != count)):
        raise invalid(f"{what} must end with the number of values {count}, got {int(splits[-1])}")


def check_nested_splits(splits: list[torch.Tensor], values: Any, whole: bool = True) -> None:
    """`check_splits` of all ragged dimensions, the outermost first."""
    if not values.ndim:
        raise invalid("The values of ragged rows must not be a scalar")
    counts = [len(each) - 1 for each in splits[1:]] + [len(values)]
    for each, count in zip(splits, counts):
        check_splits(each, count, whole=whole)


def row_numbers(splits: torch.Tensor) -> torch.Tensor:
    """The row of each value."""
    rows = torch.arange(len(splits) - 1, device=splits.device)
    return rows.repeat_interleave(splits[1:] - splits[:-1])


def _inner_places(starts: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """start, start + 1 … of each row, one after the other."""
    ends = lengths.cumsum(0)
    total = int(ends[-1]) if len(ends) else 0
    first = (starts - ends + lengths).repeat_interleave(lengths, output_size=total)
    return first + torch.arange(total, device=starts.device)


def splits_of(lengths: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """[0, l0, l0 + l1, …]."""
    result = torch.zeros(len(lengths) + 1, dtype=dtype, device=lengths.device)
    torch.cumsum(lengths, 0, out=result[1:]) if dtype is torch.int64 else result[1:].copy_(lengths.cumsum(0))
    return result


# ---- ranges

ragged_range_op = op(
    "RaggedRange",
    "starts: T, limits: T, deltas: T -> rt_nested_splits: Tsplits, rt_dense_values: T",
    f"T: type in [bfloat16, float, double, int32, int64] = int32 ; {_SPLITS}",
    capturable=False,
    cost=2,
).not_differentiable()


@ragged_range_op.infer
def _(node: Node) -> Shapes:
    count: Dims = ()
    for i in range(3):
        dims = node.dims(i)
        if dims is not None and len(dims) > 1:
            raise ValueError(f"Shape must be at most rank 1 but is rank {len(dims)}")
        if dims is None:
            count = None if count == () else count
        elif dims:
            count = merge(count or None, dims)
    if count is None:
        return [(None,), (None,)]
    rows = count[0] if count else 1
    return [(None if rows is None else rows + 1,), (None,)]


@ragged_range_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    kind, numpy_kind = node.attributes["Tsplits"].torch, node.dtype(0).as_numpy_dtype
    is_integer = node.dtype(0).is_integer

    def ranges(*given: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        for what, each in zip(("starts", "limits", "deltas"), given):
            if each.ndim > 1:
                raise invalid(f"{what} must be a scalar or vector")
        sizes = {len(each) for each in given if each.ndim}
        if len(sizes) > 1:
            raise invalid("starts, limits, and deltas must have the same shape")
        rows = sizes.pop() if sizes else 1
        starts, limits, deltas = (each.reshape(-1).expand(rows) for each in given)
        if bool((deltas == 0).any()):
            raise invalid("Requires delta != 0")
        lengths = _range_lengths(starts, limits, deltas, is_integer)
        if float(lengths.double().sum()) > 2**40:
            raise MemoryError(f"ranges of {float(lengths.double().sum()):.3g} numbers")
        splits = splits_of(lengths, kind)
        if is_integer:
            steps = _inner_places(torch.zeros_like(lengths), lengths)
            total = len(steps)
            first, delta = (x.long().repeat_interleave(lengths, output_size=total) for x in (starts, deltas))
            return splits, (first + steps * delta).to(starts.dtype)
        begin, step = (each.cpu().double().numpy().astype(numpy_kind) for each in (starts, deltas))
        found = torch.from_numpy(_added_up(begin, step, lengths.cpu().numpy()))
        return splits, found.to(starts)

    return ranges


def _range_lengths(
    starts: torch.Tensor, limits: torch.Tensor, deltas: torch.Tensor, is_integer: bool
) -> torch.Tensor:
    ahead = torch.where(deltas > 0, limits > starts, limits < starts)
    if is_integer:
        starts, limits, deltas = starts.long(), limits.long(), deltas.long()
        counts = -torch.div(starts - limits, deltas, rounding_mode="floor")
    else:
        exact = ((limits - starts) / deltas).abs().ceil().double()
        exact[~ahead] = 0
        if not bool((exact < 2.0**63).all()):
            raise invalid("Requires ((limit - start) / delta) <= the largest int64")
        counts = exact.long()
    return counts * ahead


def _added_up(starts: Any, deltas: Any, lengths: Any) -> Any:
    """The rows' numbers, each the sum, rounded, of that before it and the delta: float32 or float64."""
    found = np.empty(int(lengths.sum()), np.promote_types(starts.dtype, np.float32))
    ends = np.cumsum(lengths)
    begins, longest = ends - lengths, int(lengths.max(initial=0))
    if longest > len(lengths):
        for i, (begin, end) in enumerate(zip(begins, ends)):
            row = np.full(end - begin, deltas[i])
            row[:1] = starts[i]
            found[begin:end] = np.add.accumulate(row)
        return found
    current = starts.copy()
    for step in range(longest):
        rows = lengths > step
        found[begins[rows] + step] = current[rows]
        current = current + deltas
    return found


# ---- picked rows

ragged_gather_op = op(
    "RaggedGather",
    "params_nested_splits: PARAMS_RAGGED_RANK*Tsplits, params_dense_values: Tvalues, indices: Tindices -> "
    "output_nested_splits: OUTPUT_RAGGED_RANK*Tsplits, output_dense_values: Tvalues",
    f"PARAMS_RAGGED_RANK: int >= 1 ; OUTPUT_RAGGED_RANK: int >= 0 ; {_SPLITS}",
    Tvalues=None,
    Tindices=dtypes.INDICES,
    capturable=False,
    cost=4,
)


@ragged_gather_op.infer
def _(node: Node) -> Shapes:
    rank, found = node.attributes["PARAMS_RAGGED_RANK"], node.attributes["OUTPUT_RAGGED_RANK"]
    for i in range(rank):
        check_rank(node.dims(i), 1)
    values, indices = node.dims(rank), node.dims(rank + 1)
    if values == ():
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    inner: Dims = None if values is None else (None, *values[1:])
    if indices is None:
        return [*[(None,)] * found, inner]
    if len(indices) + rank - 1 != found:
        raise ValueError(
            f"OUTPUT_RAGGED_RANK must be {len(indices) + rank - 1} for these indices and splits, not {found}"
        )
    return [*[(None,)] * found, inner]


_FEW = 64  # numbers that Python looks at faster than ATen's calls


def _few_picked(splits: list[torch.Tensor], values: Any, indices: torch.Tensor) -> list[list[int]] | None:
    """The splits of picked rows, the outermost first, and the places of their values; None if they are not a
    vector of few rows, on a host, or something is wrong."""
    if indices.ndim != 1 or indices.device.type != "cpu" or not indices.numel() or not values.ndim:
        return None
    if indices.numel() + sum(each.numel() for each in splits) > _FEW or any(x.ndim != 1 for x in splits):
        return None
    at, found = indices.tolist(), []
    for each, count in zip(splits, [*[len(x) - 1 for x in splits[1:]], len(values)]):
        row = each.tolist()
        if not row or row[0] < 0 or row[-1] > count or min(at, default=0) < 0:
            return None
        if max(at, default=-1) >= len(row) - 1 or row != sorted(row):
            return None
        spans = [range(row[i], row[i + 1]) for i in at]
        found.append([0, *itertools.accumulate(map(len, spans))])
        if found[-1][-1] > _FEW:
            return None
        at = [i for span in spans for i in span]
    return [*found, at]


@ragged_gather_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    rank, found = node.attributes["PARAMS_RAGGED_RANK"], node.attributes["OUTPUT_RAGGED_RANK"]

    def gather(*inputs: Any) -> Any:
        splits, values, indices = list(inputs[:rank]), inputs[rank], inputs[rank + 1]
        if indices.ndim + rank - 1 != found:
            raise invalid(f"OUTPUT_RAGGED_RANK must be {indices.ndim + rank - 1}, not {found}")
        few = _few_picked(splits, values, indices)
        if few is not None:
            *few_ends, few_at = few
            kind, places = splits[0].dtype, whole_numbers(few_at)
            return (*[whole_numbers(each, kind) for each in few_ends], taken(values, places))
        check_nested_splits(splits, values, whole=False)
        rows, kind = len(splits[0]) - 1, splits[0].dtype
        at = indices.reshape(-1).long()
        wrong = (at < 0) | (at >= rows)
        if bool(wrong.any()):
            i = int(wrong.nonzero()[0])
            raise invalid(f"indices[{i}] = {int(at[i])} is not in [0, {rows})")
        ends, count = [], 1
        for axis, size in enumerate(indices.shape):
            if axis:
                ends.append(torch.arange(count + 1, dtype=kind, device=at.device) * size)
            count *= size
        for each in splits:
            starts = each[at].long()
            lengths = each[at + 1].long() - starts
            ends.append(splits_of(lengths, kind))
            at = _inner_places(starts, lengths)
        picked = taken(values, at)
        return (*ends[len(ends) - found :], picked)

    return _with_known_rows(node, env, gather) or gather


def _with_known_rows(node: Node, env: Environment, gather: Callable[..., Any]) -> Callable[..., Any] | None:
    """The kernel where splits and indices are constants: what is picked is known with the plan, unless
    something is wrong, which the step says."""
    rank, dims = (
        node.attributes["PARAMS_RAGGED_RANK"],
        node.static_shape(node.attributes["PARAMS_RAGGED_RANK"]),
    )
    known = [node.constant(i) for i in (*range(rank), rank + 1)]
    if not dims or env.device.type != "cpu" or any(each is None for each in known):
        return None
    *splits, indices = [torch.from_numpy(np.array(each)) for each in known]
    try:
        *ends, places = gather(*splits, torch.arange(dims[0]), indices)
    except (errors.OpError, IndexError, RuntimeError):
        return None
    return lambda *inputs: (*[each.clone() for each in ends], taken(inputs[rank], places))


@ragged_gather_op.gradient
def _(op: Operation, *flows: Tensor) -> Gradients:
    rank = op.attributes["PARAMS_RAGGED_RANK"]
    splits, values, indices = list(op.inputs[:rank]), op.inputs[rank], op.inputs[rank + 1]
    sizes = shape(values, out_type=dtypes.int64)
    one = convert_to_tensor(1, dtypes.int64)
    numbers = F.Range(convert_to_tensor(0, dtypes.int64), sizes[0], one)
    found = F.RaggedGather.several(
        splits, numbers, indices, OUTPUT_RAGGED_RANK=op.attributes["OUTPUT_RAGGED_RANK"]
    )
    flow = IndexedSlices(convert_to_tensor(flows[-1]), found[-1], sizes)
    return [None] * rank + [flow, None]


# ---- indices of all values

ragged_to_sparse_op = op(
    "RaggedTensorToSparse",
    "rt_nested_splits: RAGGED_RANK*Tsplits, rt_dense_values: T -> "
    "sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64",
    f"RAGGED_RANK: int >= 1 ; {_SPLITS}",
    T=None,
    capturable=False,
    cost=4,
)


@ragged_to_sparse_op.infer
def _(node: Node) -> Shapes:
    ragged = node.attributes["RAGGED_RANK"]
    for i in range(ragged):
        check_rank(node.dims(i), 1)
    dims = node.dims(ragged)
    if dims == ():
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    rank = None if dims is None else ragged + len(dims)
    known = dims is not None and (None not in dims or 0 in dims)
    count = int(np.prod([size or 0 for size in dims])) if dims is not None and known else None
    return [(count, rank), (count,), (rank,)]


@ragged_to_sparse_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    ragged = node.attributes["RAGGED_RANK"]

    def to_sparse(*inputs: Any) -> tuple[torch.Tensor, Any, torch.Tensor]:
        splits, values = [each.long() for each in inputs[:ragged]], inputs[ragged]
        check_nested_splits(splits, values)
        columns: list[torch.Tensor] = []
        for i, each in enumerate(splits):
            rows = row_numbers(each)
            columns = [column[rows] for column in columns] if i else [rows]
            columns.append(torch.arange(len(rows), device=each.device) - each[rows])
        inner = [int(size) for size in values.shape[1:]]
        size = int(np.prod(inner))
        columns = [column.repeat_interleave(size) if inner else column for column in columns]
        if inner:
            places = torch.cartesian_prod(*[torch.arange(n, device=splits[0].device) for n in inner])
            places = places.reshape(size, len(inner)).repeat(len(values), 1)
            columns += places.unbind(1)
        widths = [max((each[1:] - each[:-1]).tolist(), default=0) for each in splits]
        sizes = torch.tensor([len(splits[0]) - 1, *widths, *inner], device=splits[0].device)
        flat = values.reshape(-1)
        return torch.stack(columns, 1), flat.copy() if is_text(node, ragged) else flat.clone(), sizes

    return to_sparse


@ragged_to_sparse_op.gradient
def _(op: Operation, d_indices: Tensor, d_values: Tensor, d_shape: Tensor) -> Gradients:
    values = op.inputs[-1]
    return [None] * (len(op.inputs) - 1) + [F.Reshape(d_values, shape(values))]
