"""Distinct slices along an axis, in the order in which they appear first."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.distinct_texts import first_of_each, numbered
from flowstone.ops.arrays.selection import ranked, ranked_values
from flowstone.ops.sparse.index_rows import numbered_together

__all__: list[str] = []

_INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool})
_FEW = 1000  # elements, up to which ATen's search is as fast
_FEWEST = 200  # elements, of which Python compares the slices as fast
_DISTINCT = "out_idx: type in [int32, int64] = int32"


def _declare_unique(name: str, counts: bool) -> None:
    more = ", count: out_idx" if counts else ""
    declaration = op(
        name,
        f"x: T, axis: Taxis -> y: T, idx: out_idx{more}",
        f"T: type ; Taxis: type in [int32, int64] = int64 ; {_DISTINCT}",
        host=["axis"],
        capturable=False,
    )
    declaration.no_gradient()

    @declaration.infer
    def _(node: Node) -> Shapes:
        dims, axis = node.dims(0), node.constant(1)
        y: Dims = None if dims is None else (None,) * len(dims)
        count: int | None = None
        if dims is not None and axis is not None:
            if not axis.size and len(dims) != 1:
                raise ValueError("x expects a 1D vector.")
            count = dims[int(axis.reshape(-1)[0]) if axis.size else 0]
        return [y, (count,), (None,)] if counts else [y, (count,)]

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dtype = node.attributes["out_idx"].torch

        def unique(x: Any, axis: torch.Tensor) -> Any:
            at = _axis_of(axis, x.ndim)
            y, places = (_distinct_text if isinstance(x, np.ndarray) else _distinct)(x, at)
            result = (y, places.to(dtype))
            return (*result, torch.bincount(places, minlength=y.shape[at]).to(dtype)) if counts else result

        return unique


def _axis_of(axis: torch.Tensor, rank: int) -> int:
    if axis.numel() > 1 or (axis.ndim != 1 and axis.numel()):
        raise invalid(f"axis does not support input tensors larger than 1 elements, got {axis.numel()}")
    if not axis.numel():
        if rank != 1:
            raise invalid("unique expects a 1D vector.")
        return 0
    at = int(axis[0])
    if not -rank <= at < rank:
        raise invalid(f"axis has to be between [0, {rank}), but is {at}")
    return at % rank


def _distinct(x: Any, axis: int) -> tuple[Any, torch.Tensor]:
    """The slices in the order in which they appear first, and which of them each is."""
    if not x.shape[axis]:
        return x, torch.zeros(0, dtype=torch.int64)
    if x.is_cpu and x.numel() <= _FEWEST and not x.is_complex():
        rows = x.movedim(axis, 0).reshape(x.shape[axis], -1).tolist()
        ranks, places = ranked_values(map(tuple, rows))
    else:
        ranks, places = ranked(_slice_numbers(x, axis))
    found = (x.view(torch.int64) if x.dtype is torch.uint64 else x).index_select(axis, places)
    return found.view(x.dtype), ranks


def _slice_numbers(x: Any, axis: int) -> Any:
    """A number for each slice, equal where the slices are."""
    if x.dtype in _INTEGERS and x.numel() > _FEW:
        rows = x.movedim(axis, 0).reshape(x.shape[axis], -1)
        return numbered_together(rows.byte() if x.dtype is torch.bool else rows)[0]
    return torch.unique(x, dim=axis, return_inverse=True)[1]


def _distinct_text(x: Any, axis: int) -> tuple[Any, torch.Tensor]:
    slices = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1).tolist()
    distinct, numbers = numbered(list(map(tuple, slices)))
    return np.take(x, first_of_each(numbers, len(distinct)), axis), torch.from_numpy(numbers)


_declare_unique("UniqueV2", False)
_declare_unique("UniqueWithCountsV2", True)
