"""Coordinate grids."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.constants import ones
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.shapes import reshape, size

__all__ = ["meshgrid"]


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """N vectors as N tensors of the grid's shape, each varying along its own dimension.

    `indexing`: "xy" (default; the first two dimensions exchanged) or "ij"; `name`. ValueError for another
    indexing, TypeError for other keywords.
    """
    indexing, name = kwargs.pop("indexing", "xy"), kwargs.pop("name", "meshgrid")
    if kwargs:
        raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    count = len(args)
    with get_default_graph().name_scope(name):
        parts = [reshape(stack(x), [1] * i + [-1] + [1] * (count - i - 1)) for i, x in enumerate(args)]
        sizes = [size(x) for x in args]
        dtype = convert_to_tensor(args[0]).dtype if args else None
        if indexing == "xy" and count > 1:
            parts[0] = reshape(parts[0], [1, -1] + [1] * (count - 2))
            parts[1] = reshape(parts[1], [-1, 1] + [1] * (count - 2))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        whole = ones(sizes, dtype) if parts else None
        return [F.Mul(part, whole, name="mul") for part in parts]
