"""Intra-op threads: runs small steps on the caller's thread alone, others on as many threads as the session
sets.

ATen, MKL and oneDNN start an OpenMP team for products and convolutions that take a few microseconds; waking
it costs more than it gains, on a busy machine up to a hundredfold. `wants_one_thread` decides at plan time,
from static shapes. Where another thread of the program has the team, other steps run on one thread, too,
unless their kernels are long (`Plan.intra_op_threads`). `limit` is OpenMP's own call for the number of
threads of *this* thread's parallel regions: 0.15 µs, and other threads and the user's other torch code never
see it (`torch.set_num_threads` also changes what later threads start with). Where the team's threads run is
`team_cores.py`'s.

``ConfigProto.intra_op_parallelism_threads`` bounds the steps of a session in the same way, 0 being torch's
own number: it is the number of threads of every step except small ones. ``inter_op_parallelism_threads``
limits nothing: a step has one thread for each device, with the client's own for the first. Each is needed,
since one device waits for values that another computes. A graph on one device runs on the client's thread.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.work import recurrent_layer, recurrent_layer_gradient
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.tensors.node import Output
from flowstone.framework.types.shape import num_elements
from flowstone.placement.operation_cost import touched_rows, work
from flowstone.rewriting.analyses.frames import Frames

_ITERATIONS = 16  # assumed of a loop
_GROWTH_STEP, _MOST_GROWTH = 1.5, 100.0
_LAYERS = (recurrent_layer, recurrent_layer_gradient)  # costs of ops that are sequences of products


def wants_one_thread(subgraph: Subgraph) -> bool:
    """Whether kernels of the step may start a team, but too few are large enough to gain from it."""
    return _gains_nothing(subgraph) and (
        any([node.declaration.starts_team for node in subgraph.nodes]) or team_use(subgraph).may_start
    )


def _gains_nothing(subgraph: Subgraph, growth: float = 1.0) -> bool:
    """Whether too few kernels are large enough to gain from a team, if each does `growth` times as much."""
    profile, total = subgraph.machine.profile, 0.0
    everything = by_element = 0.0
    frames, rows = subgraph.analysis(Frames), _fed_rows(subgraph)
    for node in subgraph.nodes:
        work = _work(node, profile.element_cost, rows)
        if work is None:
            return False
        work *= growth
        if work >= profile.team_alone:
            return False
        everything += work
        if not node.declaration.multiplies:
            by_element = max(by_element, work)
        if work >= profile.team_among_others:
            total += work if frames.home(node) is None else work * _ITERATIONS
    if by_element >= profile.team_by_element and 2 * by_element >= everything:
        return False  # one such operation is most of the step
    return total < profile.team_together


def growth_on_one_thread(subgraph: Subgraph) -> float:
    """About how many times as much its kernels may do until the step gains from a team; 0 if it does as it
    is."""
    found, growth = 0.0, 1.0
    while growth < _MOST_GROWTH and _gains_nothing(subgraph, growth):
        found, growth = growth, growth * _GROWTH_STEP
    return found


class TeamUse(NamedTuple):
    """Whether a kernel of a step `may_start` a team, and whether those that may are so large (`is_long`), or
    of unknown size, that they gain even if its threads sleep between them."""

    may_start: bool = False
    is_long: bool = False


def team_use(subgraph: Subgraph) -> TeamUse:
    """How the step uses a team if it runs with one."""
    profile, rows = subgraph.machine.profile, _fed_rows(subgraph)
    works = [_work(node, profile.element_cost, rows) for node in subgraph.nodes]
    if None in works:
        return TeamUse(True, True)
    large = [work for work in works if work is not None and work >= profile.team_starts]
    return TeamUse(bool(large), bool(large) and sum(large) >= profile.team_asleep * len(large))


def _fed_rows(subgraph: Subgraph) -> int | None:
    """The rows of the longest fed value, assumed for sizes that depend on values (such as the number of
    distinct ids). None if it is not known."""
    fed = [x.dims for x in subgraph.feeds]
    if not fed or any([dims is None or None in dims for dims in fed]):
        return None
    return max([dims[0] if dims else 1 for dims in fed])  # type: ignore[type-var]


def _elements(x: Output, rows: int | None) -> int | None:
    """How many elements an output has, `rows` along each axis of unknown size."""
    dims = x.dims
    if dims is not None and rows is not None and None in dims:
        dims = tuple([rows if n is None else n for n in dims])
    return num_elements(dims)


def _work(node: PlanNode, element_cost: float, rows: int | None) -> float | None:
    """About how many multiplications: of products the root of the product of the three largest operands'
    sizes, which is exact for matrices; of ops that do little for each element, by elements; of others by
    their costs, but no less than their elements, of which one of 64 bits is two. If only some rows of a table
    are read or changed, these rows count. None if a shape is unknown."""
    touched, declaration = touched_rows(node), node.declaration
    if touched is not None:
        count = _elements(touched, rows)
        return None if count is None else element_cost * count
    if not node.inputs or not node.outputs or declaration.is_free:
        return 0.0
    if declaration.cost_function in _LAYERS:
        return work(node).operations / 2
    sizes: list[int] = []
    for x in (*node.inputs, *node.outputs):
        size = _elements(x, rows)
        if size is None:
            return None
        sizes.append(size)
    if declaration.multiplies:
        sizes.sort(reverse=True)
        three = (sizes + sizes[:1] * 2)[:3]
        return math.sqrt(three[0] * three[1] * three[2])
    values = (*node.inputs, *node.outputs)
    is_known = all([num_elements(x.dims) is not None for x in values])
    operations = work(node).operations if is_known or declaration.starts_team else 0.0
    largest = max(sizes)
    words = max([x.dtype.size for x, size in zip(values, sizes) if size == largest]) // 4
    each = element_cost * max(words, 1)
    if declaration.by_element:
        return each * (operations if is_known else largest)
    return max(operations, each * largest)


def run_with(count: int, function: Callable[[], Any]) -> Any:
    """Calls `function` with `count` intra-op threads (0: as many as there are), set for this thread only."""
    set_threads, before = limit(), torch.get_num_threads()
    if not count or set_threads is None or before == count:
        return function()
    set_threads(count)
    try:
        return function()
    finally:
        set_threads(before)


@functools.cache
def limit() -> Callable[[int], Any] | None:
    """OpenMP's ``omp_set_num_threads`` of the runtime that torch uses; None if it cannot be found."""
    names = [str(path) for path in (Path(torch.__file__).parent / "lib").glob("libgomp*.so*")]
    for name in [*names, "libgomp.so.1"]:
        try:
            library = ctypes.CDLL(name, mode=getattr(os, "RTLD_NOLOAD", 0) | ctypes.DEFAULT_MODE)
        except OSError:
            continue
        before = torch.get_num_threads()
        library.omp_set_num_threads(1)
        found = torch.get_num_threads() == 1
        library.omp_set_num_threads(before)
        if found:
            return library.omp_set_num_threads
    return None
