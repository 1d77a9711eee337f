"""Dense tensors from scattered values: a default everywhere but at given places.

Places are a scalar or vector of positions in a vector, or a matrix with one index tuple a row. Unless
`validate_indices` is false they must be in row-major order and differ; otherwise the last of equal ones
counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import boxed, in_signed, invalid, is_text, sizes_of
from flowstone.ops.sparse.index_rows import check_rows

__all__ = ["sparse_to_dense"]

sparse_to_dense_op = op(
    "SparseToDense",
    "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T -> dense: T",
    "validate_indices: bool = true",
    T=None,
    Tindices=(dtypes.int32, dtypes.int64),
    host=["sparse_indices", "output_shape"],
    capturable=False,  # the places come from the host
)


@sparse_to_dense_op.infer
def _(node: Node) -> tuple[int | None, ...] | None:
    dims = node.dims(1)
    if dims is not None and len(dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
    return sizes_of(node, 1)


@sparse_to_dense_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    validate = node.attributes["validate_indices"]

    def scatter(places: torch.Tensor, shape: torch.Tensor, values: Any, default: Any) -> Any:
        rows = _index_rows(places, shape, values, default)
        sizes = shape.tolist()
        numbers = check_rows(rows, sizes) if validate else None
        if not validate and bool((rows < 0).any() | (rows >= shape).any()):
            raise invalid(f"Indices are not valid (out of bounds).  Shape: {format_dims(tuple(sizes))}")
        if isinstance(values, torch.Tensor):
            dense = default.expand(sizes).clone(memory_format=torch.contiguous_format)
            if numbers is not None:
                dense.view(-1)[numbers.to(dense.device)] = values
                return dense
            return (
                dense.index_put_(tuple(rows.long().to(dense.device).unbind(1)), values)
                if len(rows)
                else dense
            )
        texts = np.full(sizes, default[()], object)
        texts[tuple(rows.numpy().T)] = values
        return boxed(texts)

    if is_text(node, 2):
        return lambda places, shape, values, default: scatter(places, shape, boxed(values), boxed(default))
    return in_signed(node.dtype(2), scatter, 2, 3)


def _index_rows(places: torch.Tensor, shape: torch.Tensor, values: Any, default: Any) -> torch.Tensor:
    """The places as [count, rank]; InvalidArgumentError where the arguments do not fit together."""
    if places.dim() > 2:
        raise invalid(
            f"sparse_indices should be a scalar, vector, or matrix, got shape {format_dims(places.shape)}"
        )
    rows = places if places.dim() == 2 else places.reshape(-1, 1)
    if shape.dim() != 1:
        raise invalid(f"output_shape must be rank 1, got shape {format_dims(shape.shape)}")
    if len(shape) != rows.shape[1]:
        raise invalid(
            f"output_shape has incorrect number of elements: {len(shape)} should be: {rows.shape[1]}"
        )
    if values.ndim and tuple(values.shape) != (len(rows),):
        raise invalid(
            f"sparse_values has incorrect shape {format_dims(values.shape)}, should be [] or [{len(rows)}]"
        )
    if default.ndim:
        raise invalid("default_value should be a scalar.")
    return rows


@sparse_to_dense_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """By the values, what flows to their places; by the default, the rest."""
    places, values = op.inputs[0], op.inputs[2]
    if places.shape.ndims is not None and places.shape.ndims < 2:
        places = F.Reshape(places, [-1, 1])
    flowing = F.GatherNd(dy, places)
    taken = F.Sum(flowing, F.Range(0, F.Rank(flowing), 1))
    rest = F.Sub(F.Sum(dy, F.Range(0, F.Rank(dy), 1)), taken)
    return None, None, taken if values.shape.ndims == 0 else flowing, rest


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A tensor of shape `output_shape`: `sparse_values` at `sparse_indices`, elsewhere `default_value`.

    `sparse_indices`: int32 or int64, a scalar or vector of positions, or [count, rank] index tuples;
    `sparse_values`: one, or [count]. InvalidArgumentError in the step for places outside, and with
    `validate_indices` for places that repeat or are not in row-major order.
    """
    with get_default_graph().name_scope(name or "SparseToDense") as scope:
        values = convert_to_tensor(sparse_values, name="sparse_values")
        default = convert_to_tensor(default_value, values.dtype.base_dtype, name="default_value")
        return sparse_to_dense_op(
            sparse_indices, output_shape, values, default, validate_indices=validate_indices, name=scope
        )
