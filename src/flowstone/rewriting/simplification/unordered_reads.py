"""Reads of variables that no edge orders after a change of them stand before it.

    u = AssignSub(w, g)
    y = MatMul(x, w)        # created later, but nothing makes it wait for u

TensorFlow runs what is ready. What reads a variable mostly is when a step begins, and what changes it rarely
is: an accuracy that a program adds behind `minimize`, a summary, or a learning rate by a step that is
counted, are of the values before the change. So `put_reads_first` has the change wait, in the order of the
nodes alone: no edge is added. What is created before the change stands before it anyway.

A change does not wait for what may never come without it: for readers that need its result, and for those
that wait for a queue or another device for which the change does not wait.
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
    if not later:
        return
    waits = _unordered(subgraph, later)
    if not waits:
        return
    subgraph.nodes = _arranged(subgraph.nodes, waits)
    for i, node in enumerate(subgraph.nodes):
        node.order = i


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
        for change in changes:
            behind = [node for node in takers if place[node] > place[change] and node not in changes]
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
    """Of these readers those that neither need the change nor wait for what it does not wait for."""
    numbers = {change: i for i, change in enumerate(later)}
    needed: dict[PlanNode, int] = {}  # the changes that a node's sources need or are, each a bit
    waited: dict[PlanNode, int] = {}  # the asynchronous nodes among these
    count = 0
    after: dict[PlanNode, tuple[int, int]] = {}  # the same with the node itself
    for node in subgraph.nodes:
        changes = waits = 0
        for source in node.sources():
            if source in after:  # all but what comes from the iteration before
                changes |= after[source][0]
                waits |= after[source][1]
        needed[node], waited[node] = changes, waits
        if node in numbers:
            changes |= 1 << numbers[node]
        if node.declaration.asynchronous:
            waits |= 1 << count
            count += 1
        after[node] = changes, waits
    found: dict[PlanNode, list[PlanNode]] = {}
    for change, readers in later.items():
        for node in readers:
            if not needed[node] >> numbers[change] & 1 and not waited[node] & ~waited[change]:
                found.setdefault(change, []).append(node)
    return found


def _arranged(nodes: list[PlanNode], waits: dict[PlanNode, list[PlanNode]]) -> list[PlanNode]:
    """The nodes in an order of their edges, the earliest that is ready first, but changes behind what they
    wait for. Where changes wait for each other, the earliest of them goes first."""
    place = {node: i for i, node in enumerate(nodes)}
    missing, followers = dict.fromkeys(nodes, 0), dict[PlanNode, list[PlanNode]]()
    held, holds = dict.fromkeys(waits, 0), dict[PlanNode, list[PlanNode]]()
    for node in nodes:
        for source in dict.fromkeys(node.sources()):
            if source in place and source.type not in NEXT_ITERATIONS:
                followers.setdefault(source, []).append(node)
                missing[node] += 1
        for reader in dict.fromkeys(waits.get(node, ())):
            holds.setdefault(reader, []).append(node)
            held[node] += 1
    ready = [place[node] for node in nodes if not missing[node] and not held.get(node)]
    waiting: list[int] = []  # places of changes that nothing but a reader holds back
    order: list[PlanNode] = []
    while ready or waiting:
        node = nodes[heappop(ready or waiting)]
        if held.get(node) == -1:  # which a reader let go meanwhile
            continue
        if node in held:
            held[node] = -1
        order.append(node)
        for follower in followers.get(node, ()):
            missing[follower] -= 1
            if not missing[follower]:
                heappush(waiting if held.get(follower, 0) > 0 else ready, place[follower])
        for change in holds.get(node, ()):
            if held[change] > 0:
                held[change] -= 1
                if not held[change] and not missing[change]:
                    heappush(ready, place[change])
    return order
