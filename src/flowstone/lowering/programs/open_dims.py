"""Shapes of which a plan for many shapes knows that some sizes are equal, as programs have them.

While `with_open_dims` lasts, static shapes have `Open` sizes (`native/programs/open_sizes.py`) in the places
that are None otherwise, where the feeds' shapes tell which sizes these are. So loops over a batch whose size
only the step knows are translated as those over a known one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flowstone.framework.graphs.subgraph import PlanOutput, Subgraph
from flowstone.framework.types.shape import Dims
from flowstone.native.programs.open_sizes import is_open, named
from flowstone.rewriting.simplification.known_sizes import known_sizes
from flowstone.rewriting.simplification.named_sizes import Size

__all__ = ["with_open_dims", "without_open"]


@contextlib.contextmanager
def with_open_dims(subgraph: Subgraph) -> Iterator[bool]:
    """Whether there are such sizes, which static shapes then have meanwhile."""
    feed_dims, values = subgraph.named_sizes or ((), {})
    if not values and not any([n is not None and n < 0 for dims in feed_dims for n in dims or ()]):
        yield False
        return
    known = known_sizes(subgraph, feed_dims, values)
    before: dict[PlanOutput, Dims] = {}
    for node in subgraph.nodes:
        known.add(node)
        for x in node.outputs:
            dims = known.dims.get(x)
            if dims is not None and (x.dims is None or None in x.dims):
                before[x] = x.dims
                x.dims = tuple([_opened(n) for n in dims])
    try:
        yield bool(before)
    finally:
        for x, own in before.items():
            x.dims = own


def _opened(size: Any) -> Any:
    if not isinstance(size, Size):
        return size
    total: Any = size.factor
    for name in size.names:
        total = total * (named(-name) if isinstance(name, int) else _opened(Size(*name[:2])) + name[2])
    return total


def without_open(dims: Dims) -> Dims:
    """The shape with None for open sizes."""
    return dims and tuple([None if is_open(n) else n for n in dims])
