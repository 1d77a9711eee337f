"""Functions of values one by one, of ragged tensors: of the innermost values, where both have the same rows.

A dense or ragged argument is broadcast first: along ragged dimensions where it has size 1 there, else its
rows must be as long as the other's, which a step checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.gathering import gather as gather_dense
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import reshape, shape
from flowstone.ops.ragged.conversions import from_tensor
from flowstone.ops.ragged.functions import gather, same_rows
from flowstone.ops.ragged.ragged_tensor import RaggedTensor, as_ragged_or_tensor

__all__ = ["binary", "of_list", "unary"]


def unary(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The function of the first argument's innermost values."""
    if args:
        ragged, args = args[0], args[1:]
        result = function(ragged.flat_values, *args, **kwargs)
    else:
        name = next(key for key, value in kwargs.items() if isinstance(value, RaggedTensor))
        ragged = kwargs[name]
        result = function(**{**kwargs, name: ragged.flat_values})
    return ragged.with_flat_values(result)


def of_list(function: Callable[..., Any], inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """The function of a list, all of whose items are ragged with the same rows. ValueError for others."""
    items = [as_ragged_or_tensor(each) for each in inputs]
    if not all(isinstance(each, RaggedTensor) for each in items):
        raise ValueError("Ragged and dense tensors do not mix in this list.")
    with get_default_graph().control_dependencies(same_rows(items)):
        result = function([each.flat_values for each in items], *args, **kwargs)
    return items[0].with_flat_values(result)


def binary(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The function of two arguments, of which one is ragged, or both."""
    values = list(args[:2])
    named = [key for key in kwargs if key in "xyab" or isinstance(kwargs[key], RaggedTensor)]
    values += [kwargs.pop(key) for key in named[: 2 - len(values)]]
    x, y = values
    like = x if isinstance(x, RaggedTensor) else y
    x = as_ragged_or_tensor(x, preferred_dtype=like.dtype)
    y = as_ragged_or_tensor(y, preferred_dtype=like.dtype)
    x, y = _broadcast(x, y)
    both = [each for each in (x, y) if isinstance(each, RaggedTensor)]
    with get_default_graph().control_dependencies(same_rows(both)):
        flat = [each.flat_values if isinstance(each, RaggedTensor) else each for each in (x, y)]
        result = function(*flat, *args[2:], **kwargs)
    return both[0].with_flat_values(result)


def _broadcast(x: Any, y: Any) -> tuple[Any, Any]:
    if isinstance(x, RaggedTensor) and isinstance(y, RaggedTensor):
        if x.row_splits.dtype != y.row_splits.dtype:
            x, y = x.with_row_splits_dtype(dtypes.int64), y.with_row_splits_dtype(dtypes.int64)
        return (_as_wide(x, y), _as_wide(y, x)) if _differ(x, y) else (x, y)
    if isinstance(x, RaggedTensor):
        return x, _dense_as_wide(y, x)
    return _dense_as_wide(x, y), y


def _differ(x: RaggedTensor, y: RaggedTensor) -> bool:
    return any(a is not b for a, b in zip(x.nested_row_splits, y.nested_row_splits)) or (
        x.ragged_rank != y.ragged_rank
    )


def _dense_as_wide(dense: Tensor, like: RaggedTensor) -> Any:
    """A dense argument as what the innermost values are combined with, or with rows of its own."""
    if dense.shape.ndims == 0:
        return dense
    rank, own, inner = like.shape.ndims, dense.shape.ndims, like.flat_values.shape.ndims
    if rank is None or own is None or inner is None:
        raise ValueError("Unable to broadcast: unknown rank")
    if own < rank - like.ragged_rank + 1 and own < inner:
        return dense  # of the innermost, dense dimensions
    if own > rank:
        raise ValueError(f"A dense tensor of rank {own} does not fit a ragged one of rank {rank}")
    for _ in range(rank - own):
        dense = F.ExpandDims(dense, 0)
    return _dense_rows(dense, like)


def _dense_rows(dense: Tensor, like: Any) -> Any:
    """A dense tensor of the rank of `like` with the rows of that, or with rows of its own."""
    if not isinstance(like, RaggedTensor):
        return dense
    known = dense.shape.as_list()
    rows = like.nrows(out_type=dtypes.int64)
    if known[0] == 1 and like.shape.as_list()[0] != 1:
        dense = gather_dense(dense, F.Fill(F.ExpandDims(rows, 0), F.Cast(0, DstT=dtypes.int64)))
    if known[1] == 1:
        sizes = shape(dense)
        inner = reshape(dense, concat([sizes[:1], sizes[2:]], axis=0))
        inner.set_shape([None, *known[2:]])
        values = gather_dense(inner, like.value_rowids())
        return like.with_values(_dense_rows(values, like.values))
    kind = like.row_splits.dtype
    return from_tensor(dense, ragged_rank=min(like.ragged_rank, len(known) - 1), row_splits_dtype=kind)


def _as_wide(x: RaggedTensor, other: RaggedTensor) -> Any:
    """`x` with the rows of `other` where its own have one value each, as far as is known."""
    if not _is_single(x) or _is_single(other):
        if (
            isinstance(x.values, RaggedTensor)
            and isinstance(other.values, RaggedTensor)
            and (x.row_splits is other.row_splits)
        ):
            return x.with_values(_as_wide(x.values, other.values))
        return x
    values = gather(x.values, other.value_rowids())
    inner = other.values
    if isinstance(values, RaggedTensor) and isinstance(inner, RaggedTensor):
        values = _as_wide(values, inner)
    return other.with_values(values)


def _is_single(x: RaggedTensor) -> bool:
    """Whether it is known that each row has one value."""
    rows, count = x.shape.as_list()[0], x.values.shape.as_list()[0]
    splits = static_value(x.row_splits)
    if isinstance(splits, np.ndarray):
        return bool((splits[1:] - splits[:-1] == 1).all())
    return rows is not None and rows == count and rows == 1
