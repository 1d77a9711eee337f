"""When a node is alive: Switch and Merge inside one device, as conditions known at plan time.

Each node gets a condition over predicates: a disjunction (`Condition`) of conjunctions (`Term`) of literals
(predicate output, wanted value). A Switch adds a literal to each output, a Merge joins its inputs'
conditions, every other node is alive where all its inputs and control inputs are. `TRUE` is the one empty
conjunction, `FALSE` no conjunction at all.

A predicate counts as the output that decides it, seen through Switch, Identity and negation; comparing a
Merge's ``value_index`` with a constant, as gradients of gradients do, is no predicate of its own but the
condition of that input. So the conditions of nested and differentiated conditionals stay as small as the
branches they stand for. In a loop a condition says when a node is alive *in an iteration*: the loop's own
predicate counts as true for its body, and a loop as a whole is alive where its Enters are. Rewriting asks
whether a node and what replaces it are alive together, segments turn conditions into ``if`` blocks.

>>> p = literal("p", True)
>>> conjunction(p, literal("p", False)) == FALSE, join(p, literal("p", False)) == TRUE
(True, True)
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.frames import is_head, is_loop_switch

Term = frozenset  # of (predicate, wanted value)
Condition = frozenset  # of Terms
TRUE: Condition[Any] = frozenset([frozenset()])
FALSE: Condition[Any] = frozenset()
_RECEIVES = frozenset({"receive", "host_receive"})  # roles
_HANDING_ON = frozenset({"switch", "identity"})  # roles
ALIVE_AT_TIMES = "_alive_at_times"  # attribute of receives from a branch on another device
SWITCHES = registry.with_role("switch")
MERGES = registry.with_role("merge")


def literal(predicate: Any, wanted: bool) -> Condition[Any]:
    """The condition that a predicate has this value."""
    return frozenset([frozenset([(predicate, wanted)])])


def conjunction(a: Condition[Any], b: Condition[Any]) -> Condition[Any]:
    """Both hold."""
    if a is b or b is TRUE or a == b or b == TRUE:
        return a
    if a == TRUE:
        return b
    # x and y is x where y is part of x: it absorbs x with any other, so large conditions that mostly agree
    # never become their product.
    narrow_a = {x for x in a if any(y <= x for y in b)}
    narrow_b = {y for y in b if any(x <= y for x in a)}
    terms = narrow_a | narrow_b
    for x in a - narrow_a:
        opposite = {(predicate, not wanted) for predicate, wanted in x}
        terms.update(x | y for y in b - narrow_b if opposite.isdisjoint(y))
    return _simplified(terms)


def join(a: Condition[Any], b: Condition[Any]) -> Condition[Any]:
    """Either holds."""
    return _simplified(set(a | b))


def _simplified(terms: set[Any]) -> Condition[Any]:
    """Resolution ({p, x} or {not p, x} is {x}) and absorption, until nothing changes."""
    if len(terms) < 2:
        return frozenset(terms)
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
    most = max(map(len, terms))
    shorter = [term for term in terms if len(term) < most]  # what absorbs a term is shorter
    return frozenset(term for term in terms if not any(other < term for other in shorter))


class Liveness:
    """The conditions of a subgraph's nodes and outputs; `predicates` are the outputs whose values they ask.

    `trivial`: there is no Switch, and everything is alive. What is received from a branch on another device
    is alive under a condition of its own, which is no predicate.
    """

    def __init__(self, subgraph: Subgraph) -> None:
        self._of_node: dict[PlanNode, Condition[Any]] = {}
        self._of_output: dict[PlanOutput, Condition[Any]] = {}
        self._meanings: dict[PlanOutput, tuple[Condition[Any], Condition[Any]]] = {}
        self.predicates: set[PlanOutput] = set()
        roles = {declaration.role for declaration in {node.declaration for node in subgraph.nodes}}
        self.trivial = "switch" not in roles and not (
            not roles.isdisjoint(_RECEIVES) and any(ALIVE_AT_TIMES in x.attributes for x in subgraph.nodes)
        )
        if not self.trivial:
            for node in subgraph.nodes:
                self.add(node)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Liveness):
            return False
        return self._of_node == other._of_node and self._of_output == other._of_output

    def copy(self) -> Liveness:
        """The same, for someone who adds nodes to it."""
        copy = Liveness.__new__(Liveness)
        copy._of_node, copy._of_output = dict(self._of_node), dict(self._of_output)
        copy._meanings, copy.predicates = dict(self._meanings), set(self.predicates)
        copy.trivial = self.trivial
        return copy

    def without(self, gone: Collection[PlanNode]) -> Liveness | None:
        """What is left when nodes that no other takes go; None if it must be found anew."""
        if self.trivial:
            return self
        if any([node.type in SWITCHES or ALIVE_AT_TIMES in node.attributes for node in gone]):
            return None  # the predicates may be fewer
        rest = self.copy()
        for node in gone:
            del rest._of_node[node]
            for output in node.outputs:
                del rest._of_output[output]
        return rest

    def node(self, node: PlanNode) -> Condition[Any]:
        """When the node runs."""
        return TRUE if self.trivial else self._of_node[node]

    def output(self, output: PlanOutput) -> Condition[Any]:
        """When the output has a value."""
        return TRUE if self.trivial else self._of_output[output]

    def add(self, node: PlanNode) -> None:
        """Takes notice of a node whose inputs and control inputs are known."""
        condition, of_output = TRUE, self._of_output
        for control in node.control_inputs:
            also = self._of_node[control]
            if also is not condition and also is not TRUE:
                condition = conjunction(condition, also)
        if node.type in MERGES:
            condition = conjunction(condition, self._merged(node))
        else:
            for x in node.inputs:
                also = of_output[x]
                if also is not condition and also is not TRUE:
                    condition = conjunction(condition, also)
        if ALIVE_AT_TIMES in node.attributes:
            condition = conjunction(condition, literal(node.outputs[0], True))
        self._of_node[node] = condition
        for output in node.outputs:
            of_output[output] = condition
        if node.type in SWITCHES and not is_loop_switch(node):
            for output, meaning in zip(node.outputs, self._meaning(node.inputs[1])):
                of_output[output] = conjunction(condition, meaning)

    def _merged(self, node: PlanNode) -> Condition[Any]:
        if is_head(node):  # the first value decides; later ones are there because it was
            return self._of_output[node.inputs[0]]
        either = FALSE
        for x in node.inputs:
            either = join(either, self._of_output[x])
        return either

    def _meaning(self, predicate: PlanOutput) -> tuple[Condition[Any], Condition[Any]]:
        """When a predicate is false, and when it is true."""
        found = self._meanings.get(predicate)
        if found is None:
            found = self._meanings[predicate] = self._computed_meaning(predicate)
        return found

    def _computed_meaning(self, predicate: PlanOutput) -> tuple[Condition[Any], Condition[Any]]:
        source, negated = decisive(predicate)
        meaning = self._index_meaning(source) or _constant_meaning(source)
        if meaning is None:
            self.predicates.add(source)
            meaning = literal(source, False), literal(source, True)
        return (meaning[1], meaning[0]) if negated else meaning

    def _index_meaning(self, predicate: PlanOutput) -> tuple[Condition[Any], Condition[Any]] | None:
        """Of ``Equal(merge.value_index, constant)``: whether that input of the Merge is alive."""
        if predicate.op.type != "Equal":
            return None
        for index, number in (predicate.op.inputs, reversed(predicate.op.inputs)):
            if index.op.type in MERGES and index.value_index == 1 and number.op.is_constant:
                chosen, others = FALSE, FALSE
                wanted = np.asarray(number.op.attributes["value"])
                for i, x in enumerate(index.op.inputs):
                    if wanted.size == 1 and i == wanted.item():
                        chosen = self._of_output[x]
                    else:
                        others = join(others, self._of_output[x])
                return others, chosen
        return None


def decisive(predicate: PlanOutput) -> tuple[PlanOutput, bool]:
    """The output whose value a predicate is, and whether it is its negation."""
    negated = False
    while True:
        node = predicate.op
        through = node.declaration.role in _HANDING_ON or node.type == "LogicalNot"
        if not through or node.inputs[0].dtype.is_ref:
            return predicate, negated
        negated ^= node.type == "LogicalNot"
        predicate = node.inputs[0]


def is_known(predicate: PlanOutput) -> bool:
    """Whether a predicate is a constant; one that is no scalar fails in the step."""
    return predicate.op.is_constant and np.ndim(predicate.op.attributes["value"]) == 0


def _constant_meaning(predicate: PlanOutput) -> tuple[Condition[Any], Condition[Any]] | None:
    if not is_known(predicate):
        return None
    return (FALSE, TRUE) if bool(np.all(predicate.op.attributes["value"])) else (TRUE, FALSE)
