"""`Plan`: how a session computes one set of fetches from one set of feeds; immutable and cached.

`make_plan` is the pipeline: prune, rewrite, place, partition, lower, compile. None of this happens during a
step. A plan for one device without asynchronous kernels is one segment, one function call: `Plan.function` is
then the segment's own function, unless every step needs something around it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeGuard

import torch

from flowstone.framework import errors, flags
from flowstone.framework.declarations.kernel import CPU, GPU, Environment
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.process import collector
from flowstone.lowering.arrays.uniform_values import held_bytes
from flowstone.lowering.passes import passes_for, pipeline
from flowstone.native.offers import offer_all
from flowstone.partition.subgraphs import Part, partition, show
from flowstone.placement.node_placement import place, stateful_placement
from flowstone.rewriting.analyses.arrivals import is_in_pieces
from flowstone.rewriting.analyses.branches import SWITCHES, is_known
from flowstone.rewriting.analyses.frames import LOOP_TYPES, NEXT_ITERATIONS
from flowstone.rewriting.functions.function_inlining import inline_functions
from flowstone.rewriting.loops.switch_predicates import hold_predicates
from flowstone.rewriting.passes import SAVING, SIMPLIFYING, run_passes
from flowstone.rewriting.simplification.common_subexpression import share_predicates
from flowstone.rewriting.simplification.dead_branches import remove_dead_branches
from flowstone.rewriting.simplification.equal_sizes import use_equal_sizes, without_equal_sizes
from flowstone.rewriting.simplification.fed_sizes import use_fed_sizes
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.rewriting.simplification.scalar_arguments import check_scalars
from flowstone.rewriting.simplification.shape_refinement import refine_shapes
from flowstone.runtime.code.awaiting import wait_last
from flowstone.runtime.code.failures import located
from flowstone.runtime.code.generated_code import Segment
from flowstone.runtime.code.native_kernels import cluster_text, native_kernels
from flowstone.runtime.code.planning_costs import PlanCosts, plan_costs
from flowstone.runtime.code.segments import compile_segment
from flowstone.runtime.execution.interpreter import disagreement, interpret
from flowstone.runtime.execution.partitioned_program import PartitionedProgram
from flowstone.runtime.execution.traced_units import unit_program
from flowstone.runtime.execution.unit_program import UnitProgram
from flowstone.runtime.execution.units import needs_units
from flowstone.runtime.plans.cuda_graph import CapturedStep, recorder_of
from flowstone.runtime.plans.debug_watches import insert_watches
from flowstone.runtime.plans.plan_options import PlanOptions
from flowstone.runtime.process.device import (
    Device,
    check_requested,
    default_device,
    is_divided,
    needs_placement,
)
from flowstone.runtime.process.precision import with_precision
from flowstone.runtime.process.process import is_tuned
from flowstone.runtime.process.team_cores import has_the_team
from flowstone.runtime.process.threads import TeamUse, growth_on_one_thread, team_use, wants_one_thread

offer_all()
_NODE_BYTES = 4096  # of memory for a node, with its line of code and its log
Program = Segment | UnitProgram | PartitionedProgram


class Plan(NamedTuple):
    """The rewritten `subgraph`, compiled as one segment, a program of several units, or one of several
    devices; the `function` that runs a step of it; whether the step shall use one intra-op thread; how it
    uses a `team` of threads on the host, if it is there alone; each node's device by its name, and those that
    are `assigned`, since the nodes have state there; torch's device that fed values are brought to; and the
    `CapturedStep`, if the step's device work is to be recorded.
    """

    subgraph: Subgraph
    program: Program
    function: Callable[..., Any]
    one_thread: bool
    team: TeamUse
    placement: dict[str, str]
    assigned: dict[str, str]
    feed_device: torch.device
    captured: CapturedStep | None = None

    @property
    def parts(self) -> dict[str, Subgraph]:
        """What each device runs, by the device's name."""
        if isinstance(self.program, PartitionedProgram):
            return {part.device.name: part.subgraph for part in self.program.parts}
        return {next(iter(self.placement.values()), ""): self.subgraph}

    @property
    def shares_team(self) -> bool:
        """Whether its steps have one thread where another thread of the program has the team."""
        return self.team.may_start and not self.team.is_long and is_tuned()

    def intra_op_threads(self, asked: int) -> int:
        """How many threads a step on this thread has, of a session that asks for so many. For both, 0 is as
        many as there are."""
        if self.one_thread:
            return 1
        return 1 if not asked and self.shares_team and not has_the_team() else asked

    def explain(self) -> str:
        """The machine's profile, the rewrites with their reasons, the final graph, the generated code, and
        what machine code computes."""
        log = "\n".join(f"{name}: {node}: {reason}" for name, node, reason in self.subgraph.log)
        chosen = f"kernels by the profile {machine.current().profile.name}"
        text = f"{chosen}\n{log}\n\n{self.graph_text}\n\n{self.program.source}"
        nodes = [node for part in self.parts.values() for node in part.nodes]
        if clusters := native_kernels(nodes):
            text = f"{text}\n{cluster_text(clusters)}\n"
        return text if self.captured is None else f"{text}\n{self.captured.describe()}\n"

    def held_bytes(self) -> int:
        """An estimate of the memory that the plan itself holds: its nodes with their code, and the constants
        that it made. Objects that kernels keep with the session (packed weights, random generators) are
        shared between plans and not counted.
        """
        constants = [node for node in self.subgraph.nodes if node.is_constant]
        made = [
            held_bytes(value)
            for node in constants
            if (value := node.attributes["value"]) is not node.origin.attributes.get("value")
        ]
        return _NODE_BYTES * len(self.subgraph.nodes) + int(sum(made))

    def costs(self) -> PlanCosts:
        """About what the plan took to make, and what its steps take."""
        return plan_costs(self.subgraph, self.captured is not None and not self.captured.reason)

    def growth_on_one_thread(self) -> float:
        """How many times as much its steps may do until they gain from a team of threads; 0: they do."""
        is_whole = not isinstance(self.program, PartitionedProgram)
        return growth_on_one_thread(self.subgraph) if is_whole else 0.0

    @property
    def graph_text(self) -> str:
        """The final graph, with a line for each node; with several devices, the part of each."""
        return _graph_text(self.subgraph, self.program)


@collector.paused()
def make_plan(
    fetches: Sequence[Any], targets: Sequence[Any], feeds: Sequence[Any], options: PlanOptions
) -> Plan:
    """Plans the computation of `fetches` and `targets` (of one graph) from `feeds`.

    Raises InvalidArgumentError for cycles, devices that do not exist and ops without a kernel, ValueError for
    `options.feed_dims` that contradict the graph's.
    """
    subgraph, chosen = placed_subgraph(fetches, targets, feeds, options)
    default = default_device(options.devices)
    placement = {node.name: chosen.get(node, default).name for node in subgraph.nodes}
    assigned = stateful_placement(chosen)
    used = set(chosen.values()) or {default}
    device, in_parts = next(iter(used)), is_divided(used)
    if chosen and not in_parts:
        passes = passes_for(device.device_type, in_part=False)
        _rewrite(subgraph, passes, options)
    is_on_host = device.torch.type == "cpu"
    one_thread = is_on_host and wants_one_thread(subgraph)
    program: Program
    if in_parts:
        program = _compiled_in_parts(subgraph, chosen, options)
    else:
        program = _compiled(subgraph, device, options)
    _print(subgraph, program)
    function, captured = _step_function(subgraph, program, used, options)
    return Plan(
        subgraph,
        program,
        function,
        one_thread,
        TeamUse() if one_thread or in_parts or not is_on_host else team_use(subgraph),
        placement,
        assigned,
        options.devices[0].torch if in_parts else device.torch,
        captured,
    )


def placed_subgraph(
    fetches: Sequence[Any], targets: Sequence[Any], feeds: Sequence[Any], options: PlanOptions
) -> tuple[Subgraph, dict[PlanNode, Device]]:
    """The rewritten subgraph, and the devices of its nodes: empty if there is nothing to place. If there is,
    the subgraph is not lowered yet, since lowering joins only nodes of one device. For arguments and errors
    see `make_plan`.
    """
    devices = options.devices
    subgraph = pruned_subgraph(fetches, targets, feeds, options)
    needs_places = needs_placement(subgraph.nodes, devices)
    subgraph.in_pieces, subgraph.code_first = options.in_pieces or needs_places, options.code_first
    if needs_places:
        _rewrite(subgraph, (*SIMPLIFYING, *SAVING), options)
        chosen = place(subgraph, devices, options.soft_placement, options.costs, assigned=options.assigned)
        return subgraph, chosen
    check_requested(subgraph.nodes, devices, options.soft_placement)
    _rewrite(subgraph, pipeline(default_device(devices).device_type), options)
    return subgraph, {}


def _rewrite(subgraph: Subgraph, passes: Any, options: PlanOptions) -> None:
    """`run_passes`; the error of a node that a pass looks at names it."""
    try:
        run_passes(subgraph, passes, options.disabled_passes)
    except errors.OpError as error:
        if not isinstance(getattr(error, "failed_node", (None,))[0], PlanNode):
            raise
        raise located(error, *error.failed_node) from error  # type: ignore[attr-defined]


def pruned_subgraph(
    fetches: Sequence[Any], targets: Sequence[Any], feeds: Sequence[Any], options: PlanOptions
) -> Subgraph:
    """The subgraph that a step needs, without calls of functions, not yet rewritten."""
    feed_dims = options.feed_dims and options.feed_dims[: len(feeds)]
    subgraph = _needed_subgraph(fetches, targets, feeds, feed_dims, options)
    if feed_dims and options.feed_dims:
        named = use_fed_sizes(subgraph, options.fed_sizes, options.feed_dims[len(feeds) :])
        refine_shapes(subgraph)
        use_equal_sizes(subgraph, feed_dims, named)
        if _decides_branches(subgraph) and remove_dead_branches.__name__ not in options.disabled_passes:
            remove_dead_branches(subgraph)
            refine_shapes(subgraph)
            use_equal_sizes(subgraph, feed_dims, named)
        subgraph.named_sizes = feed_dims, named
    elif not NEXT_ITERATIONS.isdisjoint([node.type for node in subgraph.nodes]) and not is_in_pieces(
        subgraph
    ):
        try:
            refine_shapes(subgraph)  # a loop's gradient knows more than when it was made
        except ValueError:  # the step says what is wrong
            subgraph = _needed_subgraph(fetches, targets, feeds, feed_dims, options)
    check_scalars(subgraph)
    return subgraph


def _decides_branches(subgraph: Subgraph) -> bool:
    """Whether some branch is known to be taken."""
    return any([node.type in SWITCHES and is_known(node.inputs[1]) for node in subgraph.nodes])


def _needed_subgraph(
    fetches: Sequence[Any], targets: Sequence[Any], feeds: Sequence[Any], feed_dims: Any, options: PlanOptions
) -> Subgraph:
    """The subgraph as it was made, without calls of functions."""
    subgraph = prune(fetches, targets, feeds, feed_dims and without_equal_sizes(feed_dims))
    if options.watches:
        insert_watches(subgraph, options.watches, default_device(options.devices).name)
    inline_functions(subgraph)
    hold_predicates(subgraph)
    share_predicates(subgraph)
    return subgraph


# ---- programs


def _compiled_in_parts(
    subgraph: Subgraph, chosen: dict[PlanNode, Device], options: PlanOptions
) -> PartitionedProgram:
    """The program of several devices, with a part for each."""
    dynamic = any(node.type in SWITCHES for node in subgraph.nodes)
    parts = partition(subgraph, chosen, options.devices[0], options.compresses)
    _lower(parts, subgraph, options.disabled_passes)
    return PartitionedProgram.compiled(
        parts, options.environments, len(subgraph.fetches), options.watched, dynamic, options.traced
    )


def _lower(parts: Sequence[Part], subgraph: Subgraph, disabled_passes: frozenset[str]) -> None:
    """Lowers each part for its device."""
    for part in parts:
        if part.device.device_type in (CPU, GPU):
            run_passes(part.subgraph, passes_for(part.device.device_type, in_part=True), disabled_passes)
            subgraph.log += part.subgraph.log


def _compiled(subgraph: Subgraph, device: Device, options: PlanOptions) -> Segment | UnitProgram:
    """The program of one device: one segment, unless its asynchronous kernels need units."""
    environment, watched = options.environments[device.name], options.watched
    traced_device = device.name if options.traced else ""
    if needs_units(subgraph) and not (device.device_type == CPU and wait_last(subgraph)):
        return unit_program(subgraph, environment, watched, False, traced_device)
    return compile_segment(subgraph, environment, watched, False, traced_device, feeds_are_there=True)


def _print(subgraph: Subgraph, program: Program) -> None:
    """Prints what FLOWSTONE_DEBUG asks for."""
    if flags.DEBUG >= 1:
        print(f"plan: {len(subgraph.nodes)} nodes for {len(subgraph.fetches)} fetches", file=sys.stderr)
    if flags.DEBUG >= 3:
        print(_graph_text(subgraph, program), file=sys.stderr)
    if flags.DEBUG >= 4:
        print(program.source, file=sys.stderr)


def _graph_text(subgraph: Subgraph, program: Program) -> str:
    return show(program.parts) if isinstance(program, PartitionedProgram) else str(subgraph)


# ---- what a step calls


def _step_function(
    subgraph: Subgraph, program: Program, used: Collection[Device], options: PlanOptions
) -> tuple[Callable[..., Any], CapturedStep | None]:
    """The program's own function, perhaps wrapped; and the `CapturedStep` that it then is, if it may be
    recorded."""
    function: Callable[..., Any] = program.function
    if any(device.torch.type == "cuda" for device in used):
        function = with_precision(function)
    environment = options.environments[next(iter(used)).name]
    captured = None
    if _may_be_captured(program, options) and (new_recorder := recorder_of(environment.device)):
        captured = CapturedStep(subgraph, program, function, environment, new_recorder)
        if not captured.reason:
            function = captured.run
    if flags.CHECK >= 2 and len(used) == 1 and _is_comparable(subgraph):
        function = _compared(function, subgraph, program, environment)
    return function, captured


def _may_be_captured(program: Program, options: PlanOptions) -> TypeGuard[Segment]:
    """Whether the step may be recorded, if its device can record."""
    is_plain = isinstance(program, Segment) and not options.watched and not options.traced
    return is_plain and options.captures and flags.CHECK < 2


def _is_comparable(subgraph: Subgraph) -> bool:
    """Whether the interpreter can be compared with: there are no effects, and no loops, which it does not
    run."""
    return all(node.declaration.is_pure and node.type not in LOOP_TYPES for node in subgraph.nodes)


def _compared(
    function: Callable[..., Any], subgraph: Subgraph, program: Program, environment: Environment
) -> Callable[..., Any]:
    """FLOWSTONE_CHECK=2: each step is also run node by node, and must agree."""

    def checked(step: Any, *feeds: Any) -> Any:
        computed = function(step, *feeds)
        difference = disagreement(computed, interpret(subgraph, environment, feeds))
        if difference:
            raise errors.InternalError(None, None, f"FLOWSTONE_CHECK=2: {difference}\n{program.source}")
        return computed

    return checked
