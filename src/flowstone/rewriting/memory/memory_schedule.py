"""An order of execution for low peak memory (white paper 4.1, 5.2), by list scheduling.

Among the nodes that could run next, those that free memory go first, the most freeing one before others;
what needs memory waits for its turn in the given order (*release early*), or for there to be nothing that
needs less (*grow least*). Both orders are tried, and used if the estimated peak is lower than that of the
given one. Data and control edges, changes of state among their uses, other effects and the blocks of loops
stay in order, so results are the same bit for bit. In a training step it is mostly the updates that move:
each to where its gradient is known, which then need not wait for the others.

A sum of many large terms, such as the gradient of a weight that every time step uses, first becomes a chain
of sums of two in the same order of additions, which lets each term go as soon as it comes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.memory_estimate import Block, blocks_of, peak_memory, shares, size_of
from flowstone.rewriting.analyses.state_access import order_edges

WORTHWHILE = 32 << 20  # bytes of estimated peak, below which a step's order is left alone
_LARGE_TERM = 256 << 10  # bytes of one term of a sum; adding smaller ones in one call is faster
_LEAST_SAVING = 0.02  # of the peak

Key = tuple[int, int, int]


def schedule_memory(subgraph: Subgraph) -> None:
    """Arranges the nodes of a subgraph with many bytes of values for a low peak."""
    if sum([size_of(x) for node in subgraph.nodes for x in node.outputs]) >= WORTHWHILE:
        split_sums(subgraph)
        lower_peak(subgraph)


def lower_peak(subgraph: Subgraph) -> None:
    """Arranges the nodes in the order of the lowest estimated peak, if it is lower than that of their own."""
    given = blocks_of(subgraph)
    before = lowest = peak_memory(subgraph, given)
    if before < WORTHWHILE:
        return
    chosen = None
    problem = _Problem(subgraph, given)
    for name, strategy in (("release early", _release_early), ("grow least", _grow_least)):
        blocks = problem.scheduled(strategy)
        peak = peak_memory(subgraph, blocks)
        if peak < lowest and peak <= (1 - _LEAST_SAVING) * before:
            lowest, chosen = peak, (name, blocks)
    if chosen is not None:
        name, blocks = chosen
        arrange(subgraph, [node for block in blocks for node in block])
        reason = f"{name}: an estimated peak of {lowest:,} bytes instead of {before:,}"
        subgraph.log.append(("schedule_memory", "the order", reason))


def arrange(subgraph: Subgraph, nodes: list[PlanNode]) -> None:
    """Makes this the order of the subgraph, and numbers its nodes by it."""
    subgraph.nodes = nodes
    for i, node in enumerate(nodes):
        node.order = i


def _release_early(growth: int, position: int) -> Key:
    return (0, growth, position) if growth <= 0 else (1, 0, position)


def _grow_least(growth: int, position: int) -> Key:
    return (0, growth, position)


class _Problem:
    """The blocks as numbers: who waits for whom, and which buffers each takes and makes.

    A buffer's users are all blocks that take a value in it.
    """

    def __init__(self, subgraph: Subgraph, blocks: list[Block]) -> None:
        self.blocks = blocks
        self.number = {node: i for i, block in enumerate(blocks) for node in block}
        self.size: list[int] = []
        self.users: list[set[int]] = []
        self.made: list[list[int]] = [[] for _ in blocks]
        self._of: dict[PlanOutput, tuple[int, ...]] = {}
        self._find_buffers()
        self.kept = {buffer for x in subgraph.fetches for buffer in self._of.get(x, ())}
        self.taken: list[list[int]] = [[] for _ in blocks]
        for buffer, users in enumerate(self.users):
            for i in users:
                self.taken[i].append(buffer)
        self.sources: list[set[int]] = [set() for _ in blocks]
        self._find_sources()

    def _find_buffers(self) -> None:
        of = self._of
        for i, block in enumerate(self.blocks):
            for node in block:
                for x in node.inputs:
                    for buffer in of.get(x, ()):
                        self.users[buffer].add(i)
                shared = shares(node)
                for output in node.outputs:
                    if shared:
                        of[output] = tuple({b for j in shared for b in of.get(node.inputs[j], ())})
                    elif size := size_of(output):
                        of[output] = (len(self.size),)
                        self.made[i].append(len(self.size))
                        self.size.append(size)
                        self.users.append(set())

    def _find_sources(self) -> None:
        number = self.number
        for i, block in enumerate(self.blocks):
            for node in block:
                for source in node.sources():
                    if number[source] != i:
                        self.sources[i].add(number[source])
        for earlier, later in order_edges([node for block in self.blocks for node in block]):
            if number[earlier] != number[later]:
                self.sources[number[later]].add(number[earlier])

    def growth(self, i: int, left: list[int]) -> int:
        """By how many bytes the memory grows when block `i` has run, given the users left of each buffer."""
        grown = sum([self.size[b] for b in self.made[i] if left[b] or b in self.kept])
        freed = [self.size[b] for b in self.taken[i] if left[b] == 1 and b not in self.kept]
        return grown - sum(freed)

    def scheduled(self, strategy: Callable[[int, int], Key]) -> list[Block]:
        """The blocks in the order of the strategy's keys among those that are ready."""
        left = [len(users) for users in self.users]
        waiting = [len(sources) for sources in self.sources]
        dependants: list[list[int]] = [[] for _ in self.blocks]
        for i, sources in enumerate(self.sources):
            for source in sources:
                dependants[source].append(i)
        current: dict[int, Key] = {}
        heap: list[tuple[Key, int]] = []

        def offer(i: int) -> None:
            key = strategy(self.growth(i, left), i)
            if current.get(i) != key:
                current[i] = key
                heapq.heappush(heap, (key, i))

        for i, count in enumerate(waiting):
            if not count:
                offer(i)
        done = [False] * len(self.blocks)
        order: list[Block] = []
        while heap:
            key, i = heapq.heappop(heap)
            if done[i] or current[i] != key:
                continue
            done[i] = True
            order.append(self.blocks[i])
            for buffer in self.taken[i]:
                left[buffer] -= 1
                if left[buffer] == 1:
                    for user in self.users[buffer]:
                        if not done[user] and user in current:
                            offer(user)
            for dependant in dependants[i]:
                waiting[dependant] -= 1
                if not waiting[dependant]:
                    offer(dependant)
        assert len(order) == len(self.blocks), "the blocks wait for each other in a circle"
        return order


# ---- sums


def split_sums(subgraph: Subgraph) -> None:
    """Turns each sum of three or more large terms into sums of two, in the same order of additions."""
    if not subgraph.analysis(Liveness).trivial:
        return
    nodes: list[PlanNode] = []
    for node in subgraph.nodes:
        terms = list(node.inputs)
        dims = {x.dims for x in terms}
        if node.type == "AddN" and len(terms) > 2 and len(dims) == 1 and size_of(terms[0]) >= _LARGE_TERM:
            total = terms[0]
            for k, term in enumerate(terms[1:-1], 1):
                attributes = {**node.attributes, "N": 2}
                partial = subgraph.new_node(
                    node.declaration, [total, term], attributes, node, (2,), f"{node.name}/partial_{k}"
                )
                partial.control_inputs = list(node.control_inputs)
                nodes.append(partial)
                total = partial.outputs[0]
            node.inputs[:] = [total, terms[-1]]
            node.attributes = {**node.attributes, "N": 2}
            node.group_sizes = (2,)
            reason = f"{len(terms)} large terms, added as they come"
            subgraph.log.append(("schedule_memory", node.name, reason))
        nodes.append(node)
    if len(nodes) > len(subgraph.nodes):
        subgraph.nodes = nodes
