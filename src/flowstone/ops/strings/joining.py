"""Strings joined: element by element, along axes, by segments."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.building import operand
from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, format_dims, merge
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.constants import range as numbers_to
from flowstone.ops.arrays.shapes import rank
from flowstone.ops.strings.elementwise_strings import Strings, as_array, as_list, attribute_bytes

__all__ = ["reduce_join", "string_join", "unsorted_segment_join"]

# ---- element by element

string_join_op = op(
    "StringJoin", "inputs: N*string -> output: string", "N: int >= 1 ; separator: string = ''"
)
string_join_op.not_differentiable()


@string_join_op.infer
def _(node: Node) -> Dims:
    shapes = [each for i in range(len(node.inputs)) if (each := node.dims(i)) != ()]
    dims: Dims = shapes[0] if shapes else ()
    for each in shapes[1:]:
        dims = merge(dims, each)
    return dims


@string_join_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[..., Strings]:
    separator = attribute_bytes(node, "separator")

    def join(*inputs: Strings) -> Strings:
        shape: tuple[int, ...] = ()
        for each in inputs:
            if each.ndim:
                if shape and each.shape != shape:
                    raise invalid(
                        f"Input shapes do not match: {format_dims(shape)} vs. {format_dims(each.shape)}"
                    )
                shape = each.shape
        columns: list[Any] = [
            as_list(each) if each.ndim or not shape else itertools.repeat(each[()]) for each in inputs
        ]
        return as_array(list(map(separator.join, zip(*columns))), shape)

    return join


# ---- along axes

reduce_join_op = op(
    "ReduceJoin",
    "inputs: string, reduction_indices: int32 -> output: string",
    "keep_dims: bool = false ; separator: string = ''",
)
reduce_join_op.not_differentiable()


@reduce_join_op.infer
def _(node: Node) -> Dims:
    dims, axes, keep = node.dims(0), node.constant(1), node.attributes["keep_dims"]
    index_dims = node.dims(1)
    if index_dims is not None and len(index_dims) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {len(index_dims)}")
    if dims is None:
        return None
    if axes is None:
        return (None,) * len(dims) if keep else None
    reduced = set()
    for axis in axes.reshape(-1).tolist():
        if not -len(dims) <= axis < len(dims):
            raise ValueError(f"Invalid reduction dimension {axis} for input with {len(dims)} dimensions.")
        reduced.add(axis % len(dims))
    if keep:
        return tuple([1 if i in reduced else size for i, size in enumerate(dims)])
    return tuple([size for i, size in enumerate(dims) if i not in reduced])


def _checked_axes(axes: Sequence[int], rank: int) -> list[int]:
    found: list[int] = []
    for axis in axes:
        if not -rank <= axis < rank:
            raise errors.OutOfRangeError(
                None, None, f"Invalid reduction dimension {axis} for input with {rank} dimension(s)"
            )
        if axis % rank in found:
            raise invalid(f"Duplicate reduction dimension {axis}")
        found.append(axis % rank)
    return found


@reduce_join_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[..., Strings]:
    separator, keep = attribute_bytes(node, "separator"), node.attributes["keep_dims"]

    def join(strings: Strings, indices: torch.Tensor) -> Strings:
        axes = _checked_axes(indices.reshape(-1).tolist(), strings.ndim)
        kept = [axis for axis in range(strings.ndim) if axis not in axes]
        rows = np.transpose(strings, (*kept, *axes[::-1]))  # the axis given first varies fastest
        outer, size = strings.shape, 1
        for axis in axes:
            size *= outer[axis]
        shape = [1 if i in axes else n for i, n in enumerate(outer)] if keep else [outer[i] for i in kept]
        count = int(np.prod(shape))
        return as_array([separator.join(row) for row in rows.reshape(count, size).tolist()], shape)

    return join


# ---- by segments

unsorted_segment_join_op = op(
    "UnsortedSegmentJoin",
    "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments -> output: string",
    "separator: string = '' ; Tindices: type in [int32, int64] ; "
    "Tnumsegments: type in [int32, int64] = int32",
)
unsorted_segment_join_op.no_gradient()


@unsorted_segment_join_op.infer
def _(node: Node) -> Dims:
    dims, ids, count = node.dims(0), node.dims(1), node.constant(2)
    if ids is None:
        return None
    if dims is None:
        return None
    merge(dims[: len(ids)], ids)
    size = None
    if count is not None:
        if count.ndim == 0 and int(count) < 0:
            raise ValueError(f"Dimension size, given by scalar input 2 must be non-negative but is {count}")
        size = int(count) if count.ndim == 0 else None
    return (size, *dims[len(ids) :])


def _check_segments(strings: Strings, ids: torch.Tensor, count: torch.Tensor) -> int:
    if count.dim():
        raise invalid("Number of segments must be a scalar")
    number = int(count)
    if number < 0:
        raise invalid(f"Number of segments must be non-negative but got {number}")
    if not ids.dim():
        raise invalid("Segment_id cannot have rank 0")
    if ids.dim() > strings.ndim:
        message = f"Segment_id rank {ids.dim()} is larger than the input's, {strings.ndim}"
        raise errors.OutOfRangeError(None, None, message)
    for i, (size, own) in enumerate(zip(ids.shape, strings.shape)):
        if size != own:
            raise invalid(f"Segment dimension is {size} while input dimension is {own} in rank {i}")
    if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= number):
        raise invalid("segment_ids are not allowed to exceed num_segments or to have negative values.")
    return number


@unsorted_segment_join_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[..., Strings]:
    separator = attribute_bytes(node, "separator")

    def join(strings: Strings, ids: torch.Tensor, count: torch.Tensor) -> Strings:
        number = _check_segments(strings, ids, count)
        inner = strings.shape[ids.dim() :]
        width = int(np.prod(inner))
        # Segment by segment and column by column: the strings that are joined, one after the other.
        order = np.argsort(ids.reshape(-1).numpy(), kind="stable")
        columns = strings.reshape(ids.numel(), width)[order].T.tolist()
        ends = np.cumsum(np.bincount(ids.reshape(-1).numpy(), minlength=number)).tolist()
        begins = [0, *ends[:-1]]
        joined = [[separator.join(column[b:e]) for b, e in zip(begins, ends)] for column in columns]
        return as_array([each for row in zip(*joined) for each in row], (number, *inner))

    return join


# ---- public functions


@dispatched("of_list")
def string_join(inputs: Any, separator: str | bytes = "", name: str | None = None) -> Tensor:
    """The strings of the tensors in the list `inputs`, joined element by element with `separator` between.

    The tensors have one shape, which is the result's, or are scalars. A step raises InvalidArgumentError for
    shapes that differ.
    """
    return string_join_op(inputs, separator=separator, name=name)


def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str | bytes = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The strings along `axis`, joined with `separator` between.

    `axis`: an integer or a list of them, which says the order (the first of several varies fastest); None
    joins all, row by row. `keep_dims` keeps them as dimensions of size 1. A step raises
    InvalidArgumentError for an axis given twice, OutOfRangeError for one that does not exist.
    """
    keep_dims = bool(keep_dims if keepdims is None else keepdims)
    axis = reduction_indices if axis is None else axis
    with get_default_graph().name_scope("ReduceJoin"):
        strings = operand(inputs, dtypes.string, "Const")
        if axis is None:
            last = strings.shape.ndims
            axis = (
                numbers_to(rank(strings) - 1, -1, -1)
                if last is None
                else constant(list(range(last))[::-1], "int32")
            )
        return reduce_join_op(strings, axis, keep_dims=keep_dims, separator=separator, name=name)


def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str | bytes = "", name: str | None = None
) -> Tensor:
    """The strings of each segment, joined in their order with `separator` between: [num_segments, ...].

    `segment_ids`, whose shape is how that of `inputs` begins, says which segment a row belongs to; they need
    not be sorted. A segment without rows is ''. A step raises InvalidArgumentError for ids that are negative
    or not below `num_segments`.
    """
    return unsorted_segment_join_op(inputs, segment_ids, num_segments, separator=separator, name=name)
