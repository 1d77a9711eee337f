"""Aliasing: finds the memory that each value is in, to decide what generated code may overwrite and must
copy.

Every value has *roots*: the buffers it may share memory with. A kernel's result is its own root; an output
that an op declares in ``aliases`` has the roots of the inputs named there; a feed, a constant and a
variable's buffer are roots that the step does not own. Roots and last uses decide the following, all here and
at plan time:

- a node may overwrite an input's buffer if the step owns it and nothing that shares it is used later;
- a read of state is copied if something that shares it is used after a later node changes that state (a
  *resource* variable's read, or a slice of a *reference*, gives the value at the time of the read; a
  reference that is only passed on stays one, as in TensorFlow 1: `state_versions.py`);
- a node that updates a state from a view of the same state gets a copy of the view;
- a fetch is copied if it shares memory with a feed, a constant, state or another fetch, or is one of these;
- an input that an asynchronous op keeps is copied if it shares memory with a feed or state; a Send to another
  task copies it in any case.

A value that comes into a loop from outside or from an earlier iteration is never overwritten in the loop, and
lives until the loop ends. A value that an op *keeps* (in a stack, an array, a queue) is never overwritten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types.shape import num_elements
from flowstone.partition.send_receive import SENDS, crosses_tasks
from flowstone.rewriting.analyses.frames import ENTERS, NEXT_ITERATIONS, Frame, Frames, is_head
from flowstone.rewriting.analyses.state_access import input_positions
from flowstone.rewriting.analyses.state_versions import References, hands_on

FOREVER = 1 << 60


class Foreign:
    """A root that the step does not own: `kind` is feed, constant, state, overlap or loop; `owner` is the
    state, if known.
    """

    __slots__ = ("kind", "owner")

    def __init__(self, kind: str, owner: Any = None) -> None:
        self.kind, self.owner = kind, owner


class Aliasing:
    """Roots and last uses of the values of a subgraph whose `nodes` are in the order they will run.

    `constants`: outputs that are the same object in every step (constants, variables, resources), by output.
    `shown`: for each feed, the states whose memory it may share. `changed_elsewhere`: states that other
    functions of the step may change meanwhile. `in_pieces`: nodes run in any order that their edges allow,
    and edges may lead through other devices. `spans`: for each loop, the positions of its first and last
    node.
    """

    def __init__(
        self,
        subgraph: Subgraph,
        constants: dict[PlanOutput, Any],
        frames: Frames | None = None,
        shown: Mapping[PlanOutput, Collection[Any]] = MappingProxyType({}),
        changed_elsewhere: Collection[Any] = (),
        in_pieces: bool = False,
    ) -> None:
        self.position = {node: i for i, node in enumerate(subgraph.nodes)}
        self.last_use: dict[PlanOutput, int] = {}
        self.roots: dict[PlanOutput, frozenset[Any]] = {}
        self.root_last_use: dict[Any, int] = {}
        self._foreign: dict[Any, Foreign] = {}
        self._changes: dict[Any, list[int]] = {}
        self._constants = constants
        self._frames = frames = frames or subgraph.analysis(Frames)
        self._references, self._shown = References(), shown
        self._nodes, self._in_pieces = subgraph.nodes, in_pieces
        self._before: dict[PlanNode, set[PlanNode]] = {}  # the nodes that edges order before a node
        self._changed_elsewhere = {id(owner) for owner in changed_elsewhere}
        for feed, owners in shown.items():
            if owners:
                self._references.know(feed, owners)
        self.spans = _spans(subgraph, frames)
        for i, node in enumerate(subgraph.nodes):
            for x in node.inputs:
                if x.op.type not in NEXT_ITERATIONS:
                    self.last_use[x] = i
        for x in subgraph.fetches:
            self.last_use[x] = FOREVER
        if frames.exist:
            for node in subgraph.nodes:
                if node.type in ENTERS:
                    self.last_use[node.outputs[0]] = self.spans[frames.of[node]][1]  # type: ignore[index]
        for i, node in enumerate(subgraph.nodes):
            self._visit(node, i)
        self._sharers: dict[Any, list[PlanOutput]] = {}
        for output, roots in self.roots.items():
            for root in roots:
                if type(root) is Foreign and (root in self._changes or self._changes_elsewhere(root)):
                    self._sharers.setdefault(root, []).append(output)
            used = self.last_use.get(output, self.position[output.op])
            for root in roots:
                if used > self.root_last_use.get(root, -1):
                    self.root_last_use[root] = used
        self._kept: set[PlanOutput] = set()
        self._kept_roots: set[Any] = set()
        for node in subgraph.nodes:
            for index in input_positions(node, node.declaration.keeps) if node.declaration.keeps else ():
                self._kept.add(node.inputs[index])
                self._kept_roots |= self.roots[node.inputs[index]]
        for root in self._kept_roots:
            self.root_last_use[root] = FOREVER

    def _state(self, owner: Any) -> Foreign:
        found = self._foreign.get(id(owner))
        if found is None:
            found = self._foreign[id(owner)] = Foreign("state", owner)
        return found

    def _visit(self, node: PlanNode, i: int) -> None:
        declaration = node.declaration
        for index in input_positions(node, declaration.mutates):
            for root in self.roots[node.inputs[index]]:
                self._changes.setdefault(root, []).append(i)
        roots: frozenset[PlanOutput | Foreign]
        for output in node.outputs:
            if node.is_feed:
                owners = self._shown.get(output, ())
                roots = frozenset([Foreign("feed"), *[self._state(owner) for owner in owners]])
            elif output in self._constants:
                owner = self._constants[output]
                is_state = output.dtype.is_ref or output.dtype.torch is None
                roots = frozenset([self._state(owner) if is_state else Foreign("constant")])
            elif node.type in ENTERS or is_head(node):
                roots = self.roots[node.inputs[0]] | {Foreign("loop")}
            elif declaration.aliases or declaration.overlapping:
                roots = frozenset[PlanOutput | Foreign]().union(
                    *(self.roots[node.inputs[j]] for j in input_positions(node, declaration.aliases))
                )
                if declaration.overlapping:
                    roots |= {Foreign("overlap")}
            elif output.dtype.torch is None or output.dtype.is_ref:  # a handle made in the step
                roots = frozenset([self._state(output)])
            else:
                roots = frozenset([output])
            self.roots[output] = roots

    def may_overwrite(self, node: PlanNode, index: int) -> bool:
        """Whether `node` may leave its result in the buffer of its input `index`."""
        x = node.inputs[index]
        if node.inputs.count(x) > 1:
            return False
        if any(y is not x and self.roots[x] & self.roots[y] for y in node.inputs):
            return False  # another input is a view of it, perhaps with other strides
        here, size = self.position[node], num_elements(x.dims) or 0
        for root in self.roots[x]:
            if type(root) is not PlanOutput or self.root_last_use[root] > here:
                return False
            if (num_elements(root.dims) or 0) > size:  # the result would keep the whole buffer alive
                return False
        return True

    def must_copy_read(self, node: PlanNode) -> bool:
        """Whether the outputs of `node`, which share memory with state, must be copied: one is used after a
        change.
        """
        if hands_on(node) or not any(self._references[x] for x in node.inputs):
            return False
        return any(self._outlives_change(node, x) or self._is_kept_past_change(x) for x in node.outputs)

    def _changes_elsewhere(self, root: Foreign) -> bool:
        return bool(self._changed_elsewhere) and id(root.owner) in self._changed_elsewhere

    def _is_kept_past_change(self, output: PlanOutput) -> bool:
        """Whether an op keeps the output, or a value that shares its memory, and another function changes
        that memory."""
        return any(
            type(root) is Foreign
            and self._changes_elsewhere(root)
            and self._last_use_of_sharers(output, root) == FOREVER
            and any(x in self._kept for x in self._sharers[root])
            for root in self.roots[output]
        )

    def changed_states(self) -> list[Any]:
        """The states that nodes change, without those that end with the step."""
        return [root.owner for root in self._changes if type(root) is Foreign and root.kind == "state"]

    def states_shown(self, x: PlanOutput) -> list[Any]:
        """The states whose memory `x` may share, without those that end with the step.

        Strings that are constant are no state; they are arrays of NumPy.
        """
        found = [r.owner for r in self.roots[x] if type(r) is Foreign and r.kind == "state"]
        return [owner for owner in found if type(owner) not in (PlanOutput, np.ndarray)]

    def outlives_change(self, x: PlanOutput) -> bool:
        """Whether `x`, a value, shares memory with state that changes before or in its last use."""
        return not self._references[x] and self._outlives_change(x.op, x, until_used=1)

    def copied_operands(self, node: PlanNode) -> list[int]:
        """The inputs that share memory with a state that the node changes while it reads them."""
        changed = set(input_positions(node, node.declaration.mutates))
        roots = frozenset().union(*[self.roots[node.inputs[i]] for i in changed])
        return [
            i for i, x in enumerate(node.inputs) if i not in changed and not roots.isdisjoint(self.roots[x])
        ]

    def _outlives_change(self, node: PlanNode, output: PlanOutput, until_used: int = 0) -> bool:
        if output.dtype.is_ref or output.dtype.torch is None:
            return False
        here = self.position[node]
        for root in self.roots[output]:
            if type(root) is Foreign:
                if self._in_pieces:
                    if self._may_change_before_use(node, output, root, bool(until_used)):
                        return True
                else:
                    changes = [change for change in self._changes.get(root, ()) if change > here]
                    if changes and changes[0] < self._last_use_of_sharers(output, root) + until_used:
                        return True
                if self.spans and self._changes_in_its_loop(node, root):
                    return True
        return False

    def _may_change_before_use(
        self, node: PlanNode, output: PlanOutput, root: Foreign, until_used: bool
    ) -> bool:
        """Whether a change may run between the node and a use of a value that shares its memory: no edges
        prevent it."""
        mine = self.roots[output]
        changes = [self._nodes[place] for place in self._changes.get(root, ())]
        changes = [each for each in changes if each is not node and each not in self._come_before(node)]
        if not changes:
            return False
        sharers = {x for x in self._sharers[root] if x is output or self.roots[x] >= mine}
        if any(x in self._kept or self.last_use.get(x) == FOREVER for x in sharers):
            return True
        consumers = [each for each in self._nodes if not sharers.isdisjoint(each.inputs)]
        return any(
            until_used if consumer is change else consumer not in self._come_before(change)
            for change in changes
            for consumer in consumers
        )

    def _come_before(self, node: PlanNode) -> set[PlanNode]:
        """The nodes that edges order before this one."""
        found = self._before.get(node)
        if found is None:
            found = self._before[node] = set()
            stack = [node]
            while stack:
                top = stack.pop()
                for source in top.sources():
                    if source not in found:
                        found.add(source)
                        stack.append(source)
        return found

    def _changes_in_its_loop(self, node: PlanNode, root: Foreign) -> bool:
        """Whether another iteration may change the state that this one has read."""
        frame = self._frames.of[node]
        while frame is not None:
            start, end = self.spans[frame]
            if any(start <= change <= end for change in self._changes.get(root, ())):
                return True
            frame = frame.parent
        return False

    def _last_use_of_sharers(self, output: PlanOutput, root: Foreign) -> int:
        """The position of the last use of the output, or of a value made from it that shares this state."""
        here, mine = self.position[output.op], self.roots[output]
        until = FOREVER if output in self._kept else self.last_use.get(output, -1)
        for other in self._sharers[root]:
            if self.position[other.op] > here and self.roots[other] >= mine:
                until = FOREVER if other in self._kept else max(until, self.last_use.get(other, -1))
        return until

    def must_copy_kept(self, node: PlanNode, i: int) -> bool:
        """Whether the op keeps its input `i` as it is, and its memory may change after the step."""
        keeps = node.declaration.keeps
        if not keeps or node.declaration.inputs.index(node.input_argument(i)) not in keeps:
            return False
        if node.declaration.role in SENDS and crosses_tasks(node):
            return False
        return any(
            type(root) is Foreign and root.kind in ("feed", "state") for root in self.roots[node.inputs[i]]
        )

    def copied_fetches(self, fetches: list[PlanOutput]) -> list[bool]:
        """Of each fetch whether it must be copied before the user gets it."""
        sharers = Counter(root for x in dict.fromkeys(fetches) for root in self.roots[x])
        seen: set[PlanOutput] = set()
        found = []
        for x in fetches:
            roots = self.roots[x]
            found.append(
                bool(roots and x in seen)
                or any(type(root) is Foreign or root in self._kept_roots for root in roots)
                or any(sharers[root] > 1 for root in roots)
            )
            seen.add(x)
        return found


def _spans(subgraph: Subgraph, frames: Frames) -> dict[Frame, tuple[int, int]]:
    spans: dict[Frame, tuple[int, int]] = {}
    if frames.exist:
        for i, node in enumerate(subgraph.nodes):
            frame = frames.of[node]
            while frame is not None:
                spans[frame] = (spans.get(frame, (i, i))[0], i)
                frame = frame.parent
    return spans
