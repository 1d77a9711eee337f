"""Sobol's sequence: points that fill the unit cube evenly (direction numbers of Joe and Kuo, 2008)."""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import merge

__all__ = ["sobol_sample"]

_MOST_POINTS = 2**30  # ATen's engine has 30 bits

# ATen's engine is the host's; TensorFlow has no other kernel either.
sobol_op = op(
    "SobolSample",
    "dim: int32, num_results: int32, skip: int32 -> samples: dtype",
    "dtype: type in [float, double] = float",
    cost=40,
)
sobol_op.not_differentiable()


@sobol_op.infer
def _(node: Node) -> Shapes:
    for position in range(3):
        merge(node.dims(position), ())
    columns, rows = node.constant(0), node.constant(1)
    return (None if rows is None else int(rows), None if columns is None else int(columns))


@sobol_op.kernel(CPU)  # torch's engine of the sequence works on the host
def _(node: Node, env: Environment) -> Kernel:
    kind = node.attributes["dtype"].torch

    def draw(dim: torch.Tensor, num_results: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        columns, count, skipped = int(dim), int(num_results), int(skip)
        most = torch.quasirandom.SobolEngine.MAXDIM
        _check(1 <= columns <= most, f"dim must be at least one and at most {most}, got {columns}")
        _check(count >= 1, f"num_results must be at least one, got {count}")
        _check(skipped >= 0, f"skip must be non-negative, got {skipped}")
        _check(
            count + skipped < _MOST_POINTS,
            f"num_results {count} and skip {skipped} reach beyond 2 ** 30 points",
        )
        engine = torch.quasirandom.SobolEngine(columns)
        engine.fast_forward(skipped + 1)  # the first point, the origin, is left out
        return engine.draw(count, dtype=kind)

    return draw


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise errors.InvalidArgumentError(None, None, message)


def sobol_sample(
    dim: Any, num_results: Any, skip: Any = 0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Points [num_results, dim] of Sobol's sequence in [0, 1), after `skip` others and without the origin.

    InvalidArgumentError if `dim` or `num_results` is below one, or `skip` below zero.
    """
    with get_default_graph().name_scope(name or "sobol"):
        return sobol_op(dim, num_results, skip, dtype=dtypes.as_dtype(dtype))
