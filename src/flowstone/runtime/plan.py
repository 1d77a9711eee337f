"""`Plan`: how a session computes one set of fetches from one set of feeds; immutable and cached.

`make_plan` is the pipeline: prune, rewrite, place, partition, lower, compile. Nothing of it happens in a
step. A plan for one device without asynchronous kernels is one segment, one function call.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from flowstone.framework import collector, errors, flags, machine
from flowstone.framework.kernel import CPU, GPU, Environment
from flowstone.framework.shape import Dims
from flowstone.framework.subgraph import PlanNode, Subgraph
from flowstone.lowering.passes import passes_for
from flowstone.partition.subgraphs import Part, partition, show
from flowstone.placement.cost_model import CostModel
from flowstone.placement.node_placement import place, stateful_placement
from flowstone.rewriting.analyses.branches import SWITCHES
from flowstone.rewriting.analyses.frames import LOOP_TYPES
from flowstone.rewriting.functions.function_inlining import inline_functions
from flowstone.rewriting.loops.switch_predicates import hold_predicates
from flowstone.rewriting.passes import SAVING, SIMPLIFYING, run_passes
from flowstone.rewriting.simplification.equal_sizes import use_equal_sizes, without_equal_sizes
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.rewriting.simplification.shape_refinement import refine_shapes
from flowstone.runtime.awaiting import wait_last
from flowstone.runtime.cuda_graph import CapturedStep, recorder_of
from flowstone.runtime.device import Device, check_requested, default_device, needs_placement
from flowstone.runtime.generated_code import Segment
from flowstone.runtime.interpreter import disagreement, interpret
from flowstone.runtime.partitioned_program import PartitionedProgram
from flowstone.runtime.precision import with_precision
from flowstone.runtime.segments import compile_segment
from flowstone.runtime.threads import wants_one_thread
from flowstone.runtime.traced_units import unit_program
from flowstone.runtime.unit_program import UnitProgram
from flowstone.runtime.units import needs_units

_NODE_BYTES = 4096  # in memory, with the line of code and the words of the log
Program = Segment | UnitProgram | PartitionedProgram


class Plan(NamedTuple):
    """The rewritten subgraph, compiled as one segment, a program of several units, or one of several devices;
    whether the step shall use one intra-op thread; each node's device by its name; torch's device that fed
    values are brought to; and the step as a recording of its device work, where there is to be one."""

    subgraph: Subgraph
    segment: Program
    one_thread: bool
    placement: dict[str, str]
    feed_device: torch.device
    captured: CapturedStep | None = None

    @property
    def parts(self) -> dict[str, Subgraph]:
        """What each device runs, by the device's name."""
        if isinstance(self.segment, PartitionedProgram):
            return {part.device.name: part.subgraph for part in self.segment.parts}
        return {next(iter(self.placement.values()), ""): self.subgraph}

    def explain(self) -> str:
        """The machine's profile, the rewrites with their reasons, the final graph and the generated code."""
        log = "\n".join(f"{name}: {node}: {reason}" for name, node, reason in self.subgraph.log)
        chosen = f"kernels by the profile {machine.current().profile.name}"
        text = f"{chosen}\n{log}\n\n{self.graph_text}\n\n{self.segment.source}"
        return text if self.captured is None else f"{text}\n{self.captured.describe()}\n"

    def held_bytes(self) -> int:
        """About what the plan itself holds: its nodes with their code, and the constants that it made. What
        kernels keep with the session (packed weights, random generators) is shared between plans.
        """
        constants = [node for node in self.subgraph.nodes if node.type == "Const"]
        made = [
            value.nbytes
            for node in constants
            if (value := node.attributes["value"]) is not node.origin.attributes.get("value")
        ]
        return _NODE_BYTES * len(self.subgraph.nodes) + int(sum(made))

    @property
    def graph_text(self) -> str:
        """The final graph, a line a node; of several devices the part of each."""
        return _graph_text(self.subgraph, self.segment)


def _graph_text(subgraph: Subgraph, program: Program) -> str:
    return show(program.parts) if isinstance(program, PartitionedProgram) else str(subgraph)


@collector.paused()
def make_plan(
    fetches: Sequence[Any],
    targets: Sequence[Any],
    feeds: Sequence[Any],
    environments: dict[str, Environment],
    devices: list[Device],
    *,
    assigned: dict[str, str] | None = None,
    feed_dims: Sequence[Dims] | None = None,
    soft_placement: bool = False,
    watched: bool = False,
    traced: bool = False,
    compresses: bool = False,
    captures: bool = flags.CUDA_GRAPHS,
    costs: CostModel | None = None,
    disabled_passes: frozenset[str] = flags.DISABLED_PASSES,
) -> Plan:
    """Plans the computation of `fetches` and `targets` (of one graph) from `feeds`.

    `environments`: by device name. `assigned`: the devices of nodes whose state earlier plans placed; this
    plan's are added. `feed_dims`: shapes of the fed values, in part or all known; the plan then holds for
    these alone (ValueError if they contradict the graph's). Sizes in it that are the same negative number are
    equal, and at least 2. `watched`: the step checks its deadline before
    every node. `traced`: the steps are `TracedStep`s. `compresses`: 32-bit floats go from device to device in
    16 bits. `captures`: a step on one GPU records its kernels and repeats them (`cuda_graph.py`). `costs`:
    what placement goes by, beside its own estimates.
    Raises InvalidArgumentError for cycles, devices that do not exist and ops without a kernel.
    """
    subgraph, chosen = placed_subgraph(
        fetches,
        targets,
        feeds,
        devices,
        assigned=assigned,
        feed_dims=feed_dims,
        soft_placement=soft_placement,
        costs=costs,
        disabled_passes=disabled_passes,
    )
    default = default_device(devices)
    if assigned is not None and chosen:
        assigned.update(stateful_placement(chosen))
    used = set(chosen.values()) or {default}
    environment = environments[next(iter(used)).name]
    placement = {node.name: chosen.get(node, default).name for node in subgraph.nodes}
    in_parts = len(used) > 1 or not {CPU, GPU}.issuperset(device.device_type for device in used)
    if chosen and not in_parts:
        run_passes(subgraph, passes_for(environment.device_type, in_part=False), disabled_passes)
    one_thread = environment.device.type == "cpu" and wants_one_thread(subgraph)
    segment: Program
    captured = None
    if in_parts:
        dynamic = any(node.type in SWITCHES for node in subgraph.nodes)
        parts = partition(subgraph, chosen, devices[0], compresses)
        _lower(parts, subgraph, disabled_passes)
        segment = PartitionedProgram(parts, environments, len(subgraph.fetches), watched, dynamic, traced)
    else:
        segment = _compiled(subgraph, environment, watched, next(iter(used)).name if traced else "")
    if any(device.torch.type == "cuda" for device in used):
        segment.function = with_precision(segment.function)
    _print(subgraph, segment)
    if captures and isinstance(segment, Segment) and not watched and not traced and flags.CHECK < 2:
        captured = _capture(subgraph, segment, environment)
    if flags.CHECK >= 2 and len(used) == 1 and _is_comparable(subgraph):
        _compare_every_step(subgraph, segment, environment)
    feed_device = devices[0].torch if in_parts else environment.device
    return Plan(subgraph, segment, one_thread, placement, feed_device, captured)


def placed_subgraph(
    fetches: Sequence[Any],
    targets: Sequence[Any],
    feeds: Sequence[Any],
    devices: list[Device],
    *,
    assigned: dict[str, str] | None = None,
    feed_dims: Sequence[Dims] | None = None,
    soft_placement: bool = False,
    costs: CostModel | None = None,
    disabled_passes: frozenset[str] = flags.DISABLED_PASSES,
    in_pieces: bool = False,
) -> tuple[Subgraph, dict[PlanNode, Device]]:
    """The rewritten subgraph, and the devices of its nodes: none where there is nothing to decide.

    Where there is, lowering is left for later: nodes become one only on one device. `in_pieces`: feeds and
    fetches come one by one. For other arguments and errors see `make_plan`.
    """
    subgraph = prune(fetches, targets, feeds, feed_dims and without_equal_sizes(feed_dims))
    inline_functions(subgraph)
    hold_predicates(subgraph)
    if feed_dims:
        refine_shapes(subgraph)
        use_equal_sizes(subgraph, feed_dims)
    needs_places = needs_placement(subgraph.nodes, devices)
    subgraph.in_pieces = in_pieces or needs_places
    if needs_places:
        run_passes(subgraph, (*SIMPLIFYING, *SAVING), disabled_passes)
        return subgraph, place(subgraph, devices, soft_placement, costs, assigned=assigned)
    check_requested(subgraph.nodes, devices, soft_placement)
    lowering = passes_for(default_device(devices).device_type, in_part=False)
    run_passes(subgraph, (*SIMPLIFYING, *lowering, *SAVING), disabled_passes)
    return subgraph, {}


def _compiled(
    subgraph: Subgraph, environment: Environment, watched: bool, traced_device: str
) -> Segment | UnitProgram:
    """The program of one device: one function, unless its asynchronous kernels need units."""
    if needs_units(subgraph) and not wait_last(subgraph):
        return unit_program(subgraph, environment, watched, False, traced_device)
    return compile_segment(subgraph, environment, watched, False, traced_device, feeds_are_there=True)


def _print(subgraph: Subgraph, program: Program) -> None:
    """What FLOWSTONE_DEBUG asks for."""
    if flags.DEBUG >= 1:
        print(f"plan: {len(subgraph.nodes)} nodes for {len(subgraph.fetches)} fetches", file=sys.stderr)
    if flags.DEBUG >= 3:
        print(_graph_text(subgraph, program), file=sys.stderr)
    if flags.DEBUG >= 4:
        print(program.source, file=sys.stderr)


def _lower(parts: Sequence[Part], subgraph: Subgraph, disabled_passes: frozenset[str]) -> None:
    """Chooses kernels on the devices that they exist for."""
    for part in parts:
        if part.device.device_type in (CPU, GPU):
            run_passes(part.subgraph, passes_for(part.device.device_type, in_part=True), disabled_passes)
            subgraph.log += part.subgraph.log


def _capture(subgraph: Subgraph, segment: Segment, environment: Environment) -> CapturedStep | None:
    """Has the segment's function record itself, if its device can."""
    new_recorder = recorder_of(environment.device)
    if new_recorder is None:
        return None
    captured = CapturedStep(subgraph, segment, environment, new_recorder)
    if not captured.reason:
        segment.function = captured.run
    return captured


def _is_comparable(subgraph: Subgraph) -> bool:
    """Whether the interpreter gives the same: no effects, and no loops, which it does not run."""
    return all(node.declaration.is_pure and node.type not in LOOP_TYPES for node in subgraph.nodes)


def _compare_every_step(subgraph: Subgraph, segment: Program, environment: Environment) -> None:
    """FLOWSTONE_CHECK=2: each step is also run node by node, and must agree."""
    function = segment.function

    def checked(step: Any, *feeds: Any) -> Any:
        computed = function(step, *feeds)
        difference = disagreement(computed, interpret(subgraph, environment, feeds))
        if difference:
            raise errors.InternalError(None, None, f"FLOWSTONE_CHECK=2: {difference}\n{segment.source}")
        return computed

    segment.function = checked
