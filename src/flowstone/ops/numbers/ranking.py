"""The largest entries of rows, and whether a target is among them.

Equal entries rank by their index, NaN above all. Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.machine_code import largest
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.arrays.constants import range as numbers_to
from flowstone.ops.arrays.constants import zeros
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.arrays.shapes import size as size_of
from flowstone.ops.numbers.reductions import reduce_prod
from flowstone.ops.numbers.sorted_keys import descending_order, has_keys

Array = np.ndarray[Any, Any]

__all__ = ["in_top_k", "top_k"]

REAL = (*dtypes.REAL, dtypes.bfloat16)


def _infer_top_k(dims: Dims, k: int | None) -> list[Dims]:
    if dims is not None and not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if k is not None and k < 0:
        raise ValueError(f"Need k >= 0, got {k}")
    if dims is None:
        return [None, None]
    if k is not None and dims[-1] is not None and dims[-1] < k:
        raise ValueError(f"input must have last dimension >= k = {k} but is {dims[-1]}")
    return [(*dims[:-1], k)] * 2


def _top_k(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest along the last dimension, equals in order of their index."""
    if x.dim() < 1:
        raise errors.InvalidArgumentError(None, None, f"input must be >= 1-D, got shape {list(x.shape)}")
    size = x.shape[-1]
    if not 0 <= k <= size:
        raise errors.InvalidArgumentError(None, None, f"input must have at least k={k} columns, had {size}")
    if x.dtype in (torch.uint16, torch.uint32, torch.uint64):
        values, indices = _top_k(x.to(torch.int64) if x.dtype is not torch.uint64 else x.to(torch.float64), k)
        return values.to(x.dtype), indices
    if x.device.type == "cpu":
        if (find := largest(x.dtype)) is not None and (found := find(x, k)) is not None:
            return found
        if k * _FEW_OF >= size and has_keys(x):
            indices = descending_order(x).narrow(-1, 0, k)
            return x.gather(-1, indices), indices.to(torch.int32)
        values, indices = torch.topk(x, min(k + 1, size), -1)
    if x.device.type != "cpu" or (k and _has_equals(values)):
        # ATen's topk orders equals as it happens to, and whether there are some a GPU would be waited for
        values, indices = torch.sort(x, dim=-1, descending=True, stable=True)
    return values.narrow(-1, 0, k), indices.narrow(-1, 0, k).to(torch.int32)


_FEW_OF = 4  # less than one of so many elements is found without sorting the others
_FEW_VALUES = 64  # which Python compares faster than ATen


def _has_equals(values: torch.Tensor) -> bool:
    """Whether neighbours in a row are equal."""
    if values.numel() > _FEW_VALUES:
        return bool((values[..., 1:] == values[..., :-1]).any())
    rows = values.reshape(-1, values.shape[-1]).tolist()
    return any(a == b for row in rows for a, b in itertools.pairwise(row))


top_k_op = op(
    "TopK",
    "input: T -> values: T, indices: int32",
    "k: int >= 0 ; sorted: bool = true",
    T=REAL,
    deprecated=(7, "TopKV2"),
)
top_k_op.infer(lambda node: _infer_top_k(node.dims(0), node.attributes["k"]))
top_k_v2 = op(
    "TopKV2",
    "input: T, k: Tk[?] -> values: T, indices: index_type",
    "sorted: bool = true ; Tk: type in [int16, int32, int64] = int32 ; "
    "index_type: type in [int16, int32, int64] = int32",
    T=REAL,
    host=["k"],
)


@top_k_v2.infer
def _(node: Node) -> Shapes:
    k = node.constant(1)
    return _infer_top_k(node.dims(0), None if k is None else int(k))


@top_k_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return Call(_top_k, X0, node.attributes["k"])


@top_k_v2.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if node.attributes["index_type"] is dtypes.int32:
        return lambda x, k: _top_k(x, int(k))
    index_type = node.attributes["index_type"].torch

    def run(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        values, indices = _top_k(x, int(k))
        return values, indices.to(index_type)

    return run


def _top_k_gradient(op: Operation, d_values: Tensor, _: Tensor) -> Tensor:
    """The gradient in the places where the values came from, row by row."""
    x, places = op.inputs[0], op.outputs[1]
    sizes = shape(x)
    flat = F.Reshape(places, stack([np.int64(-1), _last(shape(places))]))
    size = _last(sizes)
    rows = F.Cast(shape(flat)[0], DstT=dtypes.int64)
    starts = F.ExpandDims(numbers_to(0, rows * size, size), -1)
    positions = F.Reshape(flat + F.Cast(starts, DstT=dtypes.int32), [-1])
    positions, values = F.ExpandDims(positions, -1), F.Reshape(d_values, [-1])
    return F.Reshape(F.ScatterNd(positions, values, [reduce_prod(sizes)]), sizes)


def _last(sizes: Tensor) -> Tensor:
    """The last of some sizes."""
    wide = F.Cast(sizes, DstT=dtypes.int64)
    return F.GatherV2(wide, size_of(sizes) - 1, 0)


top_k_op.gradient(lambda op, *dys: (_top_k_gradient(op, *dys),))
top_k_v2.gradient(lambda op, *dys: (_top_k_gradient(op, *dys), zeros([], dtypes.int32)))


_FEW = 4096  # elements, for which NumPy's calls are half as long


def _in_top_k(predictions: torch.Tensor, targets: torch.Tensor, k: int) -> torch.Tensor:
    if predictions.dim() != 2 or targets.shape != predictions.shape[:1]:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"First dimension of predictions {list(predictions.shape)} must match length of targets "
            f"{list(targets.shape)}",
        )
    classes = predictions.shape[1]
    if 0 < predictions.numel() < _FEW and predictions.device.type == "cpu":
        return torch.from_numpy(_few_in_top_k(predictions.numpy(), targets.numpy(), k))
    index = targets.to(torch.int64)
    valid = (index >= 0) & (index < classes)
    # A sum that is finite has finite terms alone; a device is not waited for to know it.
    if predictions.device.type != "cpu" or not math.isfinite(float(predictions.sum())):
        valid &= torch.isfinite(predictions).all(1)
    if not classes:
        return valid
    chosen = torch.gather(predictions, 1, index.clamp(0, classes - 1).unsqueeze(1))
    better = torch.gt(predictions, chosen, out=torch.empty_like(predictions))
    return (better.sum(1) < k).logical_and_(valid)


def _few_in_top_k(predictions: Array, targets: Array, k: Any) -> Array:
    rows, classes = predictions.shape
    index = np.minimum(np.maximum(targets, 0), classes - 1)
    chosen = predictions.ravel().take(np.arange(rows) * classes + index)
    is_best = np.add.reduce(predictions > chosen[:, None], 1) < int(k)
    found: Array = is_best & (index == targets) & np.logical_and.reduce(np.isfinite(predictions), 1)
    return found


def _infer_in_top_k(node: Node) -> Dims:
    predictions, targets = node.dims(0), node.dims(1)
    for dims, rank in ((predictions, 2), (targets, 1)):
        if dims is not None and len(dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}")
    return merge((None,) if predictions is None else predictions[:1], targets)


in_top_k_op = op(
    "InTopK",
    "predictions: float, targets: T -> precision: bool",
    "k: int ; T: type in [int32, int64] = int32",
)
in_top_k_op.infer(_infer_in_top_k)
in_top_k_op.kernel(CPU, GPU)(lambda node, env: Call(_in_top_k, X0, X1, node.attributes["k"]))
in_top_k_op.not_differentiable()
in_top_k_v2 = op(
    "InTopKV2",
    "predictions: float, targets: T, k: T[?] -> precision: bool",
    "T: type in [int32, int64] = int32",
)
in_top_k_v2.infer(_infer_in_top_k)
in_top_k_v2.kernel(CPU, GPU)(lambda node, env: _in_top_k)
in_top_k_v2.not_differentiable()


def top_k(
    input: Any,
    k: Any = 1,
    sorted: bool = True,
    name: str | None = None,
    index_type: Any = dtypes.int32,
) -> Any:
    """The `k` largest entries of each row, descending, and their int32 indices; equals by index.

    Returns (values, indices), each [..., k]. ValueError or InvalidArgumentError where a row has fewer than k.
    """
    return top_k_v2(input, k, sorted=sorted, index_type=index_type, name=name)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether targets[i] is among the `k` largest of the float32 row predictions[i]; bool [batch].

    Entries equal to the target's count for it; False where a target is out of range or a row is not finite.
    """
    with get_default_graph().name_scope(name or "in_top_k"):
        return in_top_k_v2(predictions, targets, k)
