"""Frames: which loop each node of a subgraph belongs to (white paper 4.4), and an order in which loops are
blocks.

A loop is what lies between its Enter and its Exit nodes. Its *head* are the Merges of a first value (Enter)
with a later one (NextIteration); LoopCond decides in each iteration whether the *body*, all that hangs on the
true outputs of the Switches it controls, runs again. `Frames` finds the frames by following the edges;
`order_by_frames` arranges the nodes of every loop as

    Enter …, Merge …, what the predicate needs, LoopCond, Switch …, body, NextIteration …, Exit …

with nested loops as such blocks in turn. Edges from NextIteration to Merge lead back, all others forwards.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence

from flowstone.framework import errors
from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph

ENTERS = registry.with_role("enter")
EXITS = registry.with_role("exit")
NEXT_ITERATIONS = registry.with_role("next_iteration")
LOOP_TYPES = registry.with_role("enter", "exit", "next_iteration", "loop_condition")
_BORDERS = ENTERS | EXITS
_MERGES = registry.with_role("merge")
_SWITCHES = registry.with_role("switch")


class Frame:
    """One loop: its `name`, the `parent` frame (None: outside all loops) and how deep it lies."""

    __slots__ = ("depth", "name", "parent")

    def __init__(self, name: str, parent: Frame | None) -> None:
        self.name, self.parent = name, parent
        self.depth: int = 1 if parent is None else parent.depth + 1

    def __repr__(self) -> str:
        return f"<Frame {self.name}>"


class Frames:
    """The frame of every node of a subgraph; an Exit belongs to the frame that it leads to."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.of: dict[PlanNode, Frame | None] = {}
        self._by_name: dict[str, Frame] = {}
        self.exist = any([node.type in ENTERS for node in subgraph.nodes])
        if self.exist:
            for node in subgraph.nodes:
                self.of[node] = self.frame_of(node)
            for node in subgraph.nodes:
                if node.type in _MERGES and is_head(node):  # what goes round may have been computed outside
                    self.of.update({x.op: self.of[node] for x in node.inputs if x.op.type in NEXT_ITERATIONS})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frames) and self._paths() == other._paths()

    def _paths(self) -> dict[PlanNode, list[str]]:
        """The names of the frames that each node is in, from the innermost."""
        paths: dict[PlanNode, list[str]] = {}
        for node, frame in self.of.items():
            paths[node] = []
            while frame is not None:
                paths[node].append(frame.name)
                frame = frame.parent
        return paths

    def copy(self) -> Frames:
        """The same, for someone who adds nodes to them."""
        copy = Frames.__new__(Frames)
        copy.of, copy._by_name, copy.exist = dict(self.of), dict(self._by_name), self.exist
        return copy

    def stay(self, gone: Collection[PlanNode]) -> bool:
        """Whether nodes that are left when these go are in the same frames as before."""
        for node in gone if self.exist else ():
            if node.type in ENTERS:
                frame = self.of[node]
                if frame is not None and frame.parent is not None:  # it may have shown that frame
                    return False
            elif node.type in _MERGES and is_head(node):
                if any([x.op.type in NEXT_ITERATIONS and x.op not in gone for x in node.inputs]):
                    return False
        return True

    def without(self, gone: Collection[PlanNode]) -> Frames | None:
        """What is left when nodes that no other takes go; None if it must be found anew."""
        if not self.stay(gone):
            return None
        rest = self.copy()
        rest.of = {node: frame for node, frame in self.of.items() if node not in gone}
        rest.exist = any([node.type in ENTERS for node in rest.of])
        if not rest.exist:
            rest.of, rest._by_name = {}, {}
        return rest

    def frame_of(self, node: PlanNode) -> Frame | None:
        """The frame of a node whose sources are known."""
        of = self.of
        deepest: Frame | None = None
        for x in node.inputs:
            frame = of.get(x.op)
            if frame is not deepest and frame and (deepest is None or frame.depth > deepest.depth):
                deepest = frame
        for source in node.control_inputs:
            frame = of.get(source)
            if frame is not deepest and frame and (deepest is None or frame.depth > deepest.depth):
                deepest = frame
        if node.type not in _BORDERS:
            return deepest
        if node.type in EXITS:
            if deepest is None:
                raise errors.InvalidArgumentError(None, None, f"{node.name} leaves a loop that it is not in")
            return deepest.parent
        name = node.attributes["frame_name"]
        found = self._by_name.get(name)
        if found is None:
            found = self._by_name[name] = Frame(name, deepest)
        elif deepest is not None and found.depth <= deepest.depth:
            found.parent, found.depth = deepest, deepest.depth + 1
        return found

    def home(self, node: PlanNode) -> Frame | None:
        """The frame whose block the node stands in: for an Exit the one that it leaves."""
        if node.type in EXITS:
            return self.of[node.inputs[0].op]
        return self.of.get(node)


def is_head(node: PlanNode) -> bool:
    """Whether this Merge begins a loop's iterations."""
    return node.type in _MERGES and any(x.op.type in NEXT_ITERATIONS for x in node.inputs)


def is_loop_switch(node: PlanNode) -> bool:
    """Whether this Switch asks a loop's predicate."""
    return node.type in _SWITCHES and node.inputs[1].op.declaration.role == "loop_condition"


def order_by_edges(nodes: Sequence[PlanNode]) -> list[PlanNode]:
    """The nodes, each after what it takes, but for what comes from a loop's iteration before."""
    done: dict[PlanNode, None] = {}
    for node in nodes:
        stack = [node]
        while stack:
            top = stack[-1]
            waiting = [x for x in top.sources() if x not in done and x.type not in NEXT_ITERATIONS]
            if waiting:
                stack += reversed(waiting)
            else:
                done.setdefault(stack.pop())
    return list(done)


def order_by_frames(subgraph: Subgraph) -> Frames:
    """Arranges `subgraph.nodes` so that loops are blocks, otherwise in creation order; returns the frames.

    InvalidArgumentError if the nodes outside a loop need one of its results for another of its inputs.
    """
    frames = subgraph.analysis(Frames)
    if frames.exist:
        arranged = _arranged(subgraph.nodes, frames)
        if arranged != subgraph.nodes:
            subgraph.nodes = arranged
    return frames


def _arranged(nodes: list[PlanNode], frames: Frames) -> list[PlanNode]:
    members: dict[Frame | None, list[PlanNode]] = {}
    children: dict[Frame | None, list[Frame]] = {}
    for node in nodes:
        home = frames.home(node)
        if home not in members:
            members[home] = []
            chain = home
            while chain is not None and chain not in children.setdefault(chain.parent, []):
                children[chain.parent].append(chain)
                chain = chain.parent
        members[home].append(node)
    return _Region(None, members, children, frames).arranged()


class _Region:
    """One frame's nodes, with the frames directly inside it as single items."""

    def __init__(
        self,
        frame: Frame | None,
        members: dict[Frame | None, list[PlanNode]],
        children: dict[Frame | None, list[Frame]],
        frames: Frames,
    ) -> None:
        self.frames, self.frame = frames, frame
        self.inside = [_Region(child, members, children, frames) for child in children.get(frame, ())]
        self.item_of: dict[PlanNode, PlanNode | _Region] = {node: node for node in members.get(frame, ())}
        for region in self.inside:
            for node in region.item_of:
                self.item_of[node] = region
        self.nodes = members.get(frame, [])
        self.order = min(node.order for node in self.item_of)

    def arranged(self) -> list[PlanNode]:
        """The nodes of this frame and of those inside it."""
        first = [node for node in self.nodes if node.type in ENTERS] + [n for n in self.nodes if is_head(n)]
        last = [n for n in self.nodes if n.type in NEXT_ITERATIONS] + [
            n for n in self.nodes if n.type in EXITS
        ]
        fixed = set(first if self.frame else ()) | set(last if self.frame else ())
        items: list[PlanNode | _Region] = [node for node in self.nodes if node not in fixed]
        items += self.inside
        middle = self._sorted(items)
        if self.frame is None:
            return middle
        return first + middle + last

    def _sorted(self, items: list[PlanNode | _Region]) -> list[PlanNode]:
        """What does not hang on the predicate first, then the body; ties go to creation order."""
        known = set(items)
        waiting: dict[PlanNode | _Region, int] = {}
        dependants: dict[PlanNode | _Region, list[PlanNode | _Region]] = {}
        for item in items:
            sources = {self.item_of.get(source) for source in _sources(item)} & known
            sources.discard(item)
            waiting[item] = len(sources)
            for source in sources:
                dependants.setdefault(source, []).append(item)  # type: ignore[arg-type]
        in_body = self._body(items, dependants)
        ready = [(item in in_body, item.order, i, item) for i, item in enumerate(items) if not waiting[item]]
        heapq.heapify(ready)
        result: list[PlanNode] = []
        count = len(items)
        while ready:
            item = heapq.heappop(ready)[3]
            result += item.arranged() if isinstance(item, _Region) else [item]
            for dependant in dependants.get(item, ()):
                waiting[dependant] -= 1
                if not waiting[dependant]:
                    count += 1
                    heapq.heappush(ready, (dependant in in_body, dependant.order, count, dependant))
        if any(waiting.values()):
            stuck = [n for n, left in waiting.items() if left]
            names = ", ".join(
                x.frame.name if isinstance(x, _Region) and x.frame else str(x) for x in stuck[:5]
            )
            raise errors.InvalidArgumentError(None, None, f"The graph contains a cycle through: {names}")
        return result

    @staticmethod
    def _body(
        items: list[PlanNode | _Region], dependants: dict[PlanNode | _Region, list[PlanNode | _Region]]
    ) -> set[PlanNode | _Region]:
        body: set[PlanNode | _Region] = set()
        stack: list[PlanNode | _Region] = [
            item for item in items if isinstance(item, PlanNode) and is_loop_switch(item)
        ]
        while stack:
            item = stack.pop()
            if item not in body:
                body.add(item)
                stack += dependants.get(item, ())
        return body


def _sources(item: PlanNode | _Region) -> Iterable[PlanNode]:
    if isinstance(item, _Region):
        for node in item.item_of:
            yield from _sources(node)
        return
    for x in item.inputs:
        if x.op.type not in NEXT_ITERATIONS:
            yield x.op
    yield from item.control_inputs
