"""Products of matrices of int32, with its wrap-around, by machine code on a host: ATen has plain loops.

Tiles of six rows and two vectors of columns stay in registers. Threads share the rows. The code is compiled
on a thread when it is first asked for; until then, and where there is no native tier, `integer_matrices` is
None.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, when_asked, words_of
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store

__all__ = ["IntegerMatrices", "integer_matrices", "integer_matrices_code"]

WORDS = ("threads", "rows", "inner", "columns", "row_step", "inner_step", "second_step")
"""Sizes of a [rows, inner] and b [inner, columns], and how far the rows and the columns of a lie apart, and
the rows of b, whose columns are neighbours."""
PLACES = {"multiply": ("a", "b", "out")}
_KIND, _ROWS, _VECTORS = "int32", 6, 2
_INNER = (
    512  # terms that are added up before the next columns are looked at, whose factors then stay in a cache
)
_FEWEST = 1 << 14  # products, fewer of which ATen adds up in the time of a call


class IntegerMatrices:
    """`number_code.IntegerMatrices` by machine code."""

    def __init__(self) -> None:
        self._lanes = host.lanes()
        self._library = CodeLibrary(lambda: integer_matrices_code(self._lanes), WORDS, PLACES)

    def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """See `number_code.IntegerMatrices`."""
        (rows, inner), columns = a.shape, b.shape[1]
        work = rows * inner * columns
        if work < _FEWEST or inner != b.shape[0] or rows < _ROWS or columns < self._lanes:
            return torch.mm(a, b)  # which has an error for sizes that do not fit
        b = b if b.stride(1) == 1 else b.contiguous()
        has_team = work >= machine.current().profile.native_team
        out = torch.zeros((rows, columns), dtype=torch.int32)
        words = {
            "threads": torch.get_num_threads() if has_team else 1, "rows": rows, "inner": inner,
            "columns": columns, "row_step": a.stride(0), "inner_step": a.stride(1),
            "second_step": b.stride(0),
        }  # fmt: skip
        self._library.call("multiply", words, {"a": a, "b": b, "out": out})
        return out


integer_matrices = when_asked(IntegerMatrices)
"""The machine code, if it is there by now."""


# ---- text


def integer_matrices_code(lanes: int) -> str:
    """LLVM's text of ``multiply``, which adds to what is in ``out``."""
    declarations: dict[str, str] = {}
    some = _Rows(lanes, declarations).text()
    e = Code("multiply", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "multiply_some")
    return "\n".join([*declarations.values(), some, e.text()])


class _Rows:
    """A thread's rows."""

    def __init__(self, lanes: int, declarations: dict[str, str]) -> None:
        self.e = Code("multiply_some", ["ptr a"], lanes, declarations)
        self.a = places_of(self.e, PLACES["multiply"])
        self.words = words_of(self.e, self.a["words"], WORDS)

    def text(self) -> str:
        e, words = self.e, self.words
        blocks = e.quotient(e.add(words["rows"], _ROWS - 1), _ROWS)
        _, start, end = my_part(e, blocks)
        first, last = e.mul(start, _ROWS), e.least(e.mul(end, _ROWS), words["rows"])
        whole_rows = e.add(first, e.mul(e.quotient(e.sub(last, first), _ROWS), _ROWS))
        width = _VECTORS * e.lanes
        whole = e.mul(e.quotient(words["columns"], width), width)
        with e.loop(0, words["inner"], _INNER) as k:
            terms = k, e.least(e.add(k, _INNER), words["inner"])
            for begin, until, step in (("0", whole, width), (whole, words["columns"], e.lanes)):
                with e.loop(begin, until, step) as c:
                    masks = [""] * _VECTORS if step == width else [e.mask(e.sub(words["columns"], c))]
                    with e.loop(first, whole_rows, _ROWS) as row:
                        self.tile(row, _ROWS, c, masks, terms)
                    with e.loop(whole_rows, last) as row:
                        self.tile(row, 1, c, masks, terms)
        return e.text()

    def tile(self, row: str, count: int, column: str, masks: Sequence[str], terms: tuple[str, str]) -> None:
        """Adds some terms of so many rows and a vector of columns a mask."""
        e, words, kind = self.e, self.words, self.e.type(_KIND)
        rows = [e.add(row, i) for i in range(count)]
        columns = [e.add(column, i * e.lanes) for i in range(len(masks))]
        places = [[e.add(e.mul(each, words["columns"]), c) for c in columns] for each in rows]
        totals = [
            [e.variable(kind, load(e, _KIND, self.a["out"], at, mask)) for at, mask in zip(line, masks)]
            for line in places
        ]
        begins = [e.mul(each, words["row_step"]) for each in rows]
        with e.loop(*terms) as k:
            second = e.mul(k, words["second_step"])
            factors = [load(e, _KIND, self.a["b"], e.add(second, c), mask) for c, mask in zip(columns, masks)]
            along = e.mul(k, words["inner_step"])
            for begin, line in zip(begins, totals):
                number = in_all_lanes(e, "i32", e.get("i32", e.at(self.a["a"], e.add(begin, along), "i32")))
                for total, factor in zip(line, factors):
                    term = e.let(f"mul {kind} {number}, {factor}")
                    e.set(kind, total, e.let(f"add {kind} {e.get(kind, total)}, {term}"))
        for line, at in zip(totals, places):
            for total, place, mask in zip(line, at, masks):
                store(e, _KIND, e.get(kind, total), self.a["out"], place, mask)
