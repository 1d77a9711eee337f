"""The terms that patterns are made of (`matching.py` tells what they mean): plain data, compared by value."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.tensors.node import value_where_alive

_COMMUTE_TOO = frozenset({"Add", "BiasAdd"})  # but for text, and for images, which no pattern is of

_T = TypeVar("_T", bound="Term")


@dataclasses.dataclass(frozen=True)
class Term:
    """What stands for an output. `name`: that of the output in the record, '' if it has none."""

    name: str = dataclasses.field(default="", kw_only=True)

    def called(self: _T, name: str) -> _T:
        """The same term with a name."""
        twin = copy.copy(self)
        object.__setattr__(twin, "name", name)
        return twin


@dataclasses.dataclass(frozen=True)
class Value(Term):
    """Any output, if `where` holds of it."""

    name: str = ""
    where: Callable[[PlanOutput], bool] | None = None


def constant_value(x: PlanOutput) -> np.ndarray[Any, Any] | None:
    """The value of an output that is known before the step, or else None."""
    value = value_where_alive(x)
    return value if isinstance(value, np.ndarray) else None


@dataclasses.dataclass(frozen=True)
class Number(Term):
    """An output whose value `read` knows, and of which `where` holds; its name is that of the value."""

    name: str = ""
    where: Callable[[Any], bool] | None = None
    read: Callable[[PlanOutput], Any] = constant_value


@dataclasses.dataclass(frozen=True, init=False)
class Op(Term):
    """An output of a node of one of some types.

    `types`: the names, with bars between them. `others`: the name of the inputs that no term is for. `node`
    names the node; `part` is the index of the output, or its name. `alone`: one input takes the output, and
    it is not fetched. `kept`: not inside, if the pattern is `closed`. `waits=False`: the node has no control
    inputs. `where` holds of the node. Other keywords are attributes: their values, or what holds of them.
    """

    types: frozenset[str]
    inputs: tuple[Term, ...]
    others: str
    node: str
    part: str | int
    alone: bool
    kept: bool
    waits: bool
    where: Callable[[PlanNode], bool] | None
    attributes: Mapping[str, Any]

    def __init__(
        self,
        types: str,
        *inputs: Term,
        name: str = "",
        others: str = "",
        node: str = "",
        part: str | int = "",
        alone: bool = False,
        kept: bool = False,
        waits: bool = True,
        where: Callable[[PlanNode], bool] | None = None,
        **attributes: Any,
    ) -> None:
        names = frozenset(types.split("|"))
        fields = {
            "name": name, "types": names, "inputs": inputs, "others": others, "node": node, "part": part,
            "alone": alone, "kept": kept, "waits": waits, "where": where, "attributes": attributes,
        }  # fmt: skip
        for key, value in fields.items():
            object.__setattr__(self, key, value)

    @property
    def commutes(self) -> bool:
        """Whether its two terms are tried in either order."""
        each_does = (name in _COMMUTE_TOO or registry[name].commutative for name in self.types)
        return len(self.inputs) == 2 and all(each_does)


@dataclasses.dataclass(frozen=True, init=False)
class Either(Term):
    """The first of some terms that matches."""

    terms: tuple[Term, ...]

    def __init__(self, *terms: Term, name: str = "") -> None:
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "name", name)


@dataclasses.dataclass(frozen=True)
class Through(Term):
    """A term behind any number of nodes of some types, of whose outputs `where` holds: their first inputs
    lead there. The nodes wait for nothing, and are inside."""

    types: str
    term: Term
    where: Callable[[PlanOutput], bool] | None = None
