"""What a group of nodes is as a program: what it takes and gives, and its code.

A program runs always and takes and gives values: what only a branch computes, and arrays and stacks, must
neither come from outside nor leave.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.lowering.programs.program_limits import Limits, Untranslatable
from flowstone.lowering.programs.program_members import ProgramMembers
from flowstone.lowering.programs.program_units import Units
from flowstone.lowering.programs.region_translation import (
    drawing_nodes,
    has_no_value,
    is_part_of_code,
    translated,
)
from flowstone.native.codegen.emitter import KINDS
from flowstone.rewriting.analyses.branches import SWITCHES, TRUE, Liveness

__all__ = ["CROSSING", "RegionMembers"]

CROSSING = "others take resource values of it"
"""Why nodes on stacks and arrays are in no program."""


class RegionMembers:
    """Tells of groups of a subgraph's nodes what they are as programs."""

    def __init__(self, subgraph: Subgraph, units: Units) -> None:
        self._subgraph, self._units = subgraph, units
        self._liveness = subgraph.analysis(Liveness)
        self._consumers, self._fetched = subgraph.consumers(), set(subgraph.fetches)
        self._waiting: dict[PlanNode, list[PlanNode]] = {}  # who waits for a node
        for node in subgraph.nodes:
            for source in node.control_inputs:
                self._waiting.setdefault(source, []).append(node)
        self._asked: dict[tuple[PlanNode, ...], list[PlanOutput]] = {}
        self._known: dict[tuple[Limits, tuple[PlanNode, ...], tuple[PlanOutput, ...]], ProgramMembers] = {}

    def members(
        self,
        nodes: Sequence[PlanNode],
        left_out: Mapping[PlanNode, str],
        limits: Limits,
        asked: Collection[PlanOutput] = (),
    ) -> ProgramMembers:
        """Nodes, in order, as a program; translated once. `left_out`: the first nodes of units that are in no
        program, and why. `asked`: the predicates that programs take of others. Raises Untranslatable."""
        nodes = self._needed(nodes)
        inside = set(nodes)
        self._check_waits(nodes, inside)
        inputs = self._inputs(nodes, inside, left_out)
        outputs = [x for node in nodes for x in self._taken_by_others(node, inside, asked)]
        key = limits, tuple(nodes), tuple(outputs)
        if key not in self._known:
            inputs.update(dict.fromkeys(self._predicates(nodes)))
            self._known[key] = self._translated(nodes, list(inputs), outputs, limits)
        return self._known[key]

    def asked_of_others(self, groups: Sequence[Sequence[PlanNode]]) -> set[PlanOutput]:
        """The predicates that groups take of others, though perhaps no node of theirs does: they decide its
        branches."""
        return {x for nodes in groups for x in self._predicates(self._needed(nodes))}

    def _translated(
        self,
        nodes: Sequence[PlanNode],
        inputs: Sequence[PlanOutput],
        outputs: Sequence[PlanOutput],
        limits: Limits,
    ) -> ProgramMembers:
        if not outputs:
            raise Untranslatable(nodes[0], "nobody takes what it computes")
        program = translated(self._subgraph, nodes, inputs, outputs, limits=limits)
        reads = program.reads()
        read = [x for i, x in enumerate(inputs) if reads[i] or not x.op.is_constant]
        if len(read) < len(inputs):  # the others are shapes and axes, which are part of the code
            program = translated(self._subgraph, nodes, read, outputs, limits=limits)
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
                if source not in inside and self._liveness.node(source) != TRUE:
                    raise Untranslatable(node, "it waits for what only a branch does")

    def _inputs(
        self, nodes: Sequence[PlanNode], inside: set[PlanNode], left_out: Mapping[PlanNode, str]
    ) -> dict[PlanOutput, None]:
        """What the nodes take of others."""
        takers = [(x, node) for node in nodes for x in node.inputs if x.op not in inside]
        for x, taker in takers:
            if x.dtype.name == "resource" and (first := self._units.of[x.op].first) in left_out:
                raise Untranslatable(taker, f"{x.op.name}: {left_out[first]}")
            is_in_branch = taker.type in SWITCHES or self._liveness.node(taker) != TRUE
            if x.dtype.is_ref and is_in_branch:  # where the branch is not taken, it may have no value
                raise Untranslatable(taker, "a branch alone reads the variable")
            if self._liveness.output(x) != TRUE and not is_part_of_code(x.op):
                raise Untranslatable(taker, "it takes what only a branch computes")
        return dict.fromkeys(x for x, _ in takers)

    def _taken_by_others(
        self, node: PlanNode, inside: set[PlanNode], asked: Collection[PlanOutput]
    ) -> list[PlanOutput]:
        """The outputs of a node that others take, or that are fetched."""
        found = []
        for x in node.outputs:
            if (
                x in self._fetched
                or x in asked
                or any(each not in inside for each in self._consumers.get(x, ()))
            ):
                if self._liveness.output(x) != TRUE:
                    raise Untranslatable(node, "others take what only a branch computes")
                if x.dtype.name not in KINDS and not node.is_constant:
                    is_handle = x.dtype.name == "resource"
                    reason = CROSSING if is_handle else f"others take {x.dtype.name} values of it"
                    raise Untranslatable(node, reason)
                found.append(x)
        if self._liveness.node(node) != TRUE and any(
            each not in inside for each in self._waiting.get(node, ())
        ):
            raise Untranslatable(node, "others run only where its branch does")
        return [] if node.is_constant else found

    def _predicates(self, nodes: Sequence[PlanNode]) -> list[PlanOutput]:
        """What decides the branches of the nodes, where others compute it; looked for once."""
        key = tuple(nodes)
        if key not in self._asked:
            inside = set(nodes)
            conditions = [self._liveness.node(node) for node in nodes]
            conditions += [self._liveness.output(x) for node in nodes for x in node.outputs]
            predicates = (p for condition in dict.fromkeys(conditions) for term in condition for p, _ in term)
            self._asked[key] = [x for x in predicates if x.op not in inside]
        return self._asked[key]
