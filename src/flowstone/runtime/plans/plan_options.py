"""`PlanOptions`: what a plan depends on besides its fetches and feeds.

A session fills it once; what differs from plan to plan is replaced (``options._replace(watched=True)``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from flowstone.framework import flags
from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.types.shape import Dims
from flowstone.placement.cost_model import CostModel
from flowstone.runtime.plans.debug_watches import Watch
from flowstone.runtime.process.device import Device


class PlanOptions(NamedTuple):
    """How to plan.

    Of a session: `devices`, which steps may use, and their `environments` by name; `assigned`, the devices of
    nodes whose state earlier plans placed; `soft_placement`: another device is used if a requested one does
    not exist; `costs`: measured costs, which placement prefers to its own estimates; `compresses`: 32-bit
    floats are sent from device to device in 16 bits; `captures`: a step on one GPU records its kernels and
    repeats them (`cuda_graph.py`); `disabled_passes`, by name.

    Of a plan: `feed_dims`, shapes of the fed values, in part or all known, if it is to hold only for these
    (sizes that are the same negative number are equal, and at least 2), and after them the values of the
    feeds at the positions `fed_sizes` (`fed_sizes.py`); `watched`: the step checks its deadline before every
    node; `traced`: the steps are `TracedStep`s; `in_pieces`: feeds and fetches come one
    by one; `watches`: the tensors that a debugger watches; `code_first`: the best machine code is begun when
    the plan is made, and awaited by its first step.
    """

    devices: Sequence[Device]
    environments: Mapping[str, Environment] = MappingProxyType({})
    assigned: Mapping[str, str] = MappingProxyType({})
    soft_placement: bool = False
    costs: CostModel | None = None
    compresses: bool = False
    captures: bool = flags.CUDA_GRAPHS
    disabled_passes: frozenset[str] = flags.DISABLED_PASSES
    feed_dims: Sequence[Dims] | None = None
    fed_sizes: tuple[int, ...] = ()
    watched: bool = False
    traced: bool = False
    in_pieces: bool = False
    code_first: bool = False
    watches: tuple[Watch, ...] = ()
