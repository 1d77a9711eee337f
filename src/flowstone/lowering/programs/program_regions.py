"""Programs: loops and conditionals on small arrays, with what is around them, become one node each.

    %2 = Enter(%0) …  %9 = Exit(…) : float32[32,1]        # the nodes of a loop
    %10 = Sum(%9, …) : float32[]

becomes

    %10 = _Program(%0, %1) operations='…' : float32[]

A unit is a node outside of loops, or all nodes of a loop that is in no other. Units join as nodes of clusters
do (`clusters/element_clusters.py`): while nobody else has taken what they compute. Since a Switch joins only
with all that takes its outputs, conditionals join whole. What takes part in nothing that has a loop or a
branch stays as it is. Units that cannot be translated are left out one after the other; of loops among them
the log says why.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from flowstone.framework import flags
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.lowering.programs.container_statements import CONTAINERS
from flowstone.lowering.programs.containers import HANDING_ON
from flowstone.lowering.programs.node_statements import STATEMENTS
from flowstone.lowering.programs.program_kernel import ProgramMembers
from flowstone.lowering.programs.program_limits import (
    NARROW,
    WIDE,
    Limits,
    Untranslatable,
    check_size,
    static_dims,
)
from flowstone.lowering.programs.program_nodes import put_in
from flowstone.lowering.programs.region_translation import (
    drawing_nodes,
    has_no_value,
    is_part_of_code,
    translated,
)
from flowstone.native.clusters import kernels
from flowstone.native.codegen.emitter import KINDS
from flowstone.rewriting.analyses.arrivals import arrivals, is_in_pieces
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES, TRUE, Liveness
from flowstone.rewriting.analyses.frames import EXITS, Frame, Frames, order_by_frames
from flowstone.rewriting.patterns import remove_unneeded

__all__ = ["join_programs"]

_MOST_UNITS_LEFT_OUT = 200
_LACKS = "machine code has no"
LIMITS = (NARROW, WIDE)
"""Wider ones are tried where a loop is left out for what is around it."""


def join_programs(subgraph: Subgraph) -> None:
    """Replaces loops and conditionals that can be compiled whole, with the nodes around them."""
    if not kernels.is_on():
        return
    types = {node.type for node in subgraph.nodes}
    if types.isdisjoint(EXITS) and types.isdisjoint(SWITCHES):
        return
    order_by_frames(subgraph)
    search, regions = _Search(subgraph, LIMITS[0]), list[ProgramMembers]()
    for limits in LIMITS:
        wider = _Search(subgraph, limits)
        found = wider.regions()
        if not regions or _loops_in(found) > _loops_in(regions):
            search, regions = wider, found
        if not wider.may_be_too_narrow():
            break
    while regions and not put_in(subgraph, regions, "join_programs"):
        search.leave_out_readers()
        regions = search.regions()
    _tell(subgraph, search.left_out)
    remove_unneeded(subgraph)


class _Search:
    """Looks for groups within limits; `left_out`: the first nodes of units that are in none, and why."""

    def __init__(self, subgraph: Subgraph, limits: Limits) -> None:
        self._subgraph, self._limits, self._tries = subgraph, limits, 0
        self.left_out: dict[PlanNode, str] = {}
        self._found: _Regions | None = None

    def regions(self) -> list[ProgramMembers]:
        """The programs that all groups are."""
        while self._tries < _MOST_UNITS_LEFT_OUT:
            self._tries += 1
            self._found = found = _Regions(self._subgraph, self.left_out, self._limits)
            try:
                return [found.members(nodes) for nodes in found.worthwhile()]
            except Untranslatable as error:
                self.left_out[found.unit_of[error.node].first] = error.reason
        return []

    def leave_out_readers(self) -> None:
        """From now on leaves out units that may read a state too late."""
        if self._found is not None:
            self.left_out.update(self._found.readers_of_states())

    def may_be_too_narrow(self) -> bool:
        """Whether a loop is left out that has nothing which machine code lacks."""
        loops = (x for node, x in self.left_out.items() if node.declaration.role in ("enter", "stack"))
        return any(not reason.startswith(_LACKS) for reason in loops)


def _loops_in(regions: Sequence[ProgramMembers]) -> int:
    enters = [x for each in regions for x in each.nodes if x.declaration.role == "enter"]
    return len({enter.attributes["frame_name"] for enter in enters})


class _Unit:
    """A node, or the nodes of a loop that is in no other."""

    __slots__ = ("device", "first", "group", "is_loop", "late", "nodes", "sources", "waiting")

    def __init__(self, node: PlanNode, is_loop: bool) -> None:
        self.first, self.nodes, self.is_loop = node, [node], is_loop
        self.sources: dict[_Unit, None] = {}
        self.group: _Group | None = None
        self.waiting = 0
        self.late, self.device = 0, node.device


class _Group:
    """Units that may become one node."""

    def __init__(self) -> None:
        self.units: list[_Unit] = []
        self.is_open = True


class _Regions:
    """The units of a subgraph, and the groups that they form."""

    def __init__(self, subgraph: Subgraph, left_out: dict[PlanNode, str], limits: Limits) -> None:
        self.subgraph, self.left_out, self.limits = subgraph, left_out, limits
        self.frames, self.liveness = subgraph.analysis(Frames), subgraph.analysis(Liveness)
        self.consumers, self.fetched = subgraph.consumers(), set(subgraph.fetches)
        self.targets = set(subgraph.targets)
        self.waiting: dict[PlanNode, list[PlanNode]] = {}  # who waits for a node
        for node in subgraph.nodes:
            for source in node.control_inputs:
                self.waiting.setdefault(source, []).append(node)
        self.unit_of: dict[PlanNode, _Unit] = {}
        self.units: list[_Unit] = []
        self._make_units()
        coming = arrivals(subgraph) if is_in_pieces(subgraph) else None
        for unit in self.units:
            unit.late = 0 if coming is None else max(coming(node) for node in unit.nodes)
        self.groups = self._grouped()

    def _make_units(self) -> None:
        loops: dict[Frame, _Unit] = {}
        for node in self.subgraph.nodes:
            frame = self.frames.home(node)
            while frame is not None and frame.parent is not None:
                frame = frame.parent
            if frame is None:
                unit = _Unit(node, False)
                self.units.append(unit)
            elif frame in loops:
                unit = loops[frame]
                unit.nodes.append(node)
            else:
                unit = loops[frame] = _Unit(node, True)
                self.units.append(unit)
            self.unit_of[node] = unit
        for unit in self.units:
            for node in unit.nodes:
                for source in node.sources():
                    if self.unit_of[source] is not unit:
                        unit.sources[self.unit_of[source]] = None

    # ---- which units may join

    def may_join(self, unit: _Unit) -> bool:
        """Whether a unit looks as if it could be translated."""
        if unit.first in self.left_out or any(node in self.targets for node in unit.nodes):
            return False
        if any(node.device != unit.device for node in unit.nodes):
            return False
        if unit.is_loop:
            return all(self._is_known(node) for node in unit.nodes)
        (node,) = unit.nodes
        return self._is_known(node) and self._is_small(node)

    def _is_known(self, node: PlanNode) -> bool:
        if node.type in STATEMENTS or node.type in CONTAINERS or node.is_constant:
            return True
        if node.declaration.in_control_flow or node.declaration.role in ("no_op", "trigger"):
            return True
        self.left_out[self.unit_of[node].first] = f"{_LACKS} {node.type}"
        return False

    def _is_small(self, node: PlanNode) -> bool:
        for x in node.outputs:
            is_open = x.dtype.name == "resource" or x.static_shape is None
            if is_open and _is_about_containers(node):
                continue  # the container's elements say more
            try:
                static_dims(node, x.dims)
                check_size(node, x.dims, self.limits)
            except Untranslatable:
                return False
            if x.dtype.is_ref or x.dtype.name not in KINDS:
                return False
        return True

    # ---- groups

    def _grouped(self) -> list[_Group]:
        groups: list[_Group] = []
        for unit in self._ordered():
            sources = list(dict.fromkeys(x.group for x in unit.sources if x.group is not None))
            joins = self.may_join(unit)
            chosen = None
            for group in sources:
                like = group.units[0]
                fits = joins and group.is_open and (like.late, like.device) == (unit.late, unit.device)
                if not fits:
                    group.is_open = False
                elif chosen is None:
                    chosen = group
                else:
                    for other in group.units:
                        other.group = chosen
                    chosen.units += group.units
                    group.units = []
            if joins:
                if chosen is None:
                    chosen = _Group()
                    groups.append(chosen)
                chosen.units.append(unit)
                unit.group = chosen
        return [group for group in groups if group.units]

    def _ordered(self) -> list[_Unit]:
        """The units in an order of their edges in which those that may join come as early as they can."""
        takers: dict[_Unit, list[_Unit]] = {}
        place = {unit: i for i, unit in enumerate(self.units)}
        for unit in self.units:
            unit.waiting = len(unit.sources)
            for source in unit.sources:
                takers.setdefault(source, []).append(unit)
        ready = [(not self.may_join(u), place[u]) for u in self.units if not u.waiting]
        heapq.heapify(ready)
        result = []
        while ready:
            unit = self.units[heapq.heappop(ready)[1]]
            result.append(unit)
            for taker in takers.get(unit, ()):
                taker.waiting -= 1
                if not taker.waiting:
                    heapq.heappush(ready, (not self.may_join(taker), place[taker]))
        return result

    def worthwhile(self) -> list[list[PlanNode]]:
        """The nodes, in order, of groups with a loop or a branch."""
        place = {node: i for i, node in enumerate(self.subgraph.nodes)}
        result = []
        for group in self.groups:
            nodes = [node for unit in group.units for node in unit.nodes]
            if any(unit.is_loop for unit in group.units) or any(node.type in MERGES for node in nodes):
                result.append(sorted(nodes, key=place.__getitem__))
        return result

    def members(self, nodes: Sequence[PlanNode]) -> ProgramMembers:
        """A group as a program. Raises Untranslatable."""
        nodes = self._needed(nodes)
        inside = set(nodes)
        self._check_waits(nodes, inside)
        inputs = self._inputs(nodes, inside)
        outputs = [x for node in nodes for x in self._taken_by_others(node, inside)]
        self._add_predicates(nodes, inside, inputs)
        if not outputs:
            raise Untranslatable(nodes[0], "nobody takes what it computes")
        program = translated(self.subgraph, nodes, list(inputs), outputs, limits=self.limits)
        reads = program.reads()
        read = [x for i, x in enumerate(inputs) if reads[i] or not x.op.is_constant]
        if len(read) < len(inputs):  # the others are shapes and axes, which are part of the code
            program = translated(self.subgraph, nodes, read, outputs, limits=self.limits)
        return ProgramMembers(nodes, read, outputs, program, drawing=drawing_nodes(nodes))

    def _needed(self, nodes: Sequence[PlanNode]) -> Sequence[PlanNode]:
        """Constants of many numbers are handed in; those that are no values come along."""
        inside = set(nodes)
        taken = dict.fromkeys(x.op for node in nodes for x in node.inputs if x.op not in inside)
        asides = [node for node in taken if has_no_value(node)]
        kept = [x for x in nodes if not x.is_constant or is_part_of_code(x) or has_no_value(x)]
        return [*asides, *kept]

    def _check_waits(self, nodes: Sequence[PlanNode], inside: set[PlanNode]) -> None:
        """Raises Untranslatable for a node that waits for what only a branch does: a program runs always."""
        for node in nodes:
            for source in node.control_inputs:
                if source not in inside and self.liveness.node(source) != TRUE:
                    raise Untranslatable(node, "it waits for what only a branch does")

    def _inputs(self, nodes: Sequence[PlanNode], inside: set[PlanNode]) -> dict[PlanOutput, None]:
        """What the nodes take of others."""
        takers = [(x, node) for node in nodes for x in node.inputs if x.op not in inside]
        for x, taker in takers:
            if x.dtype.name == "resource" and self.unit_of[x.op].first in self.left_out:
                raise Untranslatable(taker, f"{x.op.name}: {self.left_out[self.unit_of[x.op].first]}")
            is_in_branch = taker.type in SWITCHES or self.liveness.node(taker) != TRUE
            if x.dtype.is_ref and is_in_branch:  # where the branch is not taken, it may have no value
                raise Untranslatable(taker, "a branch alone reads the variable")
            if self.liveness.output(x) != TRUE and not is_part_of_code(x.op):
                raise Untranslatable(taker, "it takes what only a branch computes")
        return dict.fromkeys(x for x, _ in takers)

    def _taken_by_others(self, node: PlanNode, inside: set[PlanNode]) -> list[PlanOutput]:
        """The outputs of a node that others take, or that are fetched."""
        found = []
        for x in node.outputs:
            if x in self.fetched or any(each not in inside for each in self.consumers.get(x, ())):
                if self.liveness.output(x) != TRUE:
                    raise Untranslatable(node, "others take what only a branch computes")
                if x.dtype.name not in KINDS and not node.is_constant:
                    raise Untranslatable(node, f"others take {x.dtype.name} values of it")
                found.append(x)
        if self.liveness.node(node) != TRUE and any(
            each not in inside for each in self.waiting.get(node, ())
        ):
            raise Untranslatable(node, "others run only where its branch does")
        return [] if node.is_constant else found

    def _add_predicates(
        self, nodes: Sequence[PlanNode], inside: set[PlanNode], inputs: dict[PlanOutput, None]
    ) -> None:
        """What decides the branches is an input, too."""
        for node in nodes:
            conditions = [self.liveness.node(node), *(self.liveness.output(x) for x in node.outputs)]
            for predicate in (p for condition in conditions for term in condition for p, _ in term):
                if predicate.op not in inside:
                    inputs.setdefault(predicate)

    def readers_of_states(self) -> dict[PlanNode, str]:
        """The units outside of loops that take what is not computed here: they may read a state too late."""
        reason = "it would read a state at another time"
        found = {}
        for group in self.groups:
            for unit in group.units:
                if any(source.group is not group for source in unit.sources) or not unit.sources:
                    if not unit.first.is_constant:
                        found[unit.first] = reason
        return found


def _is_about_containers(node: PlanNode) -> bool:
    return node.type in CONTAINERS or node.type == "_ProductSum" or node.declaration.role in HANDING_ON


def _tell(subgraph: Subgraph, left_out: dict[PlanNode, str]) -> None:
    """Says of loops that stay why they do."""
    for node, reason in left_out.items():
        if node.declaration.role == "enter" and flags.NATIVE:
            subgraph.log.append(("join_programs", node.name, f"not compiled: {reason}"))
