"""What reductions accumulate, as vectors in registers or memory, and what becomes of it in LLVM's text.

A reduction over a row has a vector for each of its parts, whose lanes are joined at the row's end. One over
everything has such vectors for all rows of a thread; one over columns has a vector for every few columns.
The latter two lie in a *slot* of memory, one a thread, which `Slot` lays out; slots are joined in the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flowstone.native.clusters.clusters import Cluster
from flowstone.native.codegen.emitter import Emitter, kind_of
from flowstone.native.codegen.vector_memory import in_all_lanes
from flowstone.native.numerics.reductions import REDUCTIONS, Parts, Reduction

__all__ = ["Place", "Slot", "chosen", "folded", "parts_of", "reduction_of", "start"]


class Place(NamedTuple):
    """Where a part of a reduction lies in a slot: the offset, its type, and how many vectors it is."""

    offset: int
    dtype: str
    first: Any
    vectors: int


class Slot:
    """A thread's memory: `places[step]` for each reduction over columns or everything, `size` bytes."""

    def __init__(self, cluster: Cluster, lanes: int) -> None:
        self.lanes, self.size = lanes, 0
        self.places: dict[int, list[Place]] = {}
        columns = cluster.loops().columns
        for i, step in enumerate(cluster.steps, len(cluster.inputs)):
            if step.over not in ("columns", "all"):
                continue
            vectors = -(-columns // lanes) if step.over == "columns" else 1
            self.places[i] = []
            for dtype, first in parts_of(cluster, i):
                self.places[i].append(Place(self.size, dtype, first, vectors))
                self.size += vectors * lanes * 8

    def address(self, e: Emitter, slot: str, place: Place, column: str = "0") -> str:
        """Where the vector for a column lies, a multiple of the lanes."""
        bytes_in = e.let(f"mul i64 {column}, 8") if column != "0" else "0"
        whole = e.let(f"add i64 {bytes_in}, {place.offset}")
        return e.let(f"getelementptr i8, ptr {slot}, i64 {whole}")

    def read(self, e: Emitter, slot: str, step: int, column: str = "0") -> Parts:
        """The parts of a reduction."""
        addresses = [(place, self.address(e, slot, place, column)) for place in self.places[step]]
        return [e.let(f"load {e.type(place.dtype)}, ptr {at}, align 8") for place, at in addresses]

    def write(self, e: Emitter, slot: str, step: int, parts: Parts, column: str = "0") -> None:
        """Puts the parts of a reduction there."""
        for place, part in zip(self.places[step], parts):
            at = self.address(e, slot, place, column)
            e.do(f"store {e.type(place.dtype)} {part}, ptr {at}, align 8")


def reduction_of(cluster: Cluster, array: int) -> tuple[Reduction, str, Mapping[str, Any]]:
    """What a step reduces by, the type of its elements, its attributes."""
    step = cluster.steps[array - len(cluster.inputs)]
    return REDUCTIONS[step.op], cluster.dtype(step.operands[0]), dict(step.attributes)


def parts_of(cluster: Cluster, array: int) -> Sequence[tuple[str, Any]]:
    """The types of a reduction's parts with the numbers that they begin with."""
    reduction, dtype, _ = reduction_of(cluster, array)
    return reduction.parts(dtype)


def start(e: Emitter, cluster: Cluster, array: int) -> Parts:
    """The parts before anything is taken."""
    return [e.constant(dtype, first) for dtype, first in parts_of(cluster, array)]


def chosen(e: Emitter, cluster: Cluster, array: int, mask: str, new: Parts, old: Parts) -> Parts:
    """The new parts in lanes of the mask, else the old ones."""
    kinds = [dtype for dtype, _ in parts_of(cluster, array)]
    return [e.select(mask, dtype, a, b) for dtype, a, b in zip(kinds, new, old)]


def folded(
    e: Emitter, cluster: Cluster, array: int, parts: Parts, attributes: Mapping[str, Any] | None = None
) -> str:
    """The reduction's result of all lanes, in all lanes; `attributes`: in place of the step's own."""
    reduction, dtype, own = reduction_of(cluster, array)
    attributes = own if attributes is None else attributes
    kinds = [kind_of(each) for each, _ in parts_of(cluster, array)]
    lanes = e.lanes
    while e.lanes > 1:
        half = e.lanes // 2
        halves: list[Parts] = []
        for begin in (0, half):
            places = ", ".join(f"i32 {begin + i}" for i in range(half))
            places = f"<{half} x i32> <{places}>"
            vectors = [(e.vector(kind), x) for kind, x in zip(kinds, parts)]
            halves.append([e.let(f"shufflevector {v} {x}, {v} poison, {places}") for v, x in vectors])
        if half == 1:
            halves = [
                [e.let(f"extractelement <1 x {kind}> {x}, i32 0") for kind, x in zip(kinds, each)]
                for each in halves
            ]
        e.lanes = half
        parts = reduction.join(e, dtype, *halves)
    result = reduction.give(e, dtype, parts, attributes)
    e.lanes = lanes
    step = cluster.steps[array - len(cluster.inputs)]
    return in_all_lanes(e, kind_of(step.dtype), result)
