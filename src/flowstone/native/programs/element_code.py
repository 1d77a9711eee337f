"""LLVM's text of a program's operations by element: neighbours of one size are one loop over vectors."""

from __future__ import annotations

from collections.abc import Sequence

from flowstone.native.codegen.emitter import Emitter
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.programs.open_sizes import is_at_most
from flowstone.native.programs.program_memory import FEW_VECTORS
from flowstone.native.programs.programs import Statement
from flowstone.native.programs.writer import Writer

__all__ = ["write_elements"]


def write_elements(w: Writer, group: Sequence[Statement]) -> None:
    """Writes statements by element of one size: one loop over vectors, or a few vectors, or a scalar."""
    size = w.values[group[0].results[0]].size
    if size == 1:
        _apply(w, group, w.scalars, "0", {})
    elif is_at_most(size, FEW_VECTORS * w.lanes):
        for i in range(-(-size // w.lanes)):
            _apply(w, group, w.vectors, str(i * w.lanes), {})
    else:
        fixed = {x: w.splat(x) for each in group for x in each.operands if w.values[x].size == 1}

        def vector(i: str) -> None:
            place = w.scalars.let(f"mul i64 {i}, {w.lanes}")
            _apply(w, group, w.vectors, place, fixed)

        w.for_each(-(-size // w.lanes), vector)


def _apply(w: Writer, group: Sequence[Statement], e: Emitter, place: str, fixed: dict[int, str]) -> None:
    """The statements for the vector, or scalar, at this place."""
    inside: dict[int, int] = {}
    for each in group:
        for x in each.operands:
            inside[w.values[x].memory] = inside.get(w.values[x].memory, 0) + 1
    computed: dict[int, str] = {}
    for each in group:
        operands = []
        for x in each.operands:
            memory = w.values[x].memory
            if memory in computed:
                operands.append(computed[memory])
            elif e.lanes == 1:
                operands.append(w.load(x))
            elif w.values[x].size == 1:
                operands.append(fixed[x] if x in fixed else w.splat(x))
            else:
                operands.append(w.load_vector(x, place))
        result = each.results[0]
        dtype = w.values[each.operands[-1]].dtype
        found = ELEMENTS[each.op].emit(e, dtype, operands, dict(each.attributes))
        memory = w.values[result].memory
        computed[memory] = found
        if inside.get(memory, 0) == w.reads[memory]:
            continue  # nobody else reads it
        if e.lanes == 1:
            w.store(result, found)
        else:
            w.store_vector(result, found, place)
