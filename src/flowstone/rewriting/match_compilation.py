"""Patterns as closures: each term is a function that checks one output and goes on with what follows.

A match is attempted in a list of registers: outputs to look at, captures, the nodes so far. Each closure
knows its registers and the closure that comes after it, from when it is compiled; so nothing is built while
matching, and when what follows fails, a closure tries its next way.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any

from flowstone.framework.graphs.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.match_terms import Either, Number, Op, Term, Through, Value

Registers = list[Any]
Check = Callable[[Registers], bool]
SURROUNDINGS = 0  # the first register


class Surroundings:
    """Who takes each output (`consumers`), which are `fetched`, and who waits for each node (`waiting`; of
    targets also None, who runs the step).
    """

    __slots__ = ("consumers", "fetched", "waiting")

    def __init__(
        self,
        consumers: Consumers,
        fetched: Collection[PlanOutput] = (),
        waiting: dict[PlanNode, list[PlanNode | None]] | None = None,
    ) -> None:
        self.consumers, self.fetched, self.waiting = consumers, set(fetched), waiting or {}

    @staticmethod
    def of(subgraph: Subgraph) -> Surroundings:
        """Those in a subgraph."""
        waiting: dict[PlanNode, list[PlanNode | None]] = {}
        for node in subgraph.nodes:
            for control in node.control_inputs:
                waiting.setdefault(control, []).append(node)
        for target in subgraph.targets:
            waiting.setdefault(target, []).append(None)
        return Surroundings(subgraph.consumers(), subgraph.fetches, waiting)

    def is_alone(self, x: PlanOutput) -> bool:
        """Whether exactly one input takes an output, which is not fetched."""
        return len(self.consumers.get(x, ())) == 1 and x not in self.fetched

    def are_closed(
        self, inside: Collection[PlanNode], known: Collection[PlanNode], unimportant: Collection[str] = ()
    ) -> bool:
        """Whether only the `known` nodes, and some of `unimportant` types, take what is made `inside`, nobody
        else waits for that, and none of it is fetched.
        """
        members = {*inside, *known}
        return not any(
            any(follower not in members for follower in self.waiting.get(node, ()))
            or any(
                x in self.fetched
                or any(y not in members and y.type not in unimportant for y in self.consumers.get(x, ()))
                for x in node.outputs
            )
            for node in inside
        )


class Compiler:
    """Makes the closures of one pattern.

    `size`: how many registers they need; `captures`: those of the captures, by name; `nodes`: those of nodes,
    each after those of its inputs, once `compiled` is through.
    """

    def __init__(self) -> None:
        self.size = 1
        self.captures: dict[str, int] = {}
        self.nodes: list[tuple[int, Op | Through]] = []

    def register(self) -> int:
        """One that is free."""
        self.size += 1
        return self.size - 1

    def capture(self, name: str) -> int:
        """That of the capture of this name."""
        if name not in self.captures:
            self.captures[name] = self.register()
        return self.captures[name]

    def compiled(self, term: Term, at: int, then: Check) -> Check:
        """What checks the output in register `at`, and then goes on."""
        if isinstance(term, Number):
            return self._number(term, at, then)
        if term.name:
            then = bound(at, self.capture(term.name), then)
        if isinstance(term, Value):
            return then if term.where is None else tested(at, term.where, then)
        if isinstance(term, Op):
            return self._op(term, at, then)
        if isinstance(term, Either):
            return first_of([self.compiled(each, at, then) for each in term.terms])
        assert isinstance(term, Through)
        return self._through(term, at, then)

    def node(self, term: Op, own: int, then: Check) -> Check:
        """What checks the node in register `own`, which is of one of the term's types, and then goes on."""
        self.nodes.append((own, term))
        if term.others:
            then = self._among(term, own, then)
        else:
            then = self._inputs(term, own, then)
        if term.node:
            then = bound(own, self.capture(term.node), then)
        if term.where is not None:
            then = tested(own, term.where, then)
        for key, wanted in list(term.attributes.items())[::-1]:
            then = has_attribute(own, key, wanted, then)
        return then if term.waits else tested(own, lambda node: not node.control_inputs, then)

    def _op(self, term: Op, at: int, then: Check) -> Check:
        own, part, types, alone = self.register(), self.register(), term.types, term.alone
        rest = self.node(term, own, then)
        if isinstance(term.part, int):
            rest = tested(part, functools.partial(operator.eq, term.part), rest)
        elif term.part:
            rest = bound(part, self.capture(term.part), rest)

        def check(held: Registers) -> bool:
            x = held[at]
            node = x.op
            if node.declaration.name not in types or (alone and not held[SURROUNDINGS].is_alone(x)):
                return False
            held[own], held[part] = node, x.value_index
            if rest(held):
                return True
            held[own] = None
            return False

        return check

    def _inputs(self, term: Op, own: int, then: Check) -> Check:
        """One term for each input, in order, or of two that commute in either order."""
        places, count, commutes = [self.register() for _ in term.inputs], len(term.inputs), term.commutes
        for place, each in list(zip(places, term.inputs))[::-1]:
            then = self.compiled(each, place, then)
        suit = suits(term)

        def go_on(held: Registers, inputs: Sequence[PlanOutput]) -> bool:
            for place, x in zip(places, inputs):
                held[place] = x
            return then(held)

        def check(held: Registers) -> bool:
            inputs = held[own].inputs
            if len(inputs) != count:
                return False
            if suit(inputs) and go_on(held, inputs):
                return True
            return commutes and suit(inputs[::-1]) and go_on(held, inputs[::-1])

        return check

    def _among(self, term: Op, own: int, then: Check) -> Check:
        """The terms for inputs in any places, each for another one."""
        used, rest, least = self.register(), self.register(), len(term.inputs)
        following = bound(rest, self.capture(term.others), then)

        def check_rest(held: Registers) -> bool:
            held[rest] = tuple([x for i, x in enumerate(held[own].inputs) if i not in held[used]])
            return following(held)

        chain: Check = check_rest
        for each in term.inputs[::-1]:
            place = self.register()
            chain = one_of_inputs(own, used, place, self.compiled(each, place, chain))

        def check(held: Registers) -> bool:
            held[used] = ()
            return len(held[own].inputs) >= least and chain(held)

        return check

    def _number(self, term: Number, at: int, then: Check) -> Check:
        found, read, where = self.register(), term.read, term.where
        if term.name:
            then = bound(found, self.capture(term.name), then)

        def check(held: Registers) -> bool:
            value = held[found] = read(held[at])
            return value is not None and (where is None or where(value)) and then(held)

        return check

    def _through(self, term: Through, at: int, then: Check) -> Check:
        own, end, types, where = (
            self.register(),
            self.register(),
            frozenset(term.types.split("|")),
            term.where,
        )
        self.nodes.append((own, term))
        rest = self.compiled(term.term, end, then)

        def check(held: Registers) -> bool:
            x = held[at]
            ends, passed = [x], []
            while x.op.declaration.name in types and not x.op.control_inputs and (where is None or where(x)):
                passed.append(x.op)
                x = x.op.inputs[0]
                ends.append(x)
            for i in range(len(passed), -1, -1):
                held[own], held[end] = tuple(passed[:i]), ends[i]
                if rest(held):
                    return True
            held[own] = None
            return False

        return check


def suits(term: Op) -> Callable[[Sequence[PlanOutput]], bool]:
    """What tells at once that inputs are of nodes of other types than the terms for them say."""
    types = [(i, found) for i, each in enumerate(term.inputs) if (found := types_of(each)) is not None]

    def suit(inputs: Sequence[PlanOutput]) -> bool:
        for i, wanted in types:  # noqa: SIM110 (a third of the time)
            if inputs[i].op.declaration.name not in wanted:
                return False
        return True

    return suit


def types_of(term: Term) -> frozenset[str] | None:
    """The types of nodes whose outputs a term may be, where it says so at once."""
    if isinstance(term, Op):
        return term.types
    if isinstance(term, Either):
        found = [types_of(each) for each in term.terms]
        return None if None in found else frozenset().union(*[each for each in found if each is not None])
    return None


def bound(at: int, slot: int, then: Check) -> Check:
    """What is in register `at` becomes a capture, or is the same as what that is already."""

    def check(held: Registers) -> bool:
        value, known = held[at], held[slot]
        if known is not None:
            return known == value and then(held)
        held[slot] = value
        if then(held):
            return True
        held[slot] = None
        return False

    return check


def tested(at: int, where: Callable[[Any], bool], then: Check) -> Check:
    """A test of what is in register `at`."""
    return lambda held: where(held[at]) and then(held)


def first_of(ways: list[Check]) -> Check:
    """The first of some ways to go on."""
    first, *others = ways
    if not others:
        return first
    second = first_of(others)
    return lambda held: first(held) or second(held)


def has_attribute(own: int, key: str, wanted: Any, then: Check) -> Check:
    """An attribute's value, or what holds of it; a node that has no such attribute has None."""
    if callable(wanted):
        return lambda held: wanted(held[own].attributes.get(key)) and then(held)
    return lambda held: held[own].attributes.get(key) == wanted and then(held)


def one_of_inputs(own: int, used: int, place: int, then: Check) -> Check:
    """Any input of a node that is not used yet."""

    def check(held: Registers) -> bool:
        before = held[used]
        for i, x in enumerate(held[own].inputs):
            if i not in before:
                held[used], held[place] = (*before, i), x
                if then(held):
                    return True
        held[used] = before
        return False

    return check
