"""LLVM's text of glimpses: windows cut out of images (`ops/images/glimpses.py`).

Threads share the rows of the windows. What is in an image is copied; the rest is left as it is, and noted.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["PLACES", "WORDS", "glimpse_code"]

WORDS = ("threads", "batch", "rows", "columns", "height", "width", "channels")
"""The whole numbers of a call: how many images; the size of a window and of the images."""
PLACES = {"glimpse": ("notes", "numbers", "offsets", "x", "out")}
"""The addresses that the function takes after that of the words, in order. `numbers`: of the rows, then of
the columns, the floats a, b, c, d by which a window begins at ``(offset a) b + c - d``. The first of `notes`,
int64, becomes 1 where a window leaves its image."""
_FLOAT, _FAR = "float32", 2.0**31


def glimpse_code(lanes: int) -> str:
    """The text of the function."""
    declarations: dict[str, str] = {}
    some = _glimpse_some(lanes, declarations)
    e = Code("glimpse", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "glimpse_some")
    return "\n".join([*declarations.values(), some, e.text()])


def _glimpse_some(lanes: int, declarations: dict[str, str]) -> str:
    """A thread's rows of windows."""
    e = Code("glimpse_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["glimpse"])
    words = words_of(e, a["words"], WORDS)
    rows, columns, width, channels = (words[name] for name in ("rows", "columns", "width", "channels"))
    _, start, end = my_part(e, e.mul(words["batch"], rows))
    with e.loop(start, end) as unit:
        image = e.quotient(unit, rows)
        top, left = (_start(e, a, image, axis) for axis in (0, 1))
        row = e.add(top, e.rest(unit, rows))
        first = e.most(e.sub(0, left), 0)
        past = e.least(columns, e.sub(width, left))
        inside = e.within(row, words["height"])
        whole = e.let(f"and i1 {e.let(f'icmp eq i64 {first}, 0')}, {e.let(f'icmp eq i64 {past}, {columns}')}")
        with e.when(e.let(f"xor i1 {e.let(f'and i1 {whole}, {inside}')}, true")):
            e.set("i64", a["notes"], "1")
        with e.when(e.let(f"and i1 {inside}, {e.let(f'icmp slt i64 {first}, {past}')}")):
            line = e.mul(e.add(e.mul(image, words["height"]), row), width)
            source = e.at(a["x"], e.mul(e.add(line, e.add(left, first)), channels))
            to = e.at(a["out"], e.mul(e.add(e.mul(unit, columns), first), channels))
            size = e.mul(e.mul(e.sub(past, first), channels), 4)
            e.declarations["memcpy"] = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
            e.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")
    return e.text()


def _start(e: Code, a: dict[str, str], image: str, axis: int) -> str:
    """Where the window of an image begins; far beyond it where the offset is NaN."""
    one = e.one
    scale, half, plus, minus = (e.get("float", e.at(a["numbers"], 4 * axis + i)) for i in range(4))
    place = e.get("float", e.at(a["offsets"], e.add(e.mul(image, 2), axis)))
    for name, number in (("fmul", scale), ("fmul", half), ("fadd", plus), ("fsub", minus)):
        place = one.binary(name, _FLOAT, place, number)
    far, near = one.constant(_FLOAT, _FAR), one.constant(_FLOAT, -_FAR)
    place = one.select(one.compare("fcmp olt", _FLOAT, place, far), _FLOAT, place, far)
    place = one.select(one.compare("fcmp ogt", _FLOAT, place, near), _FLOAT, place, near)
    return e.let(f"fptosi float {place} to i64")
