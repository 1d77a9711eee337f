"""`ImmutableConst`: a constant whose elements lie in a file, as they lie in memory.

The file is mapped when a step first needs it, so it costs memory only where it is read. It is never written.
"""

from __future__ import annotations

import math
import os
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import invalid

immutable_const_op = op(
    "ImmutableConst",
    "-> tensor: dtype",
    "dtype: type ; shape: shape ; memory_region_name: string",
    stateful=True,  # the file may be another in the next session
    overlapping=True,  # the mapping stays
)
immutable_const_op.infer(lambda node: node.attributes["shape"])
immutable_const_op.no_gradient()


@immutable_const_op.kernel(CPU)  # a file is in the host's memory
def _(node: Node, env: Environment) -> Kernel:
    dims, dtype = node.attributes["shape"], node.attributes["dtype"].torch
    path: str = node.attributes["memory_region_name"]
    found: list[torch.Tensor] = []

    def read() -> Any:
        if not found:
            if dtype is None:
                name = node.attributes["dtype"].name
                raise errors.UnimplementedError(None, None, f"ImmutableConst cannot map elements of {name}.")
            if dims is None or None in dims:
                raise invalid(f"Shape {format_dims(dims)} is not fully defined")
            found.append(_map(path, tuple(dims), dtype))
        return found[0]

    return read


def _map(path: str, dims: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    count = math.prod(dims)
    try:
        length = os.path.getsize(path)
    except OSError as error:
        raise errors.NotFoundError(None, None, f"{path}; {error.strerror}") from None
    if length < count * dtype.itemsize:
        raise errors.InternalError(
            None,
            None,
            f"Readonly memory region {path} has wrong length ({length}) when allocating "
            f"{count * dtype.itemsize}",
        )
    if not count:
        return torch.empty(dims, dtype=dtype)
    return torch.from_file(path, shared=False, size=count, dtype=dtype).reshape(dims)
