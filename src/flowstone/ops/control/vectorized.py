"""`tf.vectorized_map`: a function of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import convert_to_tensor
from flowstone.ops.control.functional import map_fn

__all__ = ["vectorized_map"]


def vectorized_map(
    fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """The results of `fn` for each row of `elems`, stacked; each row may be computed by itself.

    `elems`: a structure of tensors [n, …]; those of one row are taken with every row of the others. The types
    of the results may differ from those of `elems`. `fn` is called for its results' types first. The
    other arguments are for functions that TensorFlow cannot vectorise; here the rows go through a loop.

    ValueError for scalars, or for no elements.
    """
    with get_default_graph().name_scope("vectorized_map"):
        rows = nest.map_structure(convert_to_tensor, elems)
        flat = nest.flatten(rows)
        if not flat or any(each.shape.ndims == 0 for each in flat):
            raise ValueError("vectorized_map needs tensors of rank 1 or more")
        sizes = [None if each.dims is None else each.dims[0] for each in flat]
        if 1 in sizes and set(sizes) != {1}:
            longest = flat[next(i for i, size in enumerate(sizes) if size != 1)]
            count = F.Shape(longest)[:1]
            flat = [_spread(each, count) if size == 1 else each for each, size in zip(flat, sizes)]
            rows = nest.pack_sequence_as(rows, flat)
        types, differentiates = _tried(fn, rows)
        if not differentiates:
            return map_fn(fn, rows, types)
        return map_fn(lambda i: fn(_row(rows, i)), F.Range(0, F.Shape(nest.flatten(rows)[0])[0], 1), types)


def _spread(row: Any, count: Any) -> Any:
    return F.BroadcastTo(row, F.ConcatV2([count, F.Shape(row)[1:]], 0))


def _row(rows: Any, i: Any) -> Any:
    return nest.map_structure(lambda each: F.GatherV2(each, i, 0), rows)


def _tried(fn: Callable[[Any], Any], rows: Any) -> tuple[Any, bool]:
    """The types of the results, from a call for a row that no step computes; and whether `fn` itself takes
    gradients with respect to what its row comes from. Those through an array's elements would add up all rows
    so far."""
    with get_default_graph().name_scope("types"):
        row, differentiates = _row(rows, 0), False
        try:
            results = fn(nest.map_structure(F.PreventGradient, row))
        except LookupError:
            results, differentiates = fn(row), True
        types = nest.map_structure(lambda each: convert_to_tensor(each).dtype.base_dtype, results)
        return types, differentiates
