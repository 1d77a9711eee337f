"""How often each number occurs, in vectors or in the rows of matrices, dense, sparse and ragged.

DenseBincount, SparseBincount and RaggedBincount give dense counts of the numbers below a size; those named
CountSparseOutput give sparse ones, of all numbers that occur. Weights, if there are any, are added up
instead.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.machine import machine_code
from flowstone.framework.tensors.composite import SparseTensor, SparseTensorValue
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.shapes import reshape
from flowstone.ops.sparse.index_rows import (
    LARGEST,
    check_rank,
    check_within,
    checked_parts,
    listed,
)

_COUNTS = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)
_TYPES = {"T": _COUNTS, "Tidx": dtypes.INDICES, "host": ["size"], "capturable": False, "cost": 4}

# ---- dense counts

_BY_ONE_PASS = frozenset({torch.float32, torch.float64})  # types that torch.bincount sums in themselves


def _counted(
    groups: torch.Tensor | None,
    values: torch.Tensor,
    weights: torch.Tensor,
    sizes: list[int],
    binary: bool,
) -> torch.Tensor:
    """The counts of the values below the last of the sizes, of each group if there are groups."""
    result = torch.zeros(sizes, dtype=weights.dtype, device=values.device)
    places = values.long() if groups is None else torch.add(values.long(), groups, alpha=sizes[-1])
    if values.device.type == "cpu" and values.numel() and not binary and weights.dtype in _BY_ONE_PASS:
        low, high = torch.aminmax(values)
        if 0 <= int(low) <= int(high) < sizes[-1]:
            each = weights.reshape(-1) if len(weights) else None
            counts = torch.bincount(places.reshape(-1), each, math.prod(sizes))
            return counts.to(weights.dtype).reshape(sizes)
    inside = (values >= 0) & (values < sizes[-1])
    places = places[inside]
    if binary:
        result.view(-1)[places] = 1
        return result
    each = (
        weights[inside]
        if len(weights)
        else torch.ones(len(places), dtype=weights.dtype, device=values.device)
    )
    result.view(-1).index_add_(0, places, each)
    return result


def _in_groups(node: Node, env: Environment, values: int, weights: int) -> machine_code.GroupCounts | None:
    """What counts on a host, for the types of these inputs."""
    if env.device.type != "cpu":
        return None
    return machine_code.group_counts(node.dtype(values).torch, node.dtype(weights).torch)


def _checked_size(size: torch.Tensor) -> int:
    if size.ndim:
        raise invalid(f"Shape must be rank 0 but is rank {size.ndim}")
    if int(size) < 0:
        raise invalid(f"size ({int(size)}) must be non-negative")
    return int(size)


def _known_size(node: Node, i: int) -> int | None:
    check_rank(node.dims(i), 0)
    size = node.constant(i)
    if size is not None and int(size) < 0:
        raise ValueError(f"size ({int(size)}) must be non-negative")
    return None if size is None else int(size)


def _check_weights(values: torch.Tensor, weights: torch.Tensor) -> None:
    if weights.numel() and weights.shape != values.shape:
        raise invalid(
            "`weights` must be the same shape as the values or a length-0 `Tensor`, in which case it acts as "
            f"all weights equal to 1. Received {listed(weights.shape)} for {listed(values.shape)}"
        )


dense_bincount_op = op(
    "DenseBincount",
    "input: Tidx, size: Tidx, weights: T -> output: T",
    "binary_output: bool = false",
    **_TYPES,
).no_gradient()


@dense_bincount_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    if dims is not None and len(dims) > 2:
        raise ValueError(f"Shape must be at most rank 2 but is rank {len(dims)}")
    size = _known_size(node, 1)
    if dims is None:
        return None
    if size is None:
        return (None,) * len(dims)
    return (dims[0], size) if len(dims) == 2 else (size,)


@dense_bincount_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    binary, in_groups = node.attributes["binary_output"], _in_groups(node, env, 0, 2)

    def count(values: torch.Tensor, size: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        if values.ndim > 2:
            raise invalid(f"Shape must be at most rank 2 but is rank {values.ndim}")
        bins = _checked_size(size)
        _check_weights(values, weights)
        if values.ndim and values.numel() and in_groups is not None and int(values.amin()) >= 0:
            count, width = (1, values.numel()) if values.ndim == 1 else values.shape
            found = in_groups(None, values, weights, (count, width, bins), binary)
            if found is not None:
                return found.reshape(*values.shape[:-1], bins)
        flat, groups, sizes = values.reshape(-1), None, [bins]
        if len(flat) and int(flat.amin()) < 0:
            raise invalid(f"Input 'in' must be non-negative! Negative input value found: {int(flat.amin())}")
        if values.ndim == 2:
            groups = torch.arange(len(values), device=flat.device).repeat_interleave(values.shape[1])
            sizes = [len(values), bins]
        return _counted(groups, flat, weights.reshape(-1), sizes, binary)

    return count


sparse_bincount_op = op(
    "SparseBincount",
    "indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T -> output: T",
    "binary_output: bool = false",
    **{**_TYPES, "host": ["size", "dense_shape"]},
).no_gradient()


@sparse_bincount_op.infer
def _(node: Node) -> Shapes:
    size, sizes = _known_size(node, 3), node.constant_dims(2)
    if sizes is None or node.constant(2) is None:
        return None
    if len(sizes) > 2:
        raise ValueError("Input must be less than rank 2")
    return (sizes[0], size) if len(sizes) == 2 else (size,)


@sparse_bincount_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    binary, in_groups = node.attributes["binary_output"], _in_groups(node, env, 1, 4)

    def count(
        rows: torch.Tensor,
        values: torch.Tensor,
        shape: torch.Tensor,
        size: torch.Tensor,
        weights: torch.Tensor,
    ) -> torch.Tensor:
        sizes, bins = checked_parts(rows, values, shape), _checked_size(size)
        _check_weights(values, weights)
        if not 1 <= len(sizes) <= 2:
            raise invalid(f"Input must have 1 or 2 dimensions, but has the shape {listed(sizes)}")
        is_matrix = len(sizes) == 2
        found = None
        if in_groups is not None and len(values):
            all_sizes = (sizes[0] if is_matrix else 1, sizes[-1], bins)
            found = in_groups(rows, values, weights, all_sizes, binary)
        if found is not None:
            return found if is_matrix else found[0]
        check_within(rows, sizes)
        groups = rows[:, 0] if is_matrix else None
        return _counted(groups, values, weights, [sizes[0], bins] if is_matrix else [bins], binary)

    return count


def _rows_of(splits: torch.Tensor, count: int) -> torch.Tensor:
    """The row of each of so many values. InvalidArgumentError for splits that are no ragged tensor's."""
    if splits.ndim != 1 or not len(splits):
        raise invalid(f"Splits must be a vector with at least one element, got {listed(splits.shape)}")
    if int(splits[0]):
        raise invalid(f"Splits must start with 0, not with {int(splits[0])}")
    lengths = splits[1:] - splits[:-1]
    if int(splits[-1]) != count or bool((lengths < 0).any()):
        raise invalid(f"Splits must ascend to the number of values, {count}, got {splits.tolist()[-20:]}")
    return torch.arange(len(lengths), device=splits.device).repeat_interleave(lengths)


ragged_bincount_op = op(
    "RaggedBincount",
    "splits: int64, values: Tidx, size: Tidx, weights: T -> output: T",
    "binary_output: bool = false",
    **_TYPES,
).no_gradient()


ragged_bincount_op.infer(lambda node: None)


@ragged_bincount_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    binary = node.attributes["binary_output"]

    def count(splits: torch.Tensor, values: torch.Tensor, size: torch.Tensor, weights: torch.Tensor) -> Any:
        bins, rows = _checked_size(size), _rows_of(splits, values.numel())
        _check_weights(values, weights)
        if len(rows) and int(values.amin()) < 0:
            raise invalid(f"Input must be non-negative, but one value is {int(values.amin())}")
        sizes = [len(splits) - 1, bins]
        return _counted(rows, values.reshape(-1), weights.reshape(-1), sizes, binary)

    return count


# ---- sparse counts

_SPARSE = "output_indices: int64, output_values: output_type, output_dense_shape: int64"
_LENGTHS = "minlength: int >= -1 = -1 ; maxlength: int >= -1 = -1 ; binary_output: bool"


def _declare(name: str, inputs: str) -> OpDeclaration:
    return op(
        name,
        f"{inputs} -> {_SPARSE}",
        _LENGTHS,
        T=dtypes.INDICES,
        output_type=_COUNTS,
        capturable=False,
        cost=10,
    ).no_gradient()


def _count_sparsely(
    node: Node, groups: torch.Tensor | None, count: int, values: torch.Tensor, weights: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The counts of each group's values, in order; the sizes are the groups' number and the values' bound."""
    low, high = (int(x) for x in torch.aminmax(values)) if len(values) else (0, 0)
    if low < 0:
        raise invalid(f"Input values must all be non-negative, but one is {low}")
    least, most = node.attributes["minlength"], node.attributes["maxlength"]
    bound = most if most >= 0 else max(high + 1, least)
    if most >= 0 and high >= most:
        inside = values < most
        values, groups = values[inside], None if groups is None else groups[inside]
        weights = weights[inside] if len(weights) else weights
    if bound and count > LARGEST // bound:
        raise invalid(f"The result has {count} x {bound} elements, more than 64 bits count")
    numbers = values.long() if groups is None else torch.add(values.long(), groups, alpha=bound)
    found, places = torch.unique(numbers, return_inverse=True)
    result = torch.zeros(len(found), dtype=weights.dtype, device=values.device)
    if node.attributes["binary_output"]:
        result.fill_(1)
    else:
        each = weights if len(weights) else weights.new_ones(len(values))
        result.index_add_(0, places, each)
    if groups is None:
        return found[:, None], result, torch.tensor([bound])
    bins = max(bound, 1)
    rows = torch.stack((found.div(bins, rounding_mode="floor"), found % bins), 1)
    return rows, result, torch.tensor([count, bound])


def _sparse_dims(rank: int | None) -> list[Dims]:
    return [(None, rank), (None,), (rank,)]


dense_count_op = _declare("DenseCountSparseOutput", "values: T, weights: output_type")


@dense_count_op.infer
def _(node: Node) -> Shapes:
    dims, weights = node.dims(0), node.dims(1)
    if dims is not None and weights is not None and weights != (0,):
        merge(weights, dims)
    return _sparse_dims(None if dims is None else len(dims))


@dense_count_op.kernel(CPU)  # how many values differ is only known on the host
def _(node: Node, env: Environment) -> Kernel:
    def count(values: torch.Tensor, weights: torch.Tensor) -> Any:
        if not 1 <= values.ndim <= 2:
            raise invalid(f"Input must be a 1 or 2-dimensional tensor. Got: {listed(values.shape)}")
        _check_weights(values, weights)
        groups = torch.arange(len(values)).repeat_interleave(values.shape[1]) if values.ndim == 2 else None
        return _count_sparsely(node, groups, len(values), values.reshape(-1), weights.reshape(-1))

    return count


sparse_count_op = _declare(
    "SparseCountSparseOutput", "indices: int64, values: T, dense_shape: int64, weights: output_type"
)


@sparse_count_op.infer
def _(node: Node) -> Shapes:
    indices, sizes = node.dims(0), node.dims(2)
    ranks = [dims[at] for dims, rank, at in ((indices, 2, 1), (sizes, 1, 0)) if dims and len(dims) == rank]
    return _sparse_dims(next((rank for rank in ranks if rank is not None), None))


@sparse_count_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    def count(rows: torch.Tensor, values: torch.Tensor, shape: torch.Tensor, weights: torch.Tensor) -> Any:
        sizes = checked_parts(rows, values, shape)
        if not 1 <= len(sizes) <= 2:
            raise invalid(f"Input must be a 1 or 2-dimensional tensor. Got: {listed(sizes)}")
        _check_weights(values, weights)
        check_within(rows, sizes)
        groups = rows[:, 0] if len(sizes) == 2 else None
        return _count_sparsely(node, groups, sizes[0], values, weights)

    return count


ragged_count_op = _declare("RaggedCountSparseOutput", "splits: int64, values: T, weights: output_type")
ragged_count_op.infer(lambda node: _sparse_dims(None if node.dims(0) is None else 2))


@ragged_count_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    def count(splits: torch.Tensor, values: torch.Tensor, weights: torch.Tensor) -> Any:
        rows = _rows_of(splits, values.numel())
        _check_weights(values, weights)
        return _count_sparsely(node, rows, len(splits) - 1, values.reshape(-1), weights.reshape(-1))

    return count


# ---- public functions


def sparse_bincount(
    values: Any,
    weights: Any = None,
    axis: int | None = 0,
    minlength: int | None = None,
    maxlength: int | None = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """How often each number occurs, as a SparseTensor.

    Args:
        values: int32 or int64 Tensor or SparseTensor of one or two dimensions, not negative.
        weights: of the same kind and shape: what to add up for each value; None for ones.
        axis: 0 (or None) counts in all of it, -1 in each row.
        minlength: the least last size of the result.
        maxlength: the last size of the result; numbers from there on are not counted.
        binary_output: whether the result is 1 for each number that occurs.
        name: the scope's name.

    Returns:
        SparseTensor [largest + 1], or of rows [rows, largest + 1], of the type of the weights, else values.

    Raises:
        ValueError: another axis, lengths below 0, or weights of another kind.
        InvalidArgumentError: (in the step) negative values, or weights of another shape.
    """
    if axis not in (None, 0, -1):
        raise ValueError(
            f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported."
        )
    for length, what in ((minlength, "minlength"), (maxlength, "maxlength")):
        if length is not None and length < 0:
            raise ValueError(f"{what} should be at least 0, but is {length}")
    is_sparse = isinstance(values, (SparseTensor, SparseTensorValue))
    if weights is not None and isinstance(weights, (SparseTensor, SparseTensorValue)) != is_sparse:
        raise ValueError("The weights must be sparse where the values are, and only there.")
    with get_default_graph().name_scope(name or "count"):
        sparse = SparseTensor.from_value(values) if is_sparse else None
        elements = convert_to_tensor(values if sparse is None else sparse.values, name="values")
        found = constant([], elements.dtype.base_dtype) if weights is None else _elements(weights)
        lengths = {
            "minlength": -1 if minlength is None else minlength,
            "maxlength": -1 if maxlength is None else maxlength,
            "binary_output": binary_output,
        }
        if axis == -1 and sparse is not None:
            parts = (sparse.indices, elements, sparse.dense_shape, found)
            return SparseTensor(*sparse_count_op.several(*parts, **lengths))
        if axis != -1:
            elements, found = reshape(elements, [-1]), reshape(found, [-1])
        return SparseTensor(*dense_count_op.several(elements, found, **lengths))


def _elements(weights: Any) -> Any:
    is_sparse = isinstance(weights, (SparseTensor, SparseTensorValue))
    return convert_to_tensor(weights.values if is_sparse else weights, name="weights")
