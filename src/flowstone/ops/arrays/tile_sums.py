"""`TileGrad`, which old graphs have for the gradient of `Tile`: the sum of a tensor's tiles."""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import Dims, format_dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.numbers.elementwise import ALL_NUMBERS

tile_grad_op = op(
    "TileGrad",
    "input: T, multiples: int32 -> output: T",
    T=None,
    host=["multiples"],
    deprecated=(3, "Sum"),
)
tile_grad_op.no_gradient()


@tile_grad_op.infer
def _(node: Node) -> Dims:
    dims, counts = node.dims(0), node.constant_dims(1)
    if dims is None or counts is None or len(dims) != len(counts):
        return None if counts is None else (None,) * len(counts)
    return tuple([n // count if n is not None and count else None for n, count in zip(dims, counts)])


@tile_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if node.dtype(0) not in ALL_NUMBERS:
        raise invalid(f"TileGrad adds numbers, not {node.dtype(0).name}")

    def add_tiles(x: Any, multiples: Any) -> Any:
        counts, sizes = multiples.tolist(), tuple(x.shape)
        if len(counts) != len(sizes):
            raise invalid(
                f"Expected multiples argument to be a vector of length {len(sizes)} but got length "
                f"{len(counts)}"
            )
        if any(count <= 0 or n % count for n, count in zip(sizes, counts)):
            raise invalid(f"Expected multiples that divide {format_dims(sizes)}, but got {counts}")
        if not sizes:
            return x.clone()
        split = [part for n, count in zip(sizes, counts) for part in (count, n // count)]
        return torch.sum(x.reshape(split), list(range(0, len(split), 2)), dtype=x.dtype)

    return add_tiles
