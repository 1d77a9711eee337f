"""Elements found, compared and sorted into parts: where, unique, set difference, partition and stitch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Known, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine import array_code
from flowstone.framework.machine.machine_code import placing
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, is_compatible, merge
from flowstone.ops.arrays.arrays import in_signed, invalid, is_text, product, whole_numbers
from flowstone.ops.arrays.distinct_texts import numbered
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.numbers.elementwise import ALL_NUMBERS
from flowstone.ops.numbers.unsigned_integers import SIGNED

__all__ = ["dynamic_partition", "dynamic_stitch", "setdiff1d", "unique", "unique_with_counts"]

_OUT_IDX = "out_idx: type in [int32, int64] = int32"
_SIGNED = {dtypes.uint16: torch.int16, dtypes.uint32: torch.int32, dtypes.uint64: torch.int64}
_SIGNED_TWINS = {dtype.torch: signed for dtype, signed in _SIGNED.items()}

_TRUTHS = ", ".join(dtype.name for dtype in (*ALL_NUMBERS, dtypes.bool))
where_op = op(
    "Where",
    "input: T -> index: int64",
    f"T: type in [{_TRUTHS}] = bool",
    capturable=False,
    later_names={"condition": "input"},
)
where_op.no_gradient()


@where_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    return (None, None if dims is None else len(dims))


@where_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    signed = _SIGNED.get(node.dtype(0))

    def where(x: Any) -> Any:
        if x.ndim == 0:
            raise invalid("WhereOp : Unhandled input dimensions: 0")
        return torch.nonzero(x if signed is None else x.view(signed))

    return where


DISTINCT = frozenset({"Unique", "UniqueWithCounts"})  # ops whose first output repeats nothing


def _check_vector(x: Any, what: str = "unique expects a 1D vector.") -> None:
    if x.ndim != 1:
        raise invalid(what)


_FEW_LABELS, _FEW_PARTS = 1024, 8  # up to which NumPy's sort, and a comparison for each part, are faster
_LONGEST_TABLE = 1 << 16  # entries; and as many for each element
_ENTRIES = 16
_FEW_STITCHED = 1 << 14  # elements up to which one copy more takes less time than calls for each part
_FEW_PLACES = 28  # up to which calls take longer than what they do


def _distinct(x: Any, dtype: Any) -> tuple[Any, Any]:
    """Distinct elements in order of appearance, and each element's position among them as `dtype`.

    Integers of a narrow range are looked up in a table, others are sorted, which takes longer.
    """
    _check_vector(x)
    signed = _SIGNED_TWINS.get(x.dtype)
    if signed is not None:
        values, index = _distinct(x.view(signed), dtype)
        return values.view(x.dtype), index
    ranks, places = ranked(x)
    return x.index_select(0, places), ranks.to(dtype)


def ranked(x: Any) -> tuple[Any, Any]:
    """Each element's rank among the distinct ones of a vector, and where these appear first."""
    if x.is_cpu and len(x) <= _FEW_PLACES and x.dtype in _TABULATED:
        return ranked_values(x.tolist())
    code = array_code.distinct(x.dtype) if x.is_cpu and len(x) > _FEW_PLACES else None
    found = None if code is None else code(x)
    if found is not None:
        return found
    first = _first_places(x)
    is_first = torch.eq(first, torch.arange(len(x), device=x.device))
    rank = is_first.cumsum(0).sub_(1)
    return rank.index_select(0, first), is_first.nonzero().squeeze(1)


def ranked_values(values: Iterable[Any]) -> tuple[Any, Any]:
    """The same of few values, by Python."""
    rank_of: dict[Any, int] = {}
    ranks: list[int] = []
    places: list[int] = []
    for place, value in enumerate(values):
        rank = rank_of.setdefault(value, len(rank_of))
        if rank == len(places):
            places.append(place)
        ranks.append(rank)
    return whole_numbers(ranks), whole_numbers(places)


_TABULATED = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


def _first_places(x: Any) -> Any:
    """Where each element of a vector appears first: int64."""
    first = _first_by_table(x) if x.dtype in _TABULATED and len(x) else None
    return _first_by_sorting(x) if first is None else first


def _first_by_table(x: Any) -> Any:
    """Where each element of an integer vector appears first; None where its range is wide."""
    lowest, highest = (int(end) for end in torch.aminmax(x))
    count, entries = len(x), highest - lowest + 1
    if entries > _LONGEST_TABLE + _ENTRIES * count:
        return None
    at = x.long()
    if lowest:
        at = at - lowest
    table = at.new_empty(entries)  # only what is written is read
    if x.device.type != "cpu":  # where the writes come in any order
        table.fill_(count).scatter_reduce_(0, at, torch.arange(count, device=x.device), "amin")
    else:
        table.index_copy_(0, at.flip(0), torch.arange(count - 1, -1, -1))
    return table.index_select(0, at)


def _first_by_sorting(x: Any) -> Any:
    """Where each element of a vector appears first."""
    values, inverse = torch.unique(x, return_inverse=True)
    first = torch.full((len(values),), len(x), dtype=torch.int64, device=x.device)
    first.scatter_reduce_(0, inverse, torch.arange(len(x), device=x.device), "amin")
    return first.index_select(0, inverse)


def _distinct_text(x: Any, dtype: Any) -> tuple[Any, Any]:
    _check_vector(x)
    distinct, numbers = numbered(x.tolist())
    values = np.empty(len(distinct), object)
    values[:] = distinct
    return values, torch.from_numpy(numbers).to(dtype)


def _unique_kernel(node: Node, is_counted: bool) -> Kernel:
    dtype = node.attributes["out_idx"].torch
    distinct = _distinct_text if is_text(node) else _distinct
    source = node.inputs[0]
    if not is_text(node) and not is_counted and source.op.type in DISTINCT and source.value_index == 0:
        return lambda x: (x.clone(), torch.arange(len(x), dtype=dtype, device=x.device))

    def unique(x: Any) -> Any:
        values, positions = distinct(x, dtype)
        if not is_counted:
            return values, positions
        return values, positions, torch.bincount(positions, minlength=len(values)).to(dtype)

    return unique


def _vector(node: Node, i: int) -> Any:
    """The static shape of input `i`. ValueError if it is known to be no vector."""
    dims = node.dims(i)
    if dims is not None and len(dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
    return dims


unique_op = op("Unique", "x: T -> y: T, idx: out_idx", _OUT_IDX, T=None, capturable=False)
unique_op.infer(lambda node: [(None,), _vector(node, 0)])
unique_op.kernel(CPU, GPU)(lambda node, env: _unique_kernel(node, False))
unique_op.no_gradient()

unique_with_counts_op = op(
    "UniqueWithCounts",
    "x: T -> y: T, idx: out_idx, count: out_idx",
    _OUT_IDX,
    T=None,
    capturable=False,
)
unique_with_counts_op.infer(lambda node: [(None,), node.dims(0), (None,)])
unique_with_counts_op.kernel(CPU, GPU)(lambda node, env: _unique_kernel(node, True))
unique_with_counts_op.no_gradient()

list_diff_op = op("ListDiff", "x: T, y: T -> out: T, idx: out_idx", _OUT_IDX, T=None, capturable=False)
list_diff_op.no_gradient()


@list_diff_op.infer
def _(node: Node) -> Shapes:
    _vector(node, 0)
    _vector(node, 1)
    return [(None,), (None,)]


@list_diff_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, text = node.attributes["out_idx"].torch, is_text(node)
    signed = SIGNED.get(node.dtype(0))

    def difference(x: Any, y: Any) -> Any:
        _check_vector(x, "x should be a 1D vector.")
        _check_vector(y, "y should be a 1D vector.")
        if text:
            taken = set(y.tolist())
            found = np.array([i for i, word in enumerate(x) if word not in taken], dtype=np.int64)
            return x[found], torch.from_numpy(found).to(dtype)
        there = _is_in(x, y) if signed is None else _is_in(x.view(signed), y.view(signed))
        places = torch.nonzero(~there).reshape(-1)
        return x[places], places.to(dtype)

    return difference


@list_diff_op.value(0, 1)
def _(node: Node) -> Known | list[Known]:
    x, y = (x._static_value for x in node.inputs)
    if not all(isinstance(value, np.ndarray) and value.dtype.kind in "iu" for value in (x, y)):
        return None
    places = np.flatnonzero(~np.isin(x, y))
    return [x[places], places.astype(node.attributes["out_idx"].as_numpy_dtype)]


def _is_in(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.is_complex():  # of which ATen has no `isin`
        return (x[:, None] == y).any(1)
    return torch.isin(x, y)


# ---- partition and stitch

dynamic_partition_op = op(
    "DynamicPartition",
    "data: T, partitions: int32 -> outputs: num_partitions*T",
    "num_partitions: int >= 1",
    T=None,
    capturable=False,
)


@dynamic_partition_op.infer
def _(node: Node) -> Shapes:
    count, data, parts = node.attributes["num_partitions"], node.dims(0), node.dims(1)
    if data is None or parts is None:
        return [None] * count
    if len(parts) > len(data):
        raise ValueError(f"Shape must be at least rank {len(parts)} but is rank {len(data)}")
    merge(data[: len(parts)], parts)
    return [(None, *data[len(parts) :])] * count


@dynamic_partition_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    count, text = node.attributes["num_partitions"], is_text(node)

    def partition(data: Any, parts: Any) -> list[Any]:
        depth = parts.ndim
        if tuple(data.shape[:depth]) != tuple(parts.shape):
            raise invalid(
                f"data.shape must start with partitions.shape, got {list(data.shape)} and {list(parts.shape)}"
            )
        rows, labels = data.reshape(product(parts.shape), *data.shape[depth:]), parts.reshape(-1)
        if labels.numel():
            low, high = torch.aminmax(labels)
            if not 0 <= int(low) <= int(high) < count:
                raise invalid(f"partitions = {labels.tolist()} is not in [0, {count})")
        if text:
            return [rows[(labels == i).numpy()] for i in range(count)]
        signed = rows.view(_SIGNED_TWINS.get(rows.dtype, rows.dtype))
        parted = [signed.index_select(0, places) for places in _places_of_parts(labels, count)]
        return [part.view(rows.dtype) for part in parted]

    return partition


def _places_of_parts(labels: Any, count: int) -> Any:
    """For each of `count` labels the places where it stands."""
    if labels.device.type == "cpu" and labels.numel() <= _FEW_LABELS:
        numbers = labels.numpy()
        ends = np.bincount(numbers, minlength=count).tolist()
        return torch.from_numpy(np.argsort(numbers, kind="stable")).split(ends)
    if count <= _FEW_PARTS:
        return [torch.nonzero(labels == i).squeeze(1) for i in range(count)]
    sizes = torch.bincount(labels, minlength=count).tolist()
    return torch.argsort(labels, stable=True).split(sizes)


@dynamic_partition_op.gradient
def _(op: Operation, *dys: Tensor) -> Gradients:
    data, parts = op.inputs

    count = op.attributes["num_partitions"]
    prefix = shape(parts)
    places = F.Reshape(F.Range(0, F.Prod(prefix, [0]), 1), prefix)
    parted = F.DynamicPartition(places, parts, num_partitions=count)
    return F.Reshape(F.DynamicStitch(parted, list(dys)), shape(data)), None


def _stitch_dims(node: Node) -> Dims:
    count = node.attributes["N"]
    size: int | None = 0
    extra: Any = None
    for i in range(count):
        places, data, known = node.dims(i), node.dims(count + i), node.constant(i)
        if known is None:
            size = None
        elif size is not None and known.size:
            size = max(size, int(known.max()) + 1)
        if places is None or data is None:
            continue
        if len(places) > len(data) or not is_compatible(places, data[: len(places)]):
            raise ValueError(f"Shape of data[{i}] {data} must start with the shape of indices[{i}] {places}")
        extra = merge(extra, data[len(places) :])
    return None if extra is None else (size, *extra)


def _stitch_kernel(node: Node) -> Kernel:
    count = node.attributes["N"]
    text = is_text(node, count)

    def stitch(*inputs: Any) -> Any:
        indices, data = inputs[:count], inputs[count:]
        rest = tuple(data[0].shape[indices[0].ndim :])
        if not text and len(data) > 1 and data[0].is_cpu and sum(map(torch.numel, data)) <= _FEW_STITCHED:
            indices, data = _as_one_part(indices, data, rest)
        size = 0
        for places, values in zip(indices, data):
            if tuple(values.shape) != (*places.shape, *rest):
                raise invalid(
                    f"Need data[0].shape{list(rest)} = data.shape{list(values.shape)} behind the "
                    f"indices' shape"
                )
            if places.numel():
                low, high = torch.aminmax(places)
                if int(low) < 0:
                    raise invalid(f"indices = {places.tolist()} is not in [0, 2147483647)")
                size = max(size, int(high) + 1)
        if text:
            result: Any = np.full((size, *rest), b"", dtype=object)
        else:
            make = torch.empty if _are_all(indices, size) else torch.zeros
            result = make((size, *rest), dtype=data[0].dtype, device=data[0].device)
        for places, values in zip(indices, data):
            flat = places.reshape(-1)
            if text:
                result[flat.numpy()] = values.reshape(len(flat), *rest)
            else:
                _put_rows(result, flat, values)
        return result

    return in_signed(node.dtype(count), stitch, *range(count, 2 * count))


def _as_one_part(indices: Any, data: Any, rest: Dims) -> tuple[Any, Any]:
    """All parts as one, whose later rows count where places repeat, or as they are where they do not fit."""
    assert rest is not None
    if any([tuple(values.shape) != (*places.shape, *rest) for places, values in zip(indices, data)]):
        return indices, data
    rows = [values.reshape(places.numel(), *rest) for places, values in zip(indices, data)]
    return [torch.cat([places.reshape(-1) for places in indices])], [torch.cat(rows)]


def _are_all(indices: Sequence[torch.Tensor], size: int) -> bool:
    """Whether every place below `size` is among the indices, on a host."""
    if size == 0 or indices[0].device.type != "cpu" or sum(places.numel() for places in indices) < size:
        return False
    found = torch.zeros(size, dtype=torch.bool)
    for places in indices:
        found.index_fill_(0, places.reshape(-1).long(), True)
    return bool(found.all())


def _put_rows(result: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> None:
    """Copies rows to places that are there, by machine code if on a host; of those for one the last stays."""
    code = placing(places.dtype) if result.device.type == "cpu" and values.numel() else None
    if code is None or values.is_conj() or values.is_neg():
        result[places.long()] = values.reshape(len(places), *result.shape[1:])
    else:
        code.put(result, places.contiguous(), values.contiguous())


def _stitch(name: str) -> OpDeclaration:
    declaration = op(
        name, "indices: N*int32, data: N*T -> merged: T", "N: int >= 1", T=None, capturable=False
    )
    declaration.infer(_stitch_dims)
    declaration.kernel(CPU, GPU)(lambda node, env: _stitch_kernel(node))

    @declaration.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        count = op.attributes["N"]
        return (*[None] * count, *[F.GatherV2(dy, places, 0) for places in op.inputs[:count]])

    return declaration


def _stitched_sizes(*parts: Any) -> Any:
    pairs = zip(parts[: len(parts) // 2], parts[len(parts) // 2 :])
    found = dict([n for each in pairs for n in zip(*[np.ravel(x).tolist() for x in each], strict=True)])
    return [found[i] for i in range(len(found))]


dynamic_stitch_op = _stitch("DynamicStitch").sizes(_stitched_sizes)
parallel_dynamic_stitch_op = _stitch("ParallelDynamicStitch")

# ---- public functions


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """(y, idx): the distinct elements of a vector in the order of appearance, and ``x[i] == y[idx[i]]``."""
    return unique_op(x, out_idx=out_idx, name=name)


def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """(y, idx, count): as `unique`, and how often each element of y stands in `x`."""
    return unique_with_counts_op(x, out_idx=out_idx, name=name)


def setdiff1d(x: Any, y: Any, index_dtype: Any = dtypes.int32, name: str | None = None) -> Any:
    """(out, idx): the elements of the vector `x` that are not in `y`, in order, and where they stand."""
    return list_diff_op(x, y, out_idx=index_dtype, name=name)


@dispatched("dynamic_partition")
def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """`num_partitions` tensors: the slices of `data` whose entry in `partitions` (int32) is 0, 1, …"""
    return dynamic_partition_op.several(data, partitions, num_partitions=num_partitions, name=name)  # type: ignore[no-any-return]


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """One tensor m with ``m[indices[i][j]] = data[i][j]``; where places repeat the last one wins."""
    return dynamic_stitch_op(list(indices), list(data), name=name)
