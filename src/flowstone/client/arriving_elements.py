"""Steps in two: first the elements of datasets and queues that they take, then all that is made of these.

What `tf.py_func` gives is an element as well. A plan for known shapes is faster than one for any, and most
programs that read by `tf.data`, queues or functions of Python leave the size of a batch, or the length of a
sequence, open. So a step that takes such elements runs as two: one takes the elements, the other is fed them,
and has a plan for their shapes as for those of any feeds (`plans_by_shape.py`). It also is one function then,
without a wait in it.

A step stays whole where that might be seen: where an element is taken in a branch or a loop, where something
waits for the taking itself, where the step waits for anything else (a lock that it holds) or its rest puts
into queues (an element might come only then), and where both parts would do what is to be done once, or
compute the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from flowstone.client.feeds_fetches import FetchStructure, RuntimeValues, feed_arrays, feed_converter, is_open
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.rewriting.simplification.partial_execution import needed_operations

__all__ = ["Arrival", "arriving", "in_two"]


class Arrival(NamedTuple):
    """What a step begins with: the fetches that give the `tensors` that arrive, and which of the step's feeds
    that takes."""

    structure: FetchStructure
    tensors: list[Tensor]
    feeds: list[Tensor]


def arriving(structure: FetchStructure, feeds: Sequence[Tensor]) -> Arrival | None:
    """The elements that a step with these fetches and feeds takes, if it can run in two and gains by it."""
    fetched: list[Tensor | Operation] = [*structure.elements, *structure.targets]
    operations = fetched[0].graph.get_operations() if fetched else ()
    elements = [x for op in operations if _is_taking(op) for x in op.outputs]
    if not elements:
        return None
    given = set(feeds)
    rest = needed_operations(structure.elements, structure.targets, given.union(elements))
    used = {x for op in rest for x in op.inputs}.union(structure.elements) - given
    tensors = [x for x in elements if x in used]
    if not rest or not any(map(is_open, tensors)):
        return None
    if any(_is_taking(op) or op.declaration.asynchronous for op in rest):
        return None
    first = needed_operations((), list({x.op for x in tensors}), given)
    if any(op.declaration.in_control_flow for op in first):
        return None
    if any(op.declaration.asynchronous and not _is_taking(op) for op in first):
        return None
    if any(op in rest and not _may_run_twice(op) for op in first):
        return None
    needed = {x for op in first for x in op.inputs}
    return Arrival(RuntimeValues(tensors[0].graph, tensors), tensors, [x for x in feeds if x in needed])


def _is_taking(op: Operation) -> bool:
    return op.declaration.role == "element"


def _may_run_twice(op: Operation) -> bool:
    """Whether it is a constant, or finds what the session keeps under a name: a queue, an iterator, a
    variable."""
    is_handle = all(x.dtype.is_ref or x.dtype is dtypes.resource for x in op.outputs)
    return not op.inputs and (op.declaration.is_pure or is_handle)


def in_two(
    arrival: Arrival, feeds: Sequence[Tensor], first: Callable[..., Any], rest: Callable[..., Any]
) -> Callable[..., Any]:
    """A function of the feeds' values that runs the step: `first` of its own feeds gives the elements, `rest`
    of all feeds and the elements the results. Feeds are checked before an element is taken."""
    if not feeds:
        return lambda: rest(*first())
    as_arrays, host = feed_arrays(feeds), torch.device("cpu")
    checks = [feed_converter(tensor, host) for tensor in feeds]
    places = [feeds.index(x) for x in arrival.feeds]

    def run(*values: Any) -> Any:
        arrays = as_arrays(values)
        for check, x in zip(checks, arrays):
            check(x)
        return rest(*arrays, *first(*[arrays[i] for i in places]))

    return run
