"""Distinct slices along an axis, in the order in which they appear first."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.node import Node
from flowstone.framework.operation import Shapes, op
from flowstone.framework.shape import Dims
from flowstone.ops.arrays.arrays import invalid

__all__: list[str] = []

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
            count = torch.bincount(places, minlength=y.shape[at]).to(dtype)
            return (*result, count) if counts else result

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
    count = x.shape[axis]
    if not count:
        return x, torch.zeros(0, dtype=torch.int64)
    _, inverse = torch.unique(x, dim=axis, return_inverse=True)
    total = int(inverse.max()) + 1
    first = torch.full((total,), count, dtype=torch.int64, device=x.device)
    first.scatter_reduce_(0, inverse, torch.arange(count, device=x.device), "amin")
    order = torch.argsort(first)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(total, device=x.device)
    return x.index_select(axis, first[order]), rank[inverse]


def _distinct_text(x: Any, axis: int) -> tuple[Any, torch.Tensor]:
    places: dict[Any, int] = {}
    slices = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    index = [places.setdefault(tuple(each), len(places)) for each in slices]
    first = [index.index(i) for i in range(len(places))]
    return np.take(x, first, axis), torch.tensor(index, dtype=torch.int64)


_declare_unique("UniqueV2", False)
_declare_unique("UniqueWithCountsV2", True)
