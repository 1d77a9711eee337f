"""What nodes wait for from outside, where a step is several functions.

An *arrival* is what may come late: a value from another device or a queue, or a feed of a step whose feeds
come one by one. It may even come only because a result of the same subgraph has left before. So nothing may
come to wait for an arrival that it did not wait for: both would wait for ever.

    early = MatMul(v, w)
    late = MatMul(receive, w)     # may not become one with `early`: who sends may wait for that
"""

from __future__ import annotations

from flowstone.framework.subgraph import PlanNode, Subgraph
from flowstone.rewriting.frames import NEXT_ITERATIONS


def is_in_pieces(subgraph: Subgraph) -> bool:
    """Whether the subgraph's steps are several functions, which edges alone hold in order."""
    return subgraph.in_pieces or any([node.declaration.asynchronous for node in subgraph.nodes])


class Arrivals:
    """Of the nodes of a subgraph, and of others that take what these compute."""

    def __init__(self, subgraph: Subgraph) -> None:
        self._bits: dict[PlanNode, int] = {}  # arrivals as bits of a number
        self._count = 0
        self._fed_late = subgraph.in_pieces
        for node in subgraph.nodes:
            self.before(node)

    def before(self, node: PlanNode) -> int:
        """The arrivals that the node waits for, as bits; it may be one itself. What a loop's next iteration
        brings does not count."""
        found = self._bits.get(node)
        if found is None:
            found = self._own(node)
            for source in (*[x._op for x in node._inputs], *node._control_inputs):
                if source.type not in NEXT_ITERATIONS or source in self._bits:
                    found |= self.before(source)
            self._bits[node] = found
        return found

    def _own(self, node: PlanNode) -> int:
        if not (node.declaration.asynchronous or (self._fed_late and node.type == "_Arg")):
            return 0
        self._count += 1
        return 1 << self._count
