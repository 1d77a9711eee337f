"""Which nodes may tell whether a change of state, or a read of one, comes before or after them.

A wait orders something only if they may: what does more than change or read variables (printing, queues,
iterators, random numbers, checks), and what reads or changes the same variable, one of both changing it,
unless what stays of the edges keeps them in order. Moving averages that gradients wait for order nothing, for
what comes after the gradients does not look at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.rewriting.analyses.frames import ENTERS, LOOP_TYPES, Frames, is_head
from flowstone.rewriting.analyses.state_access import state_name
from flowstone.rewriting.analyses.state_versions import References, changed_by
from flowstone.rewriting.analyses.stored_values import MADE, lives_in_a_step, storage_of

__all__ = ["ChangeConflicts"]

_READS = frozenset({"read", "gather", "size"})
_States = frozenset[Any]


class ChangeConflicts:
    """Of the nodes of a subgraph that have `numbers`; sets of these nodes are bits."""

    def __init__(self, subgraph: Subgraph, numbers: Mapping[PlanNode, int]) -> None:
        self._frames = subgraph.analysis(Frames)
        self._touched: dict[Any, int] = {}  # by states
        self._changed: dict[Any, int] = {}
        self._conflicts: list[int] = []
        self._known: dict[int, int] = {}
        self._effects = 0
        references, sharing = References(), References(memory=True)
        variables = {state_name(node) for node in subgraph.nodes if node.declaration.role == "variable"}
        known = [_states(node, references, sharing, variables) for node in numbers]
        for number, found in enumerate(known):
            if found is None:
                self._effects |= 1 << number
                continue
            for states, bits in zip(found, (self._touched, self._changed)):
                for state in states:
                    bits[state] = bits.get(state, 0) | 1 << number
        for found in known:
            touched, changed = found or (frozenset(), frozenset())
            self._conflicts.append(self._with(touched, changed))
        own = {node: 1 << number for node, number in numbers.items()}
        self._after = _spread(subgraph, own, PlanNode.sources, backwards=True)
        kept = _spread(subgraph, own, _followers(subgraph, self._is_in_loop))
        self._before = [kept[node] for node in numbers]  # in any case
        self._in_loops: dict[int, int] = {}
        if self._frames.exist:
            everything = _spread(subgraph, own, _followers(subgraph, lambda node: True))
            self._in_loops = {i: everything[node] for node, i in numbers.items() if _is_of_loop(node)}

    def _with(self, touched: _States, changed: _States) -> int:
        found = 0
        for state in touched:
            found |= (self._touched if state in changed else self._changed).get(state, 0)
        return found

    def exist(self, before: int, anyway: int, node: PlanNode) -> bool:
        """Whether the node, or any that comes after it, may tell that those `before` have not run yet, where
        others come before it `anyway`. The heads of loops stand for what is in the loops."""
        before = self._with_loops(before) & ~self._with_loops(anyway)
        after = self._after.get(node, 0)
        if (before | after) & self._effects or self._is_in_loop(node):
            return True
        return bool(after & self._tellers(before))

    def _tellers(self, before: int) -> int:
        """Those that may tell whether these have run, but for what comes after them in any case."""
        found = self._known.get(before)
        if found is None:
            told = found = 0
            for number in _numbers(before):
                told |= self._conflicts[number]
            for number in _numbers(told):
                if self._conflicts[number] & before & ~self._before[number]:
                    found |= 1 << number
            self._known[before] = found
        return found

    def _with_loops(self, bits: int) -> int:
        for number, inside in self._in_loops.items():
            if bits >> number & 1:
                bits |= inside
        return bits

    def _is_in_loop(self, node: PlanNode) -> bool:
        """In a loop, what a node waits for also says in which iteration it runs."""
        frame = self._frames.home(node)
        return frame is not None and (node.type not in ENTERS or frame.parent is not None)


def _states(
    node: PlanNode, references: References, sharing: References, variables: set[Any]
) -> tuple[_States, _States] | None:
    """The states that a node touches, and those of them that it changes; None if it does something else."""
    declaration = node.declaration
    if declaration.asynchronous:
        return None
    if _is_of_loop(node):
        return frozenset(), frozenset()
    if lives_in_a_step(node):
        return _of_storage(node)
    changed = changed_by(node, references)
    touched = changed.union(*[sharing[x] for x in node.inputs])
    makes_state = not node.inputs and all(x.dtype.is_ref or x.dtype.name == "resource" for x in node.outputs)
    is_known = changed or declaration.is_pure or declaration.reads or (makes_state and node.outputs)
    return (touched, changed) if is_known and touched <= variables else None


def _is_of_loop(node: PlanNode) -> bool:
    return node.type in LOOP_TYPES or is_head(node)


def _of_storage(node: PlanNode) -> tuple[_States, _States] | None:
    """The same of a node about a stack or an array of tensors; an array's gradients are one of their own."""
    kind = node.declaration.container
    if kind in MADE:
        state: _States = frozenset([(node, False)])
        return state, state
    creation, is_gradient = storage_of(node)
    if creation is None:
        return None
    state = frozenset([(creation, is_gradient or kind == "gradient")])
    if kind == "gradient":
        return frozenset([*state, (creation, is_gradient)]), state
    return state, frozenset() if kind in _READS else state


def _spread(
    subgraph: Subgraph,
    own: Mapping[PlanNode, int],
    to: Callable[[PlanNode], Iterable[PlanNode]],
    backwards: bool = False,
) -> dict[PlanNode, int]:
    """The bits that come to each node along edges, round loops too, with its own."""
    nodes = subgraph.nodes[::-1] if backwards else subgraph.nodes
    found, goes_on = dict(own), True
    while goes_on:
        goes_on = False
        for node in nodes:
            bits = found.get(node, 0)
            for other in to(node) if bits else ():
                known = found.get(other, 0)
                if bits | known != known:
                    found[other], goes_on = bits | known, subgraph.analysis(Frames).exist
    return found


def _followers(
    subgraph: Subgraph, holds: Callable[[PlanNode], bool]
) -> Callable[[PlanNode], Iterable[PlanNode]]:
    """Of a node those that take what it computes, or wait for it where that `holds`."""
    followers: dict[PlanNode, list[PlanNode]] = {}
    for node in subgraph.nodes:
        for source in node.sources() if holds(node) else (x.op for x in node.inputs):
            followers.setdefault(source, []).append(node)
    return lambda node: followers.get(node, ())


def _numbers(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
