"""Checks that generated code overwrites nothing that is still read (``FLOWSTONE_CHECK=1``).

The check walks through the step node by node, through loops twice. Each buffer counts how often it has been
written to, and a value remembers the counts of the buffers that it lies in. When a value is read, the counts
must still be the same; a reference may be read at any count. The check knows only what ops declare
(``aliases``, ``mutates``, ``keeps``) and what the code does (operands overwritten, results copied). It does
not use the last uses and roots by which `aliasing.py` decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.frames import ENTERS, NEXT_ITERATIONS, Frame, Frames, is_head
from flowstone.rewriting.analyses.state_access import input_positions
from flowstone.rewriting.analyses.state_versions import References


class Decisions(NamedTuple):
    """What the code does with memory: the input that a node overwrites; the nodes whose results are copied;
    the inputs that are copied for a node; the nodes that never run and have no code."""

    overwritten: dict[PlanNode, int]
    copied: set[PlanNode]
    copied_inputs: dict[PlanNode, list[int]]
    without_code: set[PlanNode]


class _Buffer:
    """Memory, `writes` times written to, last by `writer`; `is_ours`: made in this step, and not shared."""

    __slots__ = ("is_ours", "writer", "writes")

    def __init__(self, is_ours: bool) -> None:
        self.writes, self.writer, self.is_ours = 0, "", is_ours


# The buffers of a value, with their counts of writes; None for references.
_Places = list[tuple[_Buffer, "int | None"]]


class MemoryCheck:
    """The check of one segment. `spans`, `constants` and `shown` are those of `aliasing.py`."""

    def __init__(
        self,
        subgraph: Subgraph,
        frames: Frames,
        spans: Mapping[Frame, tuple[int, int]],
        constants: Mapping[PlanOutput, Any],
        shown: Mapping[PlanOutput, Collection[Any]],
        decisions: Decisions,
    ) -> None:
        self.subgraph, self.frames, self.spans, self.decisions = subgraph, frames, spans, decisions
        self.constants, self.shown = constants, shown
        self.references = References()
        for feed, owners in shown.items():
            if owners:
                self.references.know(feed, owners)
        self.states: dict[int, _Buffer] = {}
        self.places: dict[PlanOutput, _Places] = {}
        self.kept: list[tuple[PlanNode, PlanOutput]] = []

    def run(self) -> None:
        """Raises AssertionError if a node, a fetch or what is kept has been overwritten."""
        self._run(0, len(self.subgraph.nodes), None)
        for x in self.subgraph.fetches:
            self._read(x, "a fetch")
        for node, x in self.kept:
            self._read(x, f"what {node.name} keeps")

    def _run(self, first: int, end: int, frame: Frame | None) -> None:
        nodes, at = self.subgraph.nodes, first
        while at < end:
            inner = self._loop_from(nodes[at], frame)
            if inner is None:
                self._visit(nodes[at], is_again=False)
                at += 1
                continue
            last = self.spans[inner][1] + 1
            self._run(at, last, inner)
            for node in nodes[at:last]:
                if is_head(node) and self.frames.of[node] is inner:
                    self._visit(node, is_again=True)
            self._run_again(at, last, inner)
            at = last

    def _run_again(self, first: int, end: int, frame: Frame) -> None:
        """Walks through an iteration whose loop variables are known."""
        for node in self.subgraph.nodes[first:end]:
            begins = self.frames.of[node] is frame and (is_head(node) or node.type in ENTERS)
            if self._is_inside(node, frame) and not begins:
                self._visit(node, is_again=False)

    def _is_inside(self, node: PlanNode, frame: Frame) -> bool:
        found = self.frames.of[node]
        while found is not None and found is not frame:
            found = found.parent
        return found is frame

    def _loop_from(self, node: PlanNode, frame: Frame | None) -> Frame | None:
        """The loop directly inside `frame` that the node belongs to, if any."""
        found = self.frames.of[node] if self.frames.exist else None
        if found is frame:
            return None
        while found is not None and found.parent is not frame:
            found = found.parent
        return found

    def _visit(self, node: PlanNode, is_again: bool) -> None:
        if node in self.decisions.without_code:
            self.places.update((x, []) for x in node.outputs)
            return
        if is_head(node):
            source = node.inputs[1 if is_again else 0]
            places = self.places.get(source) or self.places[node.inputs[0]]
            self._hand_on(node, places)
            return
        copied = self.decisions.copied_inputs.get(node, [])
        for x in node.inputs:
            self._read(x, node.name)
        if node.type in NEXT_ITERATIONS or node.type in ENTERS:
            self._hand_on(node, self.places[node.inputs[0]])
            return
        if node.declaration.mutates:
            self._change_state(node, copied)
        index = self.decisions.overwritten.get(node)
        if index is not None:
            for buffer, _ in self.places[node.inputs[index]]:
                if not buffer.is_ours:
                    raise AssertionError(
                        f"{node.name} overwrites {node.inputs[index].name}, which others have"
                    )
            self._write(node, index)
        for x in node.outputs:
            self.places[x] = self._of_result(node, x, index)
        for i in input_positions(node, node.declaration.keeps):
            if i not in copied:
                self.kept.append((node, node.inputs[i]))
                for buffer, _ in self.places[node.inputs[i]]:
                    buffer.is_ours = False

    def _hand_on(self, node: PlanNode, places: _Places) -> None:
        for x in node.outputs:
            is_reference = bool(self.references[x])
            self.places[x] = [(buffer, None) for buffer, _ in places] if is_reference else places

    def _change_state(self, node: PlanNode, copied: Collection[int]) -> None:
        changed = input_positions(node, node.declaration.mutates)
        buffers = {buffer for i in changed for buffer, _ in self.places[node.inputs[i]]}
        for i, x in enumerate(node.inputs):
            if i not in changed and i not in copied and any(place[0] in buffers for place in self.places[x]):
                raise AssertionError(f"{node.name} changes what {x.name} lies in while it reads that")
        for i in changed:
            self._write(node, i)

    def _write(self, node: PlanNode, i: int) -> None:
        for buffer, _ in self.places[node.inputs[i]]:
            buffer.writes += 1
            buffer.writer = node.name

    def _read(self, x: PlanOutput, who: str) -> None:
        for buffer, writes in self.places[x]:
            if writes is not None and writes != buffer.writes:
                raise AssertionError(f"{who} takes {x.name}, whose memory {buffer.writer} has overwritten")

    def _of_result(self, node: PlanNode, x: PlanOutput, overwritten: int | None) -> _Places:
        is_handle = x.dtype.is_ref or x.dtype.torch is None
        if node.is_feed:
            own: _Places = [(_Buffer(is_ours=False), None if is_handle else 0)]
            states = [self._state(owner) for owner in self.shown.get(x, ())]
            is_reference = bool(self.references[x])
            return own + [(state, None if is_reference else state.writes) for state in states]
        if x in self.constants:
            if is_handle:
                return [(self._state(self.constants[x]), None)]
            return [(_Buffer(is_ours=False), 0)]
        if overwritten is not None and _may_lie_in(x, node.inputs[overwritten]):
            return [(buffer, buffer.writes) for buffer, _ in self.places[node.inputs[overwritten]]]
        own = [(_Buffer(is_ours=not node.declaration.overlapping), 0)]
        if node in self.decisions.copied or not node.declaration.aliases:
            return [(self._state(x), None)] if is_handle else own
        inputs = [node.inputs[i] for i in input_positions(node, node.declaration.aliases)]
        found = [place for taken in inputs for place in self.places[taken]]
        if is_handle or self.references[x]:
            return [(buffer, None) for buffer, _ in found]
        if node.declaration.overlapping:
            found += own
        return [(buffer, buffer.writes if writes is None else writes) for buffer, writes in found]

    def _state(self, owner: Any) -> _Buffer:
        return self.states.setdefault(id(owner), _Buffer(is_ours=False))


def _may_lie_in(x: PlanOutput, operand: PlanOutput) -> bool:
    """Whether a node's result may be in the operand's buffer that it overwrote: of several results, the one
    that the declaration names, or those of its shape."""
    overwriting = x.op.declaration.overwriting
    if overwriting is not None:
        return x.value_index == overwriting
    dims, others = x.dims, operand.dims
    return len(x.op.outputs) == 1 or dims is None or others is None or dims == others
