"""Reads of variables that no edge orders after a change of them stand before it, unless they come late.

    u = AssignSub(w, g)
    y = MatMul(x, w)        # created later, but nothing makes it wait for u

TensorFlow runs what is ready. What reads a variable mostly is when a step begins, and what changes it rarely
is: an accuracy that a program adds behind `minimize`, a summary, or a learning rate by a step that is
counted, are of the values before the change. So `put_reads_first` has the change wait, in the order of the
nodes alone: no edge is added. What is created before the change stands before it anyway.

A reader that more nodes lie before than before the change stays behind it: it is ready later. Nor does a
change wait for what may never come without it: readers that need its result, and those that wait for a queue
or another device for which the change does not wait. A variable's first value is not waited with either.
"""

from __future__ import annotations

from heapq import heappop, heappush

from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.rewriting.analyses.frames import NEXT_ITERATIONS, Frames
from flowstone.rewriting.analyses.state_versions import References, changed_by, hands_on

__all__ = ["put_reads_first"]


def put_reads_first(subgraph: Subgraph) -> None:
    """Arranges the nodes so that readers stand before the changes that they do not depend on."""
    later = _later_readers(subgraph)
    waits = _unordered(subgraph, later) if later else {}
    if waits:
        subgraph.nodes = _arranged(subgraph.nodes, waits)
        for i, node in enumerate(subgraph.nodes):
            node.order = i
    subgraph.invalidate()


def _later_readers(subgraph: Subgraph) -> dict[PlanNode, list[PlanNode]]:
    """By what changes a variable, the readers of it that stand behind; outside of loops."""
    references = References()
    place = {node: i for i, node in enumerate(subgraph.nodes)}
    found: dict[PlanNode, list[PlanNode]] = {}
    for variable in subgraph.nodes:
        if variable.declaration.role != "variable":
            continue
        (state,) = references[variable.outputs[0]]
        takers = _takers(subgraph, variable)
        changes = [node for node in takers if state in changed_by(node, references)]
        readers = [node for node in takers if node not in changes and not hands_on(node)]
        first_value = f"{variable.name}/Assign"
        for change in changes:
            if change.name == first_value:
                continue
            behind = [node for node in readers if place[node] > place[change]]
            if behind:
                found[change] = found.get(change, []) + behind
    frames = subgraph.analysis(Frames) if found else None
    if frames is None or not frames.exist:
        return found
    return {
        change: [node for node in readers if frames.home(node) is None]
        for change, readers in found.items()
        if frames.home(change) is None
    }


def _takers(subgraph: Subgraph, variable: PlanNode) -> list[PlanNode]:
    """The nodes that take a variable, or what hands it on."""
    consumers, waiting = subgraph.consumers(), [variable.outputs[0]]
    found: dict[PlanNode, None] = {}
    while waiting:
        for node in consumers.get(waiting.pop(), ()):
            if node not in found:
                found[node] = None
                if hands_on(node):
                    waiting += node.outputs
    return list(found)


def _unordered(subgraph: Subgraph, later: dict[PlanNode, list[PlanNode]]) -> dict[PlanNode, list[PlanNode]]:
    """Of these readers those that neither need the change nor wait for what it does not wait for, and that no
    more nodes lie before."""
    numbers = {change: i for i, change in enumerate(later)}
    needed: dict[PlanNode, int] = {}  # the changes that a node's sources need or are, each a bit
    waited: dict[PlanNode, int] = {}  # the asynchronous nodes among these
    depth: dict[PlanNode, int] = {}  # nodes of work, one after the other, up to it
    count = 0
    after: dict[PlanNode, tuple[int, int]] = {}  # the same with the node itself
    for node in subgraph.nodes:
        changes = waits = 0
        for source in node.sources():
            if source in after:  # all but what comes from the iteration before
                changes |= after[source][0]
                waits |= after[source][1]
        needed[node], waited[node] = changes, waits
        is_there = not node.inputs or (hands_on(node) and not node.declaration.mutates)
        depth[node] = max([depth[x] for x in node.sources() if x in depth], default=0) + (not is_there)
        if node in numbers:
            changes |= 1 << numbers[node]
        if node.declaration.asynchronous:
            waits |= 1 << count
            count += 1
        after[node] = changes, waits
    found: dict[PlanNode, list[PlanNode]] = {}
    for change, readers in later.items():
        for node in readers:
            is_free = not needed[node] >> numbers[change] & 1 and not waited[node] & ~waited[change]
            if is_free and depth[node] <= depth[change]:
                found.setdefault(change, []).append(node)
    return found


def _arranged(nodes: list[PlanNode], waits: dict[PlanNode, list[PlanNode]]) -> list[PlanNode]:
    """The nodes in an order of their edges, and of these, the earliest that is ready first.

    No circle arises: a reader has more nodes before it than what it depends on, and its change has no fewer.
    """
    place = {node: i for i, node in enumerate(nodes)}
    missing = dict.fromkeys(nodes, 0)
    followers: dict[PlanNode, list[PlanNode]] = {}
    for node in nodes:
        for source in dict.fromkeys([*node.sources(), *waits.get(node, ())]):
            if source in place and source.type not in NEXT_ITERATIONS:
                followers.setdefault(source, []).append(node)
                missing[node] += 1
    ready = [place[node] for node in nodes if not missing[node]]
    order: list[PlanNode] = []
    while ready:
        node = nodes[heappop(ready)]
        order.append(node)
        for follower in followers.get(node, ()):
            missing[follower] -= 1
            if not missing[follower]:
                heappush(ready, place[follower])
    return order
