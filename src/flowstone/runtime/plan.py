"""`Plan`: how a session computes one set of fetches from one set of feeds; immutable and cached.

`make_plan` is the pipeline: prune, rewrite, check devices, compile. Nothing of it happens in a step.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from flowstone.framework import errors, flags
from flowstone.framework.kernel import Environment
from flowstone.framework.subgraph import Subgraph
from flowstone.rewriting.partial_execution import prune
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.shape_refinement import refine_shapes
from flowstone.runtime.device import Device, check_requested
from flowstone.runtime.interpreter import disagreement, interpret
from flowstone.runtime.segments import Segment, compile_segment
from flowstone.runtime.threads import wants_one_thread
from flowstone.runtime.unit_program import UnitProgram
from flowstone.runtime.units import needs_units


class Plan(NamedTuple):
    """The rewritten subgraph, compiled as one segment or a program of several units, and whether the step
    shall use one intra-op thread."""

    subgraph: Subgraph
    segment: Segment | UnitProgram
    one_thread: bool

    def explain(self) -> str:
        """The rewrites with their reasons, the final graph and the generated code, as text."""
        log = "\n".join(f"{name}: {node}: {reason}" for name, node, reason in self.subgraph.log)
        return f"{log}\n\n{self.subgraph}\n\n{self.segment.source}"


def make_plan(
    fetches: Sequence[Any],
    targets: Sequence[Any],
    feeds: Sequence[Any],
    environment: Environment,
    devices: list[Device],
    *,
    feed_dims: Sequence[tuple[int, ...]] | None = None,
    soft_placement: bool = False,
    watched: bool = False,
    disabled_passes: frozenset[str] = flags.DISABLED_PASSES,
) -> Plan:
    """Plans the computation of `fetches` and `targets` (of one graph) from `feeds`.

    `feed_dims`: shapes of the fed values; the plan then holds for these shapes alone (ValueError if they
    contradict the graph's). `watched`: the step checks its deadline before every node. Raises
    InvalidArgumentError for cycles, devices that do not exist and ops without a kernel.
    """
    subgraph = prune(fetches, targets, feeds, feed_dims)
    if feed_dims:
        refine_shapes(subgraph)
    check_requested(subgraph.nodes, devices, soft_placement)
    run_passes(subgraph, disabled_passes)
    one_thread = environment.device.type == "cpu" and wants_one_thread(subgraph)
    segment: Segment | UnitProgram
    if needs_units(subgraph):
        segment = UnitProgram(subgraph, environment, watched)
    else:
        segment = compile_segment(subgraph, environment, watched)
    if flags.DEBUG >= 1:
        print(f"plan: {len(subgraph.nodes)} nodes for {len(fetches)} fetches", file=sys.stderr)
    if flags.DEBUG >= 3:
        print(subgraph, file=sys.stderr)
    if flags.DEBUG >= 4:
        print(segment.source, file=sys.stderr)
    if flags.CHECK >= 2 and all(node.declaration.is_pure for node in subgraph.nodes):
        _compare_every_step(subgraph, segment, environment)
    return Plan(subgraph, segment, one_thread)


def _compare_every_step(subgraph: Subgraph, segment: Segment | UnitProgram, environment: Environment) -> None:
    """FLOWSTONE_CHECK=2: each step of a plan without effects is also run node by node, and must agree."""
    function = segment.function

    def checked(step: Any, *feeds: Any) -> Any:
        computed = function(step, *feeds)
        difference = disagreement(computed, interpret(subgraph, environment, feeds))
        if difference:
            raise errors.InternalError(None, None, f"FLOWSTONE_CHECK=2: {difference}\n{segment.source}")
        return computed

    segment.function = checked
