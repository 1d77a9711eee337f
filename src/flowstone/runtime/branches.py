"""When a node is alive: Switch and Merge inside one device, as conditions known at plan time.

Each node gets a condition over the predicates of the Switches above it: a disjunction of conjunctions of literals
(predicate output, wanted value). A Switch adds a literal to each output, a Merge joins its inputs' conditions, every
other node is alive where all its inputs and control inputs are. The segment turns conditions into ``if`` blocks.

>>> TRUE == conjunction(TRUE, TRUE), join(conjunction(TRUE, literal("p", True)), conjunction(TRUE, literal("p", False))) == TRUE
(True, True)
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.node import Output
from flowstone.framework.subgraph import PlanNode, Subgraph

Term = "frozenset[tuple[Any, bool]]"
Condition = frozenset  # of Terms
TRUE: Condition[Any] = frozenset([frozenset()])


def literal(predicate: Any, wanted: bool) -> Condition[Any]:
    """The condition that a predicate has this value."""
    return frozenset([frozenset([(predicate, wanted)])])


def conjunction(a: Condition[Any], b: Condition[Any]) -> Condition[Any]:
    """Both hold."""
    if a == b or b == TRUE:
        return a
    if a == TRUE:
        return b
    terms = set()
    for x in a:
        for y in b:
            term = x | y
            if not any((predicate, not wanted) in term for predicate, wanted in term):
                terms.add(term)
    return _simplified(terms)


def join(a: Condition[Any], b: Condition[Any]) -> Condition[Any]:
    """Either holds."""
    return _simplified(set(a | b))


def _simplified(terms: set[Any]) -> Condition[Any]:
    """Resolution ({p, x} or {not p, x} is {x}) and absorption, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for term in sorted(terms, key=len, reverse=True):
            for predicate, wanted in term:
                rest = term - {(predicate, wanted)}
                if rest | {(predicate, not wanted)} in terms:
                    terms -= {term, rest | {(predicate, not wanted)}}
                    terms.add(rest)
                    changed = True
                    break
            if changed:
                break
    return frozenset(term for term in terms if not any(other < term for other in terms))


class Liveness:
    """The conditions of a subgraph's nodes (`of_node`) and outputs (`of_output`); `predicates` that Switches test."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.of_node: dict[PlanNode, Condition[Any]] = {}
        self.of_output: dict[Output, Condition[Any]] = {}
        self.predicates: set[Output] = set()
        self.trivial = not any(node.type in SWITCHES for node in subgraph.nodes)
        if not self.trivial:
            for node in subgraph.nodes:
                self._visit(node)

    def _visit(self, node: PlanNode) -> None:
        condition = TRUE
        for control in node._control_inputs:
            condition = conjunction(condition, self.of_node[control])
        if node.type in MERGES:
            either: Condition[Any] = frozenset()
            for x in node._inputs:
                either = join(either, self.of_output[x])
            condition = conjunction(condition, either)
        else:
            for x in node._inputs:
                condition = conjunction(condition, self.of_output[x])
        self.of_node[node] = condition
        for output in node._outputs:
            self.of_output[output] = condition
        if node.type in SWITCHES:
            predicate = node._inputs[1]
            self.predicates.add(predicate)
            for output, wanted in zip(node._outputs, (False, True)):
                self.of_output[output] = conjunction(condition, literal(predicate, wanted))

    def node(self, node: PlanNode) -> Condition[Any]:
        """When the node runs."""
        return TRUE if self.trivial else self.of_node[node]

    def output(self, output: Output) -> Condition[Any]:
        """When the output has a value."""
        return TRUE if self.trivial else self.of_output[output]


SWITCHES = frozenset({"Switch", "RefSwitch"})
MERGES = frozenset({"Merge", "RefMerge"})
