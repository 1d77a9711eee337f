"""Stashes: what the forward part of a training step leaves for its gradients, and holds all the while.

A gradient is a node below a name scope ``gradients`` (as `tf.gradients` and the optimisers name it, and as
TensorFlow's RewriterConfig finds it). A *stash* is a buffer with the value of a forward node that is used
before a turning point, then not for a while, then by gradients. The turning point is where the most bytes
wait. Both ways of not holding them, computing them again (`recomputation.py`) and moving them to the host
(`swapping.py`), begin here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.frames import Frames
from flowstone.rewriting.analyses.memory_estimate import shares, size_of

_GRADIENT = re.compile(r"(^|/)gradients(_\d+)?/")


def is_gradient(node: PlanNode) -> bool:
    """Whether the node computes a gradient, by its name."""
    return _GRADIENT.search(node.name) is not None


class Stash(NamedTuple):
    """A value of `size` bytes: made at `start`, used until `early`, then from `late` on (places of nodes)."""

    value: PlanOutput
    size: int
    start: int
    early: int
    late: int


class Stashes:
    """The stashes of a subgraph, in the order in which they are made.

    Fields: `found`; `turn`, the place of the last node before the turning point; `place` of each node;
    `root`, for each output with memory of the step, the output in whose buffer it lies (None if in
        several, or if it is a view that cannot be made again).
    """

    def __init__(self, subgraph: Subgraph) -> None:
        self.nodes = subgraph.nodes
        self.place = {node: i for i, node in enumerate(subgraph.nodes)}
        self.root: dict[PlanOutput, PlanOutput | None] = {}
        self.turn = -1
        self.found: list[Stash] = []
        if subgraph.analysis(Liveness).trivial and not subgraph.analysis(Frames).exist:
            self._find(subgraph)

    def _find(self, subgraph: Subgraph) -> None:
        self._find_roots()
        uses: dict[PlanOutput, list[int]] = {}
        for i, node in enumerate(self.nodes):
            for x in node.inputs:
                if (root := self.root.get(x)) is not None:
                    uses.setdefault(root, []).append(i)
        fetched = {self.root.get(x) for x in subgraph.fetches}
        waiting = []
        for root, places in uses.items():
            if root not in fetched and not is_gradient(root.op):
                late = [i for i in places if is_gradient(self.nodes[i])]
                if late:
                    start = self.place[root.op]
                    early = max([start, *[i for i in places if i < late[0]]])
                    waiting.append(Stash(root, size_of(root), start, early, late[0]))
        self._choose_turn(waiting)
        self.found = sorted(
            [stash for stash in waiting if stash.early <= self.turn < stash.late], key=lambda s: s.start
        )

    def _find_roots(self) -> None:
        for node in self.nodes:
            shared = shares(node)
            for output in node.outputs:
                if shared:
                    roots = {self.root[x] for i in shared if (x := node.inputs[i]) in self.root}
                    if roots:
                        is_view = len(roots) == 1 and node.declaration.is_pure
                        self.root[output] = roots.pop() if is_view else None
                elif size_of(output):
                    self.root[output] = output

    def _choose_turn(self, waiting: list[Stash]) -> None:
        change = [0] * (len(self.nodes) + 1)
        for stash in waiting:
            change[stash.early] += stash.size
            change[stash.late] -= stash.size
        total = most = 0
        for i, size in enumerate(change):
            total += size
            if total > most:
                most, self.turn = total, i
