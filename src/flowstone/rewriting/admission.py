"""Admission: decides whether new nodes may replace old ones. They must read the same versions of state.

What led to an old output and comes after what the new nodes take is *absorbed*: the new nodes do its work.
The versions that absorbed nodes read (`state_versions.py`) must be those that the new nodes read where they
stand; values that share memory with a state count as reads of it, lest the step have to copy them. Where a
value becomes a reference, or a reference a value, all who take it must read the version that the value
shows. Where the steps of a subgraph are not one function (it waits, or is a part of several), control edges
alone hold nodes in order: there, nodes that others wait for are not absorbed if they read what is changed,
new nodes wait for all that the old ones waited for, directly or for what they took, and nothing comes to wait
for more arrivals, or to come after fewer changes (`arrivals.py`).

Most rewrites come before anything is changed, and need no analysis at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from flowstone.framework.graphs.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.arrivals import Before, arrivals, changes, is_in_pieces
from flowstone.rewriting.analyses.frames import ENTERS
from flowstone.rewriting.analyses.state_access import input_positions
from flowstone.rewriting.analyses.state_versions import References, StateVersions, hands_on

Places = dict[PlanNode, list[PlanNode]]


class Admission:
    """Asks of each change of a subgraph whether it may be made. The analysis is made when it is first needed,
    of the nodes as they are then."""

    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph = subgraph
        self._references = References()
        self._versions: StateVersions | None = None
        self._added: list[tuple[PlanNode, PlanNode]] = []  # new nodes, and in whose places they stand
        self._consumers: Consumers | None = None
        self._waited_for: set[PlanNode] | None = None
        self._in_pieces: bool | None = None
        self._arrivals: Before | None = None
        self._changes: Before | None = None

    @property
    def versions(self) -> StateVersions:
        """The versions of the subgraph's states."""
        if self._versions is None:
            self._versions = StateVersions(self._subgraph, self._references)
            for new, old in self._added:
                self._versions.add(new, old)
        return self._versions

    # ---- one node after the other

    def admits_in_place(
        self,
        node: PlanNode,
        outputs: Sequence[PlanOutput],
        new_nodes: Sequence[PlanNode],
        is_after_changes: bool,
    ) -> bool:
        """Whether `outputs`, some of `new_nodes` in its place, may stand for those of `node`.

        `is_after_changes`: a node that changes state, or waits, comes before it."""
        replaced = list(zip(node.outputs, outputs))
        in_pieces = self._is_in_pieces()
        if not in_pieces:
            if not is_after_changes and self._keeps_references(replaced):
                self._added += [(new, node) for new in new_nodes]
                return True
            if not self.versions.changes:
                return True
        for new in new_nodes:
            self.versions.add(new, node)
        if not self._admits(replaced, new_nodes, (node,)):
            return False
        if in_pieces:
            self._wait_like(node, new_nodes)
            if not self._keeps_order(replaced, new_nodes, (node,)):
                return False
            if node in self._held():
                self._held().update([output.op for output in outputs])
        return True

    def _keeps_references(self, replaced: Iterable[tuple[PlanOutput, PlanOutput]]) -> bool:
        references = self._references
        return all([_is_handed_on(old, new) or references[old] == references[new] for old, new in replaced])

    # ---- several at a time

    def refused(
        self, places: Places, replaced: dict[PlanOutput, PlanOutput], replacements: Places
    ) -> set[PlanNode]:
        """The old nodes whose changes may not be made. Changes that share a node stand or fall together."""
        involved = {*places, *[x.op for x in replaced]}
        in_pieces = self._is_in_pieces()
        if not in_pieces:
            if self._come_before_changes(involved) and self._keeps_references(replaced.items()):
                return set()
            if not self.versions.changes:
                return set()
        for old, new_nodes in places.items():
            for new in new_nodes:
                self.versions.add(new, old)
        refused: set[PlanNode] = set()
        groups = _groups(involved, places, replaced, replacements)
        for group in groups:
            pairs = [(old, replaced[old]) for node in group for old in node.outputs if old in replaced]
            new_nodes = [new for node in group for new in places.get(node, ()) if new is not node]
            if not self._admits(pairs, new_nodes, group):
                refused |= group
            elif in_pieces:
                staying = [node for node in group if all([each not in group for each in _sources(node)])]
                for node in staying:
                    self._wait_like(node, new_nodes)
                if not self._keeps_order(pairs, new_nodes, group):
                    refused |= group
        return self._with_what_stays(refused, groups, places, replaced) if refused else refused

    def _with_what_stays(
        self,
        refused: set[PlanNode],
        groups: list[set[PlanNode]],
        places: Places,
        replaced: dict[PlanOutput, PlanOutput],
    ) -> set[PlanNode]:
        """The nodes, and those that were to go without a replacement but are taken by nodes that stay."""
        group_of = {node: group for group in groups for node in group}
        waiting = list(refused)
        found: set[PlanNode] = set()
        while waiting:
            node = waiting.pop()
            if node in found:
                continue
            found.add(node)
            for x in node.inputs:
                if x.op in group_of and x not in replaced and x.op not in places.get(x.op, [x.op]):
                    waiting += group_of[x.op]
        return found

    def _come_before_changes(self, involved: Collection[PlanNode]) -> bool:
        left = len(involved)
        if any(node.type in ENTERS for node in self._subgraph.nodes):
            return False
        for node in self._subgraph.nodes:
            left -= node in involved
            if not left:
                return True
            if node.declaration.mutates or node.declaration.asynchronous:
                return False
        return True

    def _keeps_order(
        self,
        replaced: Sequence[tuple[PlanOutput, PlanOutput]],
        new_nodes: Iterable[PlanNode],
        old_nodes: Iterable[PlanNode],
    ) -> bool:
        """Whether nothing comes to wait for more arrivals, or to come after fewer changes."""
        if self._arrivals is None or self._changes is None:
            self._arrivals, self._changes = arrivals(self._subgraph), changes(self._subgraph)
        late, changed = self._arrivals, self._changes
        for old, new in replaced:
            if late(new.op) & ~late(old.op) or changed.behind(old.op) & ~changed(new.op):
                return False
        standing = {old.op for old, _ in replaced}
        effects = [old for old in old_nodes if old not in standing and not old.declaration.is_pure]
        waits = [late(new) for new in new_nodes] if effects else []
        return not any([new & ~late(old) for old in effects for new in waits])

    def _wait_like(self, old: PlanNode, new_nodes: Iterable[PlanNode]) -> None:
        """Has new nodes that read what is changed wait for what the old node took and waited for."""
        place = self.versions.place
        for new in new_nodes:
            if self.versions.in_memory_for(new):
                before = [each for each in _sources(old) if place[each] < place[new]]
                new.control_inputs = list(dict.fromkeys([*new.control_inputs, *before]))

    # ---- the question

    def _admits(
        self,
        replaced: Sequence[tuple[PlanOutput, PlanOutput]],
        new_nodes: Sequence[PlanNode],
        old_nodes: Collection[PlanNode],
    ) -> bool:
        versions = self.versions
        new_reads = frozenset().union(*[versions.in_memory_for(new) for new in new_nodes])
        if any([self._updates_from_itself(new) for new in new_nodes]):
            return any([self._updates_from_itself(old) for old in old_nodes])
        if new_reads and not self._are_read_by_old(new_reads, replaced, new_nodes, old_nodes):
            return False
        return all([self._shows_the_same(old, new, new_nodes) for old, new in replaced])

    def _updates_from_itself(self, node: PlanNode) -> bool:
        """Whether the node takes values that share memory with what it changes."""
        sharing, changed = self.versions.sharing, input_positions(node, node.declaration.mutates)
        states = frozenset().union(*[sharing[node.inputs[i]] for i in changed])
        return any([states & sharing[x] for i, x in enumerate(node.inputs) if i not in changed])

    def _are_read_by_old(
        self,
        new_reads: frozenset[Any],
        replaced: Sequence[tuple[PlanOutput, PlanOutput]],
        new_nodes: Sequence[PlanNode],
        old_nodes: Collection[PlanNode],
    ) -> bool:
        taken = {x for new in new_nodes for x in new.inputs}
        absorbed = _absorbed([*[old.op for old, _ in replaced], *old_nodes], taken)
        old_reads: dict[Any, set[Any]] = {}
        for node in absorbed:
            for state, version in self.versions.in_memory_for(node):
                old_reads.setdefault(state, set()).add(version)
        if any([old_reads.get(state) != {version} for state, version in new_reads]):
            return False
        if not self._is_in_pieces():
            return True
        return not any(node in self._held() for node in absorbed if node not in old_nodes)

    def _shows_the_same(self, old: PlanOutput, new: PlanOutput, new_nodes: Sequence[PlanNode]) -> bool:
        versions = self.versions
        before, after = versions.references[old], versions.references[new]
        if before == after:
            if before or new.op in new_nodes or new.op is old.op:
                return True
            return all(  # a value that is there already
                [versions.current(state, new.op) == version for state, version in versions.read_by(old.op)]
            )
        value = new.op if before else old.op
        changed = [state for state in before | after if versions.is_changed(state)]
        if changed and self._is_in_pieces():
            return False  # no edge says when those who take it run
        return all([self._is_taken_at(old, state, versions.current(state, value)) for state in changed])

    def _is_taken_at(self, x: PlanOutput, state: Any, version: Any) -> bool:
        """Whether all who take `x`, or what is handed on of it, see this version of the state."""
        waiting, seen = [x], {x}
        while waiting:
            top = waiting.pop()
            if top in self._subgraph.fetches and self.versions.final(state) != version:
                return False
            for node in self._taken().get(top, ()):
                if hands_on(node):
                    waiting += [y for y in node.outputs if y not in seen]
                    seen.update(node.outputs)
                elif self.versions.current(state, node) != version:
                    return False
        return True

    def _taken(self) -> Consumers:
        if self._consumers is None:
            self._consumers = self._subgraph.consumers()
        return self._consumers

    def _is_in_pieces(self) -> bool:
        if self._in_pieces is None:
            self._in_pieces = is_in_pieces(self._subgraph)
        return self._in_pieces

    def _held(self) -> set[PlanNode]:
        """The nodes that others wait for."""
        if self._waited_for is None:
            self._waited_for = {x for node in self._subgraph.nodes for x in node.control_inputs}
        return self._waited_for


def _is_handed_on(old: PlanOutput, new: PlanOutput) -> bool:
    """Whether one is all that the other's node hands on, as an Identity does."""
    node, declaration = old.op, old.op.declaration
    if not declaration.aliases or declaration.snapshot:
        return False
    return len(node.inputs) == 1 and node.inputs[0] is new


def _sources(node: PlanNode) -> list[PlanNode]:
    return list(node.sources())


def _absorbed(ends: Iterable[PlanNode], taken: Collection[PlanOutput]) -> set[PlanNode]:
    """The nodes that lead to these ends, themselves included, and come after what is `taken`."""
    found: set[PlanNode] = set()
    stack = list(ends)
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += [x.op for x in node.inputs if x not in taken]
    return found


def _groups(
    involved: Collection[PlanNode],
    places: Places,
    replaced: dict[PlanOutput, PlanOutput],
    replacements: Places,
) -> list[set[PlanNode]]:
    """The old nodes in groups that share new nodes, directly or through what these take of each other."""
    leader: dict[PlanNode, PlanNode] = {}

    def find(node: PlanNode) -> PlanNode:
        while leader.setdefault(node, node) is not node:
            leader[node] = node = leader[leader[node]]
        return node

    def join(a: PlanNode, b: PlanNode) -> None:
        leader[find(a)] = find(b)

    made = {new for new_nodes in places.values() for new in new_nodes} - set(places)
    for node, new_nodes in places.items():
        for new in new_nodes:
            join(node, new)
            for source in new.sources():
                if source in made:
                    join(new, source)
    for old, new_output in replaced.items():
        if new_output.op in made or new_output.op in places:
            join(old.op, new_output.op)
    for node, stands in replacements.items():
        for new in stands:
            if new in made:
                join(node, new)
    groups: dict[PlanNode, set[PlanNode]] = {}
    for node in involved:
        groups.setdefault(find(node), set()).add(node)
    return list(groups.values())
