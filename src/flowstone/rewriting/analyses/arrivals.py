"""What comes before nodes by edges, where a step is several functions and nothing else holds them in order.

An *arrival* is what may come late: a value from another device or a queue, or a feed of a step whose feeds
come one by one. It may even come only because a result of the same subgraph has left before. So nothing may
come to wait for an arrival that it did not wait for: both would wait for ever.

    early = MatMul(v, w)
    late = MatMul(receive, w)     # may not become one with `early`: who sends may wait for that

Nor may anything cease to come after a change of state: who takes it may read, or change, that state.

    y = BroadcastTo(x, shape) ^a  # may not become x: who takes it would not wait for the assignment a
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.rewriting.analyses.frames import NEXT_ITERATIONS


def is_in_pieces(subgraph: Subgraph) -> bool:
    """Whether the subgraph's steps are several functions, which edges alone hold in order."""
    declarations = {node.declaration for node in subgraph.nodes}
    return subgraph.in_pieces or any([declaration.asynchronous for declaration in declarations])


class Before:
    """The marked nodes that edges put before a node of a subgraph, or before others that take what these
    compute. What a loop's next iteration brings does not count."""

    def __init__(self, subgraph: Subgraph, is_marked: Callable[[PlanNode], bool]) -> None:
        self._bits: dict[PlanNode, int] = {}
        self._count, self._is_marked = 0, is_marked
        for node in subgraph.nodes:
            self(node)

    def __call__(self, node: PlanNode) -> int:
        """These nodes, and this one if it is marked, as bits."""
        found = self._bits.get(node)
        if found is None:
            found = self.behind(node)
            if self._is_marked(node):
                found |= 1 << self._count
                self._count += 1
            self._bits[node] = found
        return found

    def behind(self, node: PlanNode) -> int:
        """These nodes alone."""
        found = 0
        for source in node.sources():
            if source.type not in NEXT_ITERATIONS or source in self._bits:
                found |= self(source)
        return found


def arrivals(subgraph: Subgraph) -> Before:
    """The arrivals that nodes wait for."""
    fed_late = subgraph.in_pieces
    return Before(subgraph, lambda node: node.declaration.asynchronous or (fed_late and node.is_feed))


def changes(subgraph: Subgraph) -> Before:
    """The changes of state that nodes come after."""
    return Before(subgraph, lambda node: bool(node.declaration.mutates))
