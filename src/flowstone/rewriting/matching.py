"""Patterns as data: what part of a graph a pass looks for, and what it wants to know of it.

A pattern is a tree of terms, from the node that ends it towards its inputs. It is compiled once, when it is
first matched, and gives a record for each place where it matches:

    class _Scaled(NamedTuple):
        x: PlanOutput
        factor: float
        nodes: tuple[PlanNode, ...]

    SCALED = Pattern(Op("Relu", Op("Mul", Value("x"), Number("factor"), alone=True)), _Scaled)

    for found in SCALED.find(subgraph.nodes, Surroundings.of(subgraph)):
        found.factor

Terms (each stands for an output, and may be `called` a name by which the record has it):

- `Value`: any output. One name twice is the same output twice.
- `Number`: an output whose value is known before the step; the record has the value.
- `Op`: the output of a node of one of some types, ``"Add|AddV2"``, with terms for its inputs. Ops that
  commute are tried both ways. `others` names the inputs that no term is for; the terms then lie anywhere.
- `Either`: the first of some terms that matches; an optional part is one that is there or not.
- `Through`: a term behind any number of nodes of some types (views, casts), the longest way first.

Of all ways in which a pattern may match, the first is taken, in the order in which terms are written. What
depends on several captures is a pattern's `where`. `closed` patterns match only where nobody else takes,
fetches or waits for what is inside; a term that is `kept` may have other consumers. Control inputs are the
pass's business, unless a pattern or a term says ``waits=False``: then there are none.

Patterns say nothing of versions of state: `admission.py` asks that of what a pass puts in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.rewriting.match_compilation import (
    SURROUNDINGS,
    Check,
    Compiler,
    Registers,
    Surroundings,
    suits,
)
from flowstone.rewriting.match_terms import Either, Number, Op, Term, Through, Value

__all__ = ["Either", "Number", "Op", "Pattern", "Rules", "Surroundings", "Term", "Through", "Value"]

_Record = TypeVar("_Record")
_NOWHERE = Surroundings({})
_SPECIAL = ("root", "nodes")


class Pattern(Generic[_Record]):
    """A compiled term, which gives a `record` for each match.

    A record is a NamedTuple. Its fields are captures; besides, `root` is the node that the pattern ends in,
    and `nodes` those inside and the root, each after those that it takes. A capture that the match does not
    have is the field's default, or else None. `types`: those of the root.
    """

    def __init__(
        self,
        term: Op,
        record: Callable[..., _Record],
        where: Callable[[_Record], bool] | None = None,
        closed: bool = False,
        waits: bool = True,
    ) -> None:
        self.term, self.types = term, term.types
        self._where, self._closed, self._waits, self._record = where, closed, waits, record
        self._check: Check | None = None

    def compile(self) -> Check:
        """Makes the closures, which the first match does otherwise. ValueError for a field of the record that
        no term captures.
        """
        compiler, term, record = Compiler(), self.term, self._record
        self._own = compiler.register()
        self._check = compiler.node(term, self._own, self._is_found)
        if term.name:
            compiler.capture(term.name)
        self._captures = compiler.captures
        self._inside = [
            register
            for register, each in compiler.nodes[::-1]
            if not (isinstance(each, Op) and each.kept) and register != self._own
        ]
        self._all = [register for register, _ in compiler.nodes[::-1]]
        self._size = compiler.size
        self._paths = {name: _path(term, name)[::-1] for name in self._captures}
        self._fields = self._known_fields(record)
        self._wants_root, self._wants_nodes = (key in _fields(record) for key in _SPECIAL)
        return self._check

    def _known_fields(self, record: Any) -> list[tuple[str, int, Any]]:
        """Of the record's fields that are captures: name, register, and value where there is none."""
        names = [name for name in _fields(record) if name not in _SPECIAL]
        unknown = [name for name in names if name not in self._captures]
        if unknown:
            raise ValueError(f"{record.__name__} has fields that the pattern does not capture: {unknown}")
        defaults = record._field_defaults
        return [(name, self._captures[name], defaults.get(name)) for name in names]

    def match(self, node: PlanNode, around: Surroundings = _NOWHERE, **known: Any) -> _Record | None:
        """The record of the match that ends in `node`, None if there is none; `known` are captures that are
        given.
        """
        if node.declaration.name not in self.types:
            return None
        check = self._check or self.compile()
        held: Registers = [None] * (self._size + 1)
        held[SURROUNDINGS], held[self._own] = around, node
        for name, value in known.items():
            held[self._captures[name]] = value
        if self.term.name and node.outputs:
            held[self._captures[self.term.name]] = node.outputs[0]
        return held[-1] if check(held) else None

    def find(self, nodes: Iterable[PlanNode], around: Surroundings = _NOWHERE) -> Iterator[_Record]:
        """The matches that end in these nodes, in their order."""
        types, suit, count = self.types, suits(self.term), len(self.term.inputs)
        commutes, anywhere = self.term.commutes, bool(self.term.others)
        for node in nodes:
            if node.declaration.name not in types:
                continue
            inputs = node.inputs
            if anywhere or (len(inputs) == count and (suit(inputs) or (commutes and suit(inputs[::-1])))):
                found = self.match(node, around)
                if found is not None:
                    yield found

    def find_above(self, name: str, around: Surroundings, **known: PlanOutput) -> Iterator[_Record]:
        """The matches in which this capture, of an operand, is the one that is `known`."""
        values, nodes = [known[name]], dict[PlanNode, None]()
        if self._check is None:
            self.compile()
        for types in self._paths[name]:
            consumers = [node for x in values for node in around.consumers.get(x, ())]
            nodes = dict.fromkeys(node for node in consumers if node.declaration.name in types)
            values = [x for node in nodes for x in node.outputs]
        for node in nodes:
            found = self.match(node, around, **known)
            if found is not None:
                yield found

    def _is_found(self, held: Registers) -> bool:
        """Whether what is matched is all that it shall be; then it is in the last register."""
        inside = _members(held, self._inside)
        if not self._waits and any([node.control_inputs for node in inside]):
            return False
        if self._closed and not held[SURROUNDINGS].are_closed(inside, _members(held, self._all)):
            return False
        fields = {name: default if held[at] is None else held[at] for name, at, default in self._fields}
        if self._wants_root:
            fields["root"] = held[self._own]
        if self._wants_nodes:
            fields["nodes"] = (*inside, held[self._own])
        record = held[-1] = self._record(**fields)
        return self._where is None or self._where(record)


def _fields(record: Any) -> tuple[str, ...]:
    names: tuple[str, ...] = record._fields
    return names


def _members(held: Registers, registers: list[int]) -> list[PlanNode]:
    """The nodes in some registers, each once."""
    found: dict[PlanNode, None] = {}
    for register in registers:
        node = held[register]
        if type(node) is tuple:
            found.update(dict.fromkeys(node))
        elif node is not None:
            found[node] = None
    return list(found)


def _path(term: Term, name: str) -> list[frozenset[str]]:
    """The types of the nodes from the root to the first term of this name, which no Either hides."""
    if not isinstance(term, Op):
        return []
    for each in term.inputs:
        if each.name == name:
            return [term.types]
        below = _path(each, name)
        if below:
            return [term.types, *below]
    return []


class Rules:
    """Patterns and what to do where each matches, by the type of the node that they end in.

    A rule for `patterns.rewrite`: what the first that matches a node makes of it, if that is not None.
    """

    def __init__(self, around: Surroundings, *rules: tuple[Pattern[Any], Callable[[Any], Any]]) -> None:
        self.around = around
        self._by_type: dict[str, list[tuple[Pattern[Any], Callable[[Any], Any]]]] = {}
        for pattern, make in rules:
            for name in sorted(pattern.types):
                self._by_type.setdefault(name, []).append((pattern, make))

    def __call__(self, node: PlanNode) -> Any:
        """What stands for `node`, or None."""
        for pattern, make in self._by_type.get(node.declaration.name, ()):
            found = pattern.match(node, self.around)
            result = None if found is None else make(found)
            if result is not None:
                return result
        return None
