"""Programs: loops and conditionals on small arrays, with what is around them, become one node each.

    %2 = Enter(%0) …  %9 = Exit(…) : float32[32,1]        # the nodes of a loop
    %10 = Sum(%9, …) : float32[]

becomes

    %10 = _Program(%0, %1) operations='…' : float32[]

Units (`program_units.py`) join as nodes of clusters do (`clusters/element_clusters.py`): while nobody else
has taken what they compute. Since a Switch joins only with all that takes its outputs, conditionals join
whole. What takes part in nothing that has a loop or a branch stays as it is. Units that cannot be translated
are left out one after the other; of loops among them the log says why. What does not change meanwhile is
looked at once: the units, whether each looks translatable, and groups that stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowstone.framework import flags
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.lowering.programs.container_statements import CONTAINERS
from flowstone.lowering.programs.containers import HANDING_ON
from flowstone.lowering.programs.node_statements import STATEMENTS
from flowstone.lowering.programs.open_dims import with_open_dims
from flowstone.lowering.programs.parted_loops import part_loops
from flowstone.lowering.programs.program_limits import (
    NARROW,
    WIDE,
    Limits,
    TooMuch,
    Untranslatable,
    check_size,
    static_dims,
)
from flowstone.lowering.programs.program_members import ProgramMembers
from flowstone.lowering.programs.program_nodes import put_in
from flowstone.lowering.programs.program_units import Group, Unit, Units
from flowstone.lowering.programs.region_members import CROSSING, RegionMembers
from flowstone.native.clusters import kernels
from flowstone.native.codegen.emitter import KINDS
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES
from flowstone.rewriting.analyses.frames import EXITS, order_by_frames
from flowstone.rewriting.patterns import remove_unneeded, restoring

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
    with with_open_dims(subgraph) as has_open:
        left_out = _joined(subgraph, has_open)
    _tell(subgraph, left_out)
    remove_unneeded(subgraph)


def _joined(subgraph: Subgraph, has_open: bool) -> dict[PlanNode, str]:
    """Joins them; returns the first nodes of units that are left out, and why."""
    search, regions = _found(subgraph)
    while not has_open and (crossing := search.left_out_for(CROSSING)):
        restore, entries = restoring(subgraph), len(subgraph.log)
        parted = _found(subgraph) if part_loops(subgraph, crossing, _is_known) else (search, regions)
        if _loops_in(parted[1]) <= _loops_in(regions):
            restore()
            del subgraph.log[entries:]
            break
        search, regions = parted
    while regions and not put_in(subgraph, regions, "join_programs"):
        search.leave_out_readers()
        regions = search.regions()
    return search.left_out


def _found(subgraph: Subgraph) -> tuple[_Search, list[ProgramMembers]]:
    """The programs within the limits that leave out the fewest loops."""
    units = Units(subgraph)
    members, regions = RegionMembers(subgraph, units), list[ProgramMembers]()
    search = _Search(subgraph, units, members, LIMITS[0])
    keeps = _keeps_values(subgraph)
    terms = subgraph.machine.looped_products(keeps)
    shared = terms * (1 if keeps else subgraph.machine.loop_threads())
    for each in LIMITS:
        limits = each._replace(looped_terms=terms, shared_terms=shared)
        wider = _Search(subgraph, units, members, limits)
        found = wider.regions()
        if not regions or _loops_in(found) > _loops_in(regions):
            search, regions = wider, found
        if not wider.may_be_too_narrow():
            break
    return search, regions


class _Search:
    """Looks for programs within limits; `left_out`: the first nodes of units that are in none, and why."""

    def __init__(self, subgraph: Subgraph, units: Units, members: RegionMembers, limits: Limits) -> None:
        self._units, self._members, self._limits = units, members, limits
        self._targets = set(subgraph.targets)
        self._place = {node: i for i, node in enumerate(subgraph.nodes)}
        self._joins: dict[Unit, bool] = {}
        self._tries = 0
        self._groups: list[Group] = []
        self.left_out: dict[PlanNode, str] = {}

    def regions(self) -> list[ProgramMembers]:
        """The programs that all groups are."""
        for _ in range(_MOST_UNITS_LEFT_OUT - self._tries):
            self._tries += 1
            self._groups = self._units.groups(self._may_join)
            groups = self._worthwhile()
            asked = self._members.asked_of_others(groups)
            try:
                return [self._members.members(nodes, self.left_out, self._limits, asked) for nodes in groups]
            except TooMuch as error:
                for unit in self._around_loops(error.node) or [self._units.of[error.node]]:
                    self._leave_out(unit, error.reason)
            except Untranslatable as error:
                self._leave_out(self._units.of[error.node], error.reason)
        return []

    def _around_loops(self, node: PlanNode) -> list[Unit]:
        """The units that compute something around the loops of the node's group, if it has loops."""
        group = next((each for each in self._groups if self._units.of[node] in each.units), None)
        if group is None or not any(unit.is_loop for unit in group.units):
            return []
        return [unit for unit in group.units if not unit.is_loop and _only_computes(unit.first)]

    def _worthwhile(self) -> list[list[PlanNode]]:
        """The nodes, in order, of groups with a loop or a branch."""
        result = []
        for group in self._groups:
            nodes = [node for unit in group.units for node in unit.nodes]
            if any(unit.is_loop for unit in group.units) or any(node.type in MERGES for node in nodes):
                result.append(sorted(nodes, key=self._place.__getitem__))
        return result

    def leave_out_readers(self) -> None:
        """From now on leaves out units outside of loops that take what is not computed with them: they may
        read a state too late."""
        for group in self._groups:
            inside = set(group.units)
            for unit in group.units:
                if not unit.first.is_constant and (not unit.sources or not inside.issuperset(unit.sources)):
                    self._leave_out(unit, "it would read a state at another time")

    def may_be_too_narrow(self) -> bool:
        """Whether a loop is left out that has nothing which machine code lacks."""
        loops = (x for node, x in self.left_out.items() if node.declaration.role == "enter")
        return any(not reason.startswith(_LACKS) for reason in loops)

    def left_out_for(self, reason: str) -> list[PlanNode]:
        """The first nodes of loops that are left out for this, at what they use or are used by."""
        loops = ((node, x) for node, x in self.left_out.items() if node.declaration.role == "enter")
        return [node for node, x in loops if x.endswith(reason)]

    # ---- which units may join

    def _leave_out(self, unit: Unit, reason: str) -> None:
        self.left_out[unit.first], self._joins[unit] = reason, False

    def _may_join(self, unit: Unit) -> bool:
        """Whether a unit looks as if it could be translated. It is looked at once."""
        found = self._joins.get(unit)
        if found is None:
            found = self._joins[unit] = self._looks_translatable(unit)
        return found

    def _looks_translatable(self, unit: Unit) -> bool:
        if any(node in self._targets for node in unit.nodes) or not unit.has_one_device():
            return False
        for node in unit.nodes:
            if not _is_known(node):
                self.left_out[unit.first] = f"{_LACKS} {node.type}"
                return False
        return unit.is_loop or _is_small(unit.first, self._limits)


def _keeps_values(subgraph: Subgraph) -> bool:
    """Whether loops keep values for gradients."""
    return any(node.declaration.container == "stack" for node in subgraph.nodes)


def _loops_in(regions: Sequence[ProgramMembers]) -> int:
    enters = [x for each in regions for x in each.nodes if x.declaration.role == "enter"]
    return len({enter.attributes["frame_name"] for enter in enters})


def _is_known(node: PlanNode) -> bool:
    if node.type in STATEMENTS or node.type in CONTAINERS or node.is_constant:
        return True
    return node.declaration.in_control_flow or node.declaration.role in ("no_op", "trigger")


def _is_small(node: PlanNode, limits: Limits) -> bool:
    for x in node.outputs:
        is_open = x.dtype.name == "resource" or x.static_shape is None
        if is_open and _is_about_containers(node):
            continue  # the container's elements say more
        try:
            static_dims(node, x.dims)
            check_size(node, x.dims, limits)
        except Untranslatable:
            return False
        if x.dtype.is_ref or x.dtype.name not in KINDS:
            return False
    return True


def _only_computes(node: PlanNode) -> bool:
    return not (node.is_constant or node.declaration.in_control_flow or _is_about_containers(node))


def _is_about_containers(node: PlanNode) -> bool:
    return node.type in CONTAINERS or node.type == "_ProductSum" or node.declaration.role in HANDING_ON


def _tell(subgraph: Subgraph, left_out: dict[PlanNode, str]) -> None:
    """Says of loops that stay why they do."""
    for node, reason in left_out.items():
        if node.declaration.role == "enter" and flags.NATIVE:
            subgraph.log.append(("join_programs", node.name, f"not compiled: {reason}"))
