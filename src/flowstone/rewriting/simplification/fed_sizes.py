"""Fed integers that are sizes: a batch size, the `dense_shape` of a sparse matrix.

A step's shapes follow from the shapes of its feeds and from such values, so plans are chosen by both: after
the shapes of the feeds, `feed_dims` has the values of those that `acting_as_sizes` finds, each as one more
shape. `use_fed_sizes` has a plan know them. A value that no shape of the step follows from, such as the
number of the step, is none: `Size`s in its place (`known_sizes.py`) would reach no shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowstone.framework.graphs.graph import Operation
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.rewriting.simplification.known_sizes import KnownSizes
from flowstone.rewriting.simplification.named_sizes import Size
from flowstone.rewriting.simplification.partial_execution import prune

_MOST_SIZES = 8  # in one value
_LENGTHS = (2, 1, 3)  # which a vector of unknown length is tried with


def acting_as_sizes(
    fetches: Sequence[Tensor], targets: Sequence[Operation], feeds: Sequence[Tensor]
) -> tuple[int, ...]:
    """The positions of the feeds from whose values shapes follow in a step that computes these."""
    candidates = {i: lengths for i, x in enumerate(feeds) if (lengths := _possible_lengths(x))}
    if not candidates:
        return ()
    subgraph = prune(fetches, targets, feeds)
    found: set[int] = set()
    for attempt in range(len(_LENGTHS)):
        known, owners = KnownSizes({}, None, {}), dict[int, int]()
        for i, lengths in candidates.items():
            if i not in found and attempt < len(lengths):
                count = lengths[attempt]
                sizes = [Size((-1 - len(owners) - k,)) for k in range(abs(count))]
                owners.update({size.names[0]: i for size in sizes})
                value = np.array(sizes[0] if count < 0 else sizes, object)
                known.dims[subgraph.feeds[i]], known.values[subgraph.feeds[i]] = value.shape, value
        if owners:
            found.update(_reaching_shapes(subgraph, known, owners))
    return tuple(sorted(found))


def _possible_lengths(x: Tensor) -> tuple[int, ...]:
    """How many sizes a fed value may be, -1 for one that is no vector; () if it is none."""
    if x.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
        return ()
    if x.dims is None or x.dims == ():
        return (-1,)
    if len(x.dims) > 1:
        return ()
    (length,) = x.dims
    if length is None:
        return _LENGTHS if any([_is_argument(x, operation) for operation in x.consumers()]) else ()
    return (length,) if 0 < length <= _MOST_SIZES else ()


def _is_argument(x: Tensor, operation: Operation) -> bool:
    """Whether the operation takes it as one of the small values that it reads on the host."""
    host = operation.declaration.host
    return bool(host) and any(
        [y is x and operation.input_argument(i).name in host for i, y in enumerate(operation.inputs)]
    )


def _reaching_shapes(subgraph: Subgraph, known: KnownSizes, owners: dict[int, int]) -> set[int]:
    """Whose sizes are found in a shape of the subgraph, or are told a node as a shape."""
    found: set[int] = set()
    for node in subgraph.nodes:
        if node.is_feed or not any([x in known.dims or x in known.values for x in node.inputs]):
            continue
        known.asked = []
        known.add(node)
        sizes = [*known.asked, *[n for x in node.outputs for n in known.dims.pop(x, None) or ()]]
        found.update([owners[name] for n in sizes for name in _names(n)])
        if len(found) == len(set(owners.values())):
            break
    return found


def _names(n: Any) -> list[int]:
    """The names in a size, however deep in it."""
    if isinstance(n, int):
        return [n] if n < 0 else []
    names = getattr(n, "names", ())
    return [each for name in names for each in _names(name)]


def size_value(value: Any) -> Dims:
    """A fed value, an array or a tensor, as sizes; None if it is not some of them."""
    dims = value.shape
    if len(dims) > 1 or (dims and dims[0] > _MOST_SIZES):
        return None
    sizes = value.tolist()
    found = tuple(sizes) if dims else (sizes,)
    return found if all([type(n) is int and n >= 0 for n in found]) else None


def use_fed_sizes(subgraph: Subgraph, positions: Sequence[int], values: Sequence[Dims]) -> dict[Any, Any]:
    """Has what is known of the values of the feeds at these positions be known of the subgraph's feeds;
    returns the arrays of those that are numbers and sizes that have names (negative numbers)."""
    named = {}
    for i, value in zip(positions, values):
        x = subgraph.feeds[i]
        if value is None or x.dims is None or len(x.dims) > 1:
            continue
        if None not in value and all([n is not None and n >= 0 for n in value]):
            x._static_value = np.array(value, x.dtype.as_numpy_dtype).reshape(() if not x.dims else -1)
            continue
        if x.dims:
            x._static_value = tuple([None if n is None or n < 0 else n for n in value])
        if None not in value:
            sizes = [Size((n,)) if n is not None and n < 0 else n for n in value]
            named[x] = np.array(sizes[0] if not x.dims else sizes, object)
    return named
