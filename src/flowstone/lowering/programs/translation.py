"""The program that nodes are being translated to: `Translation`, which the modules of statements write with.

It has the builder, what outputs of nodes are in the program, and when the node that is translated runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.programs.containers import HANDING_ON, Containers
from flowstone.lowering.programs.program_limits import (
    NARROW,
    Limits,
    Untranslatable,
    check_size,
    kind_of,
    static_dims,
    strides_of,
)
from flowstone.lowering.programs.program_members import Packed, places_in
from flowstone.native.programs.drawn_code import STREAM
from flowstone.native.programs.programs import Builder, Guard
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.frames import Frames

__all__ = ["Translation"]


class Translation:
    """The program so far, and the values and containers that outputs of nodes are."""

    def __init__(
        self,
        subgraph: Subgraph,
        nodes: Sequence[PlanNode],
        inputs: Sequence[PlanOutput],
        limits: Limits = NARROW,
    ) -> None:
        self.builder, self._limits = Builder(), limits
        self.frames, self.liveness = subgraph.analysis(Frames), subgraph.analysis(Liveness)
        self._subgraph = subgraph
        self._of: dict[PlanOutput, int] = {}
        self._moved: dict[Any, int] = {}
        self._streams: dict[PlanNode, int] = {}
        self._guard: Guard = ()
        self._taken = {x: node for node in reversed(nodes) for x in node.inputs}
        for x in inputs:
            self.take(x, self._taken.get(x, x.op))
        self.containers = Containers(self.builder, self.frames, nodes)

    def take(self, x: PlanOutput, taker: PlanNode) -> None:
        """From now on the output is an input of the program. Raises Untranslatable for `taker`."""
        check_size(taker, x.dims, self._limits)
        self._of[x] = self.builder.value(kind_of(taker, x), static_dims(taker, x.dims))

    def unpack(self, packs: Sequence[Packed]) -> None:
        """From now on what the nodes take of packs are values of the program."""
        numbers = []
        for pack in packs:
            size = sum(num_elements(x.dims) or 0 for x in pack)
            numbers.append(self.builder.value(kind_of(pack[0].op, pack[0]), (size,)))
        for i, place, x in places_in(packs):
            if x in self._taken:
                dims = static_dims(x.op, x.dims)
                walk = {"sizes": (math.prod(dims),), "from_strides": (1,), "to_strides": (1,)}
                self._of[x] = self.moved(numbers[i], dims, from_place=place, **walk)

    def begin_streams(self, nodes: Sequence[PlanNode]) -> None:
        """The next inputs are the streams that these nodes draw of."""
        inputs = [self.builder.value("int64", (STREAM,)) for _ in nodes]
        for node, x in zip(nodes, inputs):
            self._streams[node] = self.builder.value("int64", (STREAM,))
            self.add("Set", [x], None, into=self._streams[node])

    def stream(self, node: PlanNode) -> int:
        """What the node draws of."""
        found = self._streams.get(node)
        if found is None:
            raise Untranslatable(node, "it draws random numbers")
        return found

    def packed(self, pack: Packed) -> int:
        """A new value: those of the pack, end to end."""
        size = sum(num_elements(x.dims) or 0 for x in pack)
        result = self.builder.value(kind_of(pack[0].op, pack[0]), (size,))
        self._guard = ()
        for _, place, x in places_in([pack]):
            walk = {"sizes": (num_elements(x.dims),), "from_strides": (1,), "to_strides": (1,)}
            self.add("Copy", [self.of(x)], None, into=result, from_place=0, to_place=place, **walk)
        return result

    def limits_of(self, node: PlanNode) -> Limits:
        """What the node may make: in loops always little."""
        if self.frames.home(node) is None:
            return self._limits
        return NARROW._replace(terms=self._limits.shared_terms)

    def knows(self, x: PlanOutput) -> bool:
        """Whether the output is a value of the program."""
        return x in self._of

    def of(self, x: PlanOutput) -> int:
        """The value of an output."""
        found = self._of.get(x)
        if found is None:
            raise Untranslatable(x.op, "it takes what is no value of the program")
        return found

    def takers_of(self, handle: PlanOutput) -> list[PlanNode]:
        """The nodes that take the handle of a container, also as it is handed on."""
        found: list[PlanNode] = []
        for node in self._subgraph.consumers().get(handle, ()):
            is_handed_on = node.declaration.role in HANDING_ON
            found += [y for x in node.outputs for y in self.takers_of(x)] if is_handed_on else [node]
        return found

    def set(self, x: PlanOutput, value: int) -> None:
        """From now on the output has this value."""
        self._of[x] = value

    def add(
        self, op: str, operands: Sequence[int], result: Any, into: int | None = None, **attributes: Any
    ) -> int:
        """A statement where the node that is translated runs."""
        return self.builder.add(op, operands, result, self._guard, into=into, **attributes)

    def moved(self, x: int, dims: tuple[int, ...], **walk: Any) -> int:
        """A copy of elements, made once, where `x` is made."""
        key = self.builder.place(x), dims, tuple(sorted(walk.items()))
        found = self._moved.get(key)
        if found is None:
            dtype = self.builder.values[x].dtype
            more = {"to_strides": strides_of(dims), "to_place": 0, **walk}
            found = self._moved[key] = self.builder.add("Copy", [x], (dtype, dims), at=x, **more)
        return found
