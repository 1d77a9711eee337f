"""Versions of state: which values of a variable, queue or other state each node of a subgraph sees.

A state has a new *version* after each node that changes it, in the order of the subgraph's nodes (data and
control edges; for ties reads of variables before their changes, then creation order). A node *reads* the
version that is current where it stands. A rewrite may put a node somewhere else, or have another node do its
work, as long as the versions that are read stay the same.

What reads a state is everything that takes

- its *reference*: the output of a reference variable and what hands it on (`Identity`, `Reshape`, … :
  all ops that ``aliases`` it, but no `snapshot`). As in TensorFlow 1, each node that takes it
  sees the buffer as it is when that node runs, and a fetch sees it as it is at the end of the step; or
- its *handle*, as `ReadVariableOp` and the size of a queue do: their results are values of their own.

Stacks and arrays of tensors, which live in one step, are left out: their order is that of the values that
flow through them (`stored_values.py`).

In a loop that changes the state, an iteration sees what the one before left: nodes inside such a loop never
read the same version as nodes outside.

    w = VariableV2()            # a reference
    y = MatMul(x, w)            # reads version 0 of w
    a = Assign(w, v) ^y         # makes version 1
    z = Add(y, b) ^a            # may not be fused with y: here w has version 1
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.frames import Frame, Frames
from flowstone.rewriting.analyses.state_access import UNKNOWN, input_positions, state_name
from flowstone.rewriting.analyses.stored_values import is_step_storage

_NONE: frozenset[Any] = frozenset()


def hands_on(node: PlanNode) -> bool:
    """Whether an output of the node stands for the reference or handle that it takes."""
    declaration = node.declaration
    if not declaration.aliases:
        return False
    if not declaration.snapshot:
        return True
    if declaration.fold_function is None or node.inputs[0].dtype.name == "resource":
        return False
    return any(declaration.fold_function(node) is node.inputs[i] for i in declaration.aliases)


class References:
    """Which states an output is a reference or handle of; none for values. Outputs are looked at when asked
    for, and remembered.

    `memory`: values that may share the memory of a state count, too.
    """

    def __init__(self, memory: bool = False) -> None:
        self._memory = memory
        self._of: dict[PlanOutput, frozenset[Any]] = {}

    def know(self, x: PlanOutput, states: Iterable[Any]) -> None:
        """Says of which states `x` is a reference."""
        self._of[x] = frozenset(states)

    def __getitem__(self, x: PlanOutput) -> frozenset[Any]:
        found = self._of.get(x)
        if found is not None:
            return found
        node: PlanNode = x.op
        if not node.declaration.aliases:
            if not _is_handle(x):
                return _NONE
            if not node.inputs:  # a state itself
                self._of[x] = states = _NONE if is_step_storage(node) else frozenset([_made_by(node)])
                return states
        return self._find(x)

    def _find(self, x: PlanOutput) -> frozenset[Any]:
        """Goes back to where the reference comes from; round a loop, too."""
        found: set[Any] = set()
        waiting, seen = [x], {x}
        while waiting:
            top = waiting.pop()
            known = self._of.get(top)
            if known is not None:
                found |= known
                continue
            node: PlanNode = top.op
            if node.declaration.aliases and (self._memory or hands_on(node)):
                taken = [node.inputs[i] for i in input_positions(node, node.declaration.aliases)]
            elif not _is_handle(top) or is_step_storage(node):
                continue
            else:  # a state, or what belongs to one
                taken = [y for y in node.inputs if _is_handle(y)]
                if not taken:
                    found.add(_made_by(node))
            waiting += [y for y in taken if y not in seen]
            seen.update(taken)
        self._of[x] = states = frozenset(found) if found else _NONE
        return states


def _made_by(node: PlanNode) -> Any:
    return ("step", node.name) if node.inputs else state_name(node)


def _is_handle(x: PlanOutput) -> bool:
    return x.dtype.is_ref or x.dtype is dtypes.resource


def changed_by(node: PlanNode, references: References) -> frozenset[Any]:
    """The states that the node makes new versions of."""
    declaration = node.declaration
    if declaration.is_pure or declaration.reads or not node.inputs:
        return _NONE
    if declaration.mutates:
        positions: Iterable[int] = input_positions(node, declaration.mutates)
    elif hands_on(node):
        return _NONE
    else:  # it does something, perhaps to all it takes a handle of; of other references it takes the value
        positions = [
            i
            for i, x in enumerate(node.inputs)
            if _is_handle(x) and (not x.dtype.is_ref or node.input_argument(i).is_ref)
        ]
    return frozenset().union(*[references[node.inputs[i]] for i in positions])


class StateVersions:
    """The versions of states at the places of a subgraph's nodes.

    Nodes that a rewrite adds are made known by `add`, with the node in whose place they stand.
    """

    def __init__(self, subgraph: Subgraph, references: References | None = None) -> None:
        self.references = references or References()
        self.sharing = References(memory=True)
        self.place = {node: i for i, node in enumerate(subgraph.nodes)}
        self.changes: dict[Any, list[int]] = {}  # places of what changes each state, in order
        self._subgraph, self._nodes, self._added = subgraph, subgraph.nodes, list[PlanNode]()
        self._frames: Frames | None = None  # made when first asked for
        self._loops_that_change: dict[Any, set[Frame]] = {}
        for i, node in enumerate(subgraph.nodes):
            if not node.declaration.is_pure:
                for state in changed_by(node, self.references):
                    self.changes.setdefault(state, []).append(i)

    def _note_loops(self) -> Frames:
        if self._nodes is self._subgraph.nodes and not self._added:
            frames = self._subgraph.analysis(Frames).copy()
        else:  # old nodes may take the outputs of added ones by now
            nodes = sorted([*self._added, *self._nodes], key=self.place.__getitem__)
            frames = Frames(Subgraph(nodes, [], [], []))
        self._frames = frames
        for state, places in self.changes.items() if frames.exist else ():
            loops = self._loops_that_change.setdefault(state, set())
            for place in places:
                frame = frames.home(self._nodes[place])
                while frame is not None:
                    loops.add(frame)
                    frame = frame.parent
        return frames

    def add(self, new: PlanNode, at: PlanNode) -> None:
        """Makes a node known that stands in the place of another."""
        if new not in self.place:
            if self._frames is None:
                self._added.append(new)
            elif self._frames.exist:
                self._frames.of[new] = self._frames.frame_of(new)
        self.place[new] = self.place[at]

    def current(self, state: Any, node: PlanNode) -> Any:
        """The version of the state at the node's place; equal versions compare equal."""
        if state == UNKNOWN or UNKNOWN in self.changes:  # it may be any
            count = sum([bisect_left(places, self.place[node]) for places in self.changes.values()])
        else:
            count = bisect_left(self.changes.get(state, ()), self.place[node])
        frames = self._frames or self._note_loops()
        if not frames.exist:
            return count, None
        loops = self._loops_that_change.get(state, ()) or self._loops_that_change.get(UNKNOWN, ())
        frame = frames.home(node) if loops else None
        while frame is not None and frame not in loops:
            frame = frame.parent
        return count, frame and frame.name

    def final(self, state: Any) -> Any:
        """The version of the state at the end of the step."""
        everything = state == UNKNOWN or UNKNOWN in self.changes
        places = self.changes.values() if everything else [self.changes.get(state, [])]
        return sum([len(each) for each in places]), None

    def is_changed(self, state: Any) -> bool:
        """Whether anything in the subgraph changes the state."""
        return bool(self.changes) and (state in self.changes or state == UNKNOWN or UNKNOWN in self.changes)

    def read_by(self, node: PlanNode) -> frozenset[Any]:
        """Pairs of a state that the node reads and its version; only of states that something changes."""
        return self._read(self.references, node)

    def in_memory_for(self, node: PlanNode) -> frozenset[Any]:
        """The same of states whose memory the inputs may share: the node can stand elsewhere only with copies
        of them."""
        return self._read(self.sharing, node)

    def _read(self, references: References, node: PlanNode) -> frozenset[Any]:
        if not self.changes:
            return _NONE
        states: set[Any] = set()
        for x in taken_by(node):
            if found := references[x]:
                states.update([state for state in found if self.is_changed(state)])
        return frozenset([(state, self.current(state, node)) for state in states]) if states else _NONE


def taken_by(node: PlanNode) -> list[PlanOutput]:
    """The inputs that the node looks at: all but those that it only hands on."""
    if not hands_on(node):
        return node.inputs
    handed_on = input_positions(node, node.declaration.aliases - node.declaration.mutates)
    return [x for i, x in enumerate(node.inputs) if i not in handed_on]
