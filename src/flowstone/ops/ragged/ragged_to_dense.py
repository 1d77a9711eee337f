"""RaggedTensorToTensor: ragged rows filled up to a dense tensor.

Row partitions come in TensorFlow's forms: ROW_SPLITS, or the number of rows as FIRST_DIM_SIZE with
VALUE_ROWIDS for each ragged dimension. ROW_LENGTHS is a name without a kernel there, and here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, is_compatible
from flowstone.ops.arrays.arrays import in_signed, invalid
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.numbers.elementwise import sum_to
from flowstone.ops.ragged.ragged_rows import check_splits, row_numbers

ragged_to_tensor_op = op(
    "RaggedTensorToTensor",
    "shape: Tshape, values: T, default_value: T, row_partition_tensors: num_row_partition_tensors*Tindex -> "
    "result: T",
    "num_row_partition_tensors: int >= 1 ; row_partition_types: list(string)",
    T=None,
    Tindex=dtypes.INDICES,
    Tshape=dtypes.INDICES,
    host=["shape"],
    capturable=False,
    cost=4,
)


def _partition_types(node: Node) -> list[str]:
    given = [x.decode() if isinstance(x, bytes) else str(x) for x in node.attributes["row_partition_types"]]
    if len(given) != node.attributes["num_row_partition_tensors"]:
        raise ValueError(f"{node.attributes['num_row_partition_tensors']} row partitions, but types {given}")
    known = ("FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS", "ROW_LENGTHS")
    if any(each not in known for each in given):
        raise ValueError(f"Unknown string for partition info type: {given}")
    return given


@ragged_to_tensor_op.infer
def _(node: Node) -> Shapes:
    types = _partition_types(node)
    ragged = len(types) - (types[0] == "FIRST_DIM_SIZE")
    values = node.dims(1)
    wanted: Dims = None if node.dims(0) in (None, ()) else node.constant_dims(0)
    rank = None if values is None else ragged + len(values)
    if values == ():
        raise ValueError("Invalid values shape: scalars have no rows")
    _check_default(node.dims(2), values)
    whole = node.constant(0)
    if node.dims(0) == () and (whole is None or int(whole) != -1):
        raise ValueError(f"A scalar shape must be known when the graph is built, and -1, but is {whole}")
    if rank is None or values is None:
        return wanted
    known = (*[None] * (ragged + 1), *values[1:])
    if wanted is None:
        return known
    if len(wanted) != rank:
        raise ValueError(f"A shape of {len(wanted)} dimensions for values with {rank}")
    if not is_compatible(wanted[ragged + 1 :], values[1:]):
        raise ValueError(f"Shape {wanted} does not fit values {values}")
    return tuple(b if a is None else a for a, b in zip(wanted, known))


def _check_default(default: Dims, values: Dims) -> None:
    """ValueError unless a default value of these sizes may fill up rows of these values."""
    if default is None or values is None:
        return
    if len(default) >= len(values):
        raise ValueError(f"default_value of rank {len(default)} must have less than values, {len(values)}")
    for a, b in zip(default, values[1:]):
        if None not in (a, b) and a not in (1, b):
            raise ValueError(f"default_value.shape {default} does not fit values.shape {values}")


@ragged_to_tensor_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    types = _partition_types(node)

    def fill(wanted: torch.Tensor, values: Any, default: Any, *partitions: torch.Tensor) -> Any:
        if not values.ndim:
            raise invalid("values must not be a scalar")
        try:
            _check_default(tuple(default.shape), tuple(values.shape))
        except ValueError as error:
            raise invalid(str(error)) from None
        count, rows = _rows(types, partitions, len(values))
        inner = list(values.shape[1:])
        sizes = _sizes(wanted.tolist(), count, rows, inner)
        if not _broadcasts(list(default.shape), inner):
            raise invalid(f"default_value {list(default.shape)} does not broadcast to {inner}")
        places, kept = _places(rows, sizes[: len(rows) + 1], len(values))
        total = int(np.prod(sizes[: len(rows) + 1], dtype=object))
        if isinstance(values, torch.Tensor):
            result = default.expand(inner).expand(total, *inner).contiguous().reshape(total, *inner)
            result = result.clone() if result.data_ptr() == default.data_ptr() else result
            result[places] = values if kept is None else values[kept]
        else:
            result = np.empty((total, *inner), object)
            result[...] = default
            result[places.numpy()] = values if kept is None else values[kept.numpy()]
        return result.reshape(sizes)

    return in_signed(node.dtype(1), fill, 1, 2)


def _rows(types: list[str], partitions: Any, count: int) -> tuple[int, list[torch.Tensor]]:
    """How many rows there are, and for each ragged dimension the row of each of its values."""
    if types[0] == "FIRST_DIM_SIZE":
        if partitions[0].ndim:
            raise invalid("FIRST_DIM_SIZE must be a scalar")
        first, partitions, types = int(partitions[0]), partitions[1:], types[1:]
    elif types[0] == "ROW_SPLITS":
        first = len(partitions[0]) - 1 if partitions[0].ndim else -1
    else:
        raise invalid(f"Cannot handle the row partition type {types[0]} in the first place")
    if first < 0:
        raise invalid(f"There cannot be {first} rows")
    found, above = [], first
    for i, (form, each) in enumerate(zip(types, partitions)):
        if form == "ROW_SPLITS":
            check_splits(each, None, "ROW_SPLITS")
            if len(each) - 1 != above:
                raise invalid(f"ROW_SPLITS have {len(each) - 1} rows, but {above} are there")
            rows = row_numbers(each.long())
        elif form == "VALUE_ROWIDS":
            rows = each.long()
            if rows.ndim != 1 or bool((rows[1:] < rows[:-1]).any()):
                raise invalid("VALUE_ROWIDS must be a sorted vector")
            if len(rows) and (int(rows[0]) < 0 or int(rows[-1]) >= above):
                raise invalid(f"VALUE_ROWIDS must be in [0, {above})")
        else:
            raise invalid(f"Cannot handle the row partition type {form}")
        if i == len(types) - 1 and len(rows) != count:
            raise invalid(f"The row partitions are of {len(rows)} values, but there are {count}")
        found.append(rows)
        above = len(rows)
    return first, found


def _within(rows: torch.Tensor) -> torch.Tensor:
    """The place of each value in its row."""
    if not len(rows):
        return rows
    numbers = torch.arange(len(rows), device=rows.device)
    begins = torch.searchsorted(rows, rows)
    return numbers - begins


def _sizes(wanted: list[int] | int, count: int, rows: list[torch.Tensor], inner: list[int]) -> list[int]:
    widths = [int(_within(each).max()) + 1 if len(each) else 0 for each in rows]
    real = [count, *widths, *inner]
    if wanted == -1:
        return real
    if not isinstance(wanted, list):
        raise invalid(f"The only valid scalar shape is -1, not {wanted}")
    if len(wanted) != len(real):
        raise invalid(f"shape has {len(wanted)} dimensions, but the ragged tensor has {len(real)}")
    for size, own in zip(wanted[len(rows) + 1 :], inner):
        if size not in (-1, own):
            raise invalid(f"shape {wanted} does not fit the values' dimensions {inner}")
    return [own if size < 0 else size for size, own in zip(wanted, real)]


def _broadcasts(sizes: list[int], target: list[int]) -> bool:
    fits = zip(reversed(sizes), reversed(target))
    return len(sizes) <= len(target) and all(a in (1, b) for a, b in fits)


def _places(rows: list[torch.Tensor], sizes: list[int], count: int) -> tuple[torch.Tensor, Any]:
    """Where the values go, and which of them: None for all. What is beyond the sizes is cut off."""
    device = rows[-1].device
    above = int(rows[0][-1]) + 1 if len(rows[0]) else 0
    at = torch.arange(max(above, 1), device=device)
    inside = at < sizes[0]
    for each, size in zip(rows, sizes[1:]):
        column = _within(each)
        at = at[each] * size + column
        inside = inside[each] & (column < size)
    if bool(inside.all()):
        return at, None
    return at[inside], inside


@ragged_to_tensor_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    wanted, values, default, *partitions = op.inputs
    types = op.attributes["row_partition_types"]
    count = F.Reshape(F.Slice(shape(values), [0], [1]), [])
    numbers = F.Range(convert_to_tensor(0), count, convert_to_tensor(1))
    outer = len(types) + (0 if types[0] in (b"FIRST_DIM_SIZE", "FIRST_DIM_SIZE") else 1)
    whole = shape(dy)
    cut = F.Slice(whole, [0], [outer]) if wanted.dims != () else convert_to_tensor(-1)
    places = F.RaggedTensorToTensor(
        cut, numbers, convert_to_tensor(-1), partitions, row_partition_types=types
    )
    inner = F.Slice(whole, [outer], [-1])
    ids = F.Reshape(places, [-1])
    flat = F.Reshape(dy, F.ConcatV2([shape(ids), inner], 0))
    d_values = F.UnsortedSegmentSum(flat, ids, count)
    unset = F.Reshape(F.Where(F.Less(ids, 0)), [-1])
    total = F.Sum(F.GatherV2(flat, unset, 0), 0)
    total.set_shape(dy.shape[outer:] if dy.shape.ndims is not None else None)
    d_default = sum_to(total, default)
    return [None, d_values, d_default] + [None] * len(partitions)
