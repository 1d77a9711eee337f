"""What the results of a subgraph depend on, as far as rewriting must keep it.

A *result* is a fetch, a new version of a state, or another effect. It depends on fed values, on versions of
states (`state_versions.py`), and on nodes whose own effect is what they hand out (random numbers).
`dependences` finds these through data edges, through stacks and arrays, and round loops. A value that is
only asked for its shape does not count, nor do fed integers: what they say as a size or an axis, shapes may
say as well. It depends on *terms*, too: on what sums add up, as gradients do with what arrives along several
paths.

Before and after a pass, results depend on the same: a read that moved past an assignment shows as another
version, a contribution that a sum lost as a dependence that is gone. Terms that a pass replaced are not asked
for; what they depended on is. This is what ``FLOWSTONE_CHECK=1`` holds every pass to (`invariants.py`).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import MERGES
from flowstone.rewriting.analyses.state_versions import StateVersions, changed_by
from flowstone.rewriting.analyses.stored_values import is_put, is_taken, storage_of


class Dependences(NamedTuple):
    """`of`: by result, what it depends on; `all`: what there is to depend on. The names of results and
    dependences outlive the subgraph's nodes; a term's is ("term", the node's name).
    """

    of: dict[Any, frozenset[Any]]
    all: frozenset[Any]


def dependences(subgraph: Subgraph, before: Dependences | None = None) -> Dependences:
    """The dependences of a subgraph's results. The terms of `before` count as terms here, too."""
    terms = {
        ("term", x.op.name)
        for node in subgraph.nodes
        if node.declaration.adds
        for x in node.inputs
        if x.dtype.is_floating and not _may_add_nothing(x.op)
    }
    return _Walk(subgraph, terms if before is None else terms | before.all).results()


def _may_add_nothing(node: PlanNode) -> bool:
    """Whether a pass may see that the values are zeros; or the term is a state, which counts as itself."""
    return node.is_constant or bool(node.declaration.uniform or node.declaration.reads)


def _only_shapes(feed: PlanNode) -> bool:
    """Whether the feed may be a size, an axis or the flow of an array, none of which is part of a result."""
    origin = feed.origin
    while origin.declaration.role == "identity":
        origin = origin.inputs[0].op
    return bool(feed.outputs[0].dtype.is_integer) or origin.declaration.container not in ("", "push", "pop")


class _Walk:
    """Sets of dependences as bits of integers, by output."""

    def __init__(self, subgraph: Subgraph, terms: Set[Any]) -> None:
        self.subgraph, self.versions, self.terms = subgraph, StateVersions(subgraph), terms
        self._bits: dict[Any, int] = {}
        self._own: dict[PlanNode, int] = {node: self._of_its_own(node) for node in subgraph.nodes}
        self.of: dict[PlanOutput, int] = {}
        self._stored: dict[Any, int] = {}  # what is in each stack and array
        changed = True
        while changed:  # once, and once more for every loop that a dependence goes round
            changed = any([self._visit(node) for node in subgraph.nodes])

    def _bit(self, name: Any) -> int:
        return 1 << self._bits.setdefault(name, len(self._bits))

    def _of_its_own(self, node: PlanNode) -> int:
        if node.is_feed:
            return 0 if _only_shapes(node) else self._bit(("feed", node.attributes["index"]))
        term = "term", node.name
        found = self._bit(term) if term in self.terms else 0
        if not node.declaration.shape_only:
            for state, version in self.versions.read_by(node):
                found |= self._bit((state, version))
        for name in self._effects(node):
            found |= self._bit(("effect", name))
        return found

    def _effects(self, node: PlanNode) -> Sequence[str]:
        """The names of the nodes whose effect the node hands out: its own, or of those that it stands for."""
        joined: Sequence[str] = node.attributes.get("effects", ())
        if joined:
            return joined
        declaration = node.declaration
        if not declaration.stateful or declaration.reads or declaration.mutates or not node.outputs:
            return ()
        return () if any(map(self._is_handle, (*node.inputs, *node.outputs))) else (node.origin.name,)

    def _is_handle(self, x: PlanOutput) -> bool:
        return bool(self.versions.references[x]) or x.dtype.is_ref or x.dtype.name == "resource"

    def _visit(self, node: PlanNode) -> bool:
        """Whether the node's outputs, or what it stores, depend on more than was known."""
        found = self._taken(node)
        changed = False
        if is_put(node):
            storage = storage_of(node)
            before = self._stored.get(storage, 0)
            self._stored[storage] = before | found
            changed = before | found != before
        for x in node.outputs:
            mine = self._of_reference(node) if self.versions.references[x] else found
            changed |= mine != self.of.get(x)
            self.of[x] = mine
        return changed

    def _of_reference(self, node: PlanNode) -> int:
        """What a reference depends on besides its state, which is read by those who take it: what else it may
        be after a conditional.
        """
        found = 0
        for x in node.inputs:
            if node.type in MERGES or self.versions.references[x]:
                found |= self.of.get(x, 0)
        return found

    def _taken(self, node: PlanNode) -> int:
        found = self._own[node]
        if not node.declaration.shape_only:
            for x in node.inputs:
                found |= self.of.get(x, 0)
        if is_taken(node):
            found |= self._stored.get(storage_of(node), 0)
        return found

    def results(self) -> Dependences:
        """What the fetches, changes and effects depend on."""
        names = list(self._bits)

        def named(bits: int) -> frozenset[Any]:
            return frozenset([name for i, name in enumerate(names) if bits >> i & 1])

        versions = self.versions
        found: dict[Any, frozenset[Any]] = {}
        for i, x in enumerate(self.subgraph.fetches):
            seen = {(state, versions.final(state)) for state in versions.references[x]}
            found["fetch", i] = named(self.of[x]) | {each for each in seen if versions.is_changed(each[0])}
        count: dict[Any, int] = {}
        for node in self.subgraph.nodes:
            for state in changed_by(node, versions.references):
                count[state] = count.get(state, -1) + 1
                found["change", state, count[state]] = named(self._taken(node))
        return Dependences(found, frozenset(names))
