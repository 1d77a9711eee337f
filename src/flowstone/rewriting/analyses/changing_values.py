"""Which nodes compute from state that their own subgraph changes: the next run computes other values anyway.

All that a node computes otherwise is the same in every run with the same feeds, but for random numbers and
what programs do themselves.
"""

from __future__ import annotations

from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.rewriting.analyses.state_access import UNKNOWN, StateAccess

__all__ = ["changing_nodes"]


def changing_nodes(subgraph: Subgraph) -> set[PlanNode]:
    """The nodes whose inputs depend on state that a node changes; all if there is such a node, and no result
    but its change, as in what initialises variables."""
    access = subgraph.analysis(StateAccess)
    written = frozenset().union(*access.writes.values())
    if not written:
        return set()
    if not subgraph.fetches:
        return set(subgraph.nodes)
    found: set[PlanNode] = set()
    before = -1
    while before != len(found):  # once more where loops hand values back
        before = len(found)
        for node in subgraph.nodes:
            read = access.reads.get(node, frozenset())
            if (
                node in access.writes
                or read & written
                or (read and UNKNOWN in written)
                or UNKNOWN in read
                or any(x.op in found for x in node.inputs)
            ):
                found.add(node)
    return found
