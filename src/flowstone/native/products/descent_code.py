"""LLVM's text of a layer's gradient together with the descent of its weights, in one pass over these.

Of few examples x [rows, inputs] with the gradient dy [rows, outputs] of their results, for large weights
[inputs, outputs]:

    dx = dy weights',    weights += scaled dy,    scaled [inputs, rows] = - rate x'

A thread has some inputs, all outputs of them, a stretch after the other: of each a few rows of weights are
fetched into the nearest cache, multiplied by dy for dx, and added to.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["PLACES", "STRETCH", "WORDS", "descent_code"]

WORDS = ("threads", "rows", "inputs", "outputs")
"""The whole numbers of a call; `outputs` are in whole vectors."""
PLACES = {"descend": ("weights", "scaled", "dy", "dx")}
"""The addresses that the function takes after that of the numbers, in order; dx is 0 at first."""
STRETCH = 256
"""Outputs that are taken at once: so many of all rows of dy stay in the nearest cache."""
_ROWS = 6  # of weights, at once
_LINE = 16  # elements


def descent_code(lanes: int) -> str:
    """The text of the function of `PLACES`."""
    declarations: dict[str, str] = {}
    vectors, examples = (4, 4) if lanes == 16 else (2, 2)  # as many sums as there are registers
    parts = []
    for rows in (_ROWS, 1):
        for count in (examples, 1):
            parts.append(_dots(rows, count, lanes, declarations))
        for count in (vectors, 1):
            parts.append(_product(rows, count, lanes, declarations))
        parts.append(_block(rows, examples, vectors, lanes, declarations))
    parts.append(_descend_some(lanes, declarations))
    e = Code("descend", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "descend_some")
    return "\n".join([*declarations.values(), *parts, e.text()])


def _dots(rows: int, examples: int, lanes: int, declarations: dict[str, str]) -> str:
    """Adds to dx the products of rows of weights and of dy, of `count` outputs."""
    parameters = ["ptr w", "i64 outputs", "ptr dy", "i64 count", "ptr dx", "i64 inputs"]
    e = Code(f"dots{rows}x{examples}", parameters, lanes, declarations)
    totals = [[e.variable(e.wide, e.number(0.0)) for _ in range(rows)] for _ in range(examples)]
    weights = [e.at("%w", e.mul("%outputs", i)) for i in range(rows)]
    flows = [e.at("%dy", e.mul("%outputs", i)) for i in range(examples)]
    with e.loop(0, "%count", lanes) as n:
        given = [e.read(e.at(flow, n)) for flow in flows]
        for i, row in enumerate(weights):
            x = e.read(e.at(row, n))
            for j, flow in enumerate(given):
                e.set(e.wide, totals[j][i], e.fma(x, flow, e.get(e.wide, totals[j][i])))
    name = f"llvm.vector.reduce.fadd.v{lanes}f32"
    declarations[name] = f"declare float @{name}(float, {e.wide})"
    for j, sums in enumerate(totals):
        to = e.at("%dx", e.mul("%inputs", j))
        for i, total in enumerate(sums):
            place = e.at(to, i)
            value = e.let(f"call reassoc float @{name}(float -0.0, {e.wide} {e.get(e.wide, total)})")
            e.set("float", place, e.let(f"fadd float {e.get('float', place)}, {value}"))
    return e.text()


def _product(rows: int, vectors: int, lanes: int, declarations: dict[str, str]) -> str:
    """Adds to so many rows and vectors of weights the product of `scaled` and dy, of `count` examples."""
    parameters = ["ptr w", "i64 outputs", "ptr scaled", "ptr dy", "i64 count"]
    e = Code(f"product{rows}x{vectors}", parameters, lanes, declarations)
    starts = [e.at("%w", e.mul("%outputs", i)) for i in range(rows)]
    factors = [e.at("%scaled", e.mul("%count", i)) for i in range(rows)]
    totals = [[e.variable(e.wide, e.number(0.0)) for _ in range(vectors)] for _ in range(rows)]
    with e.loop(0, "%count") as b:
        flow = e.at("%dy", e.mul(b, "%outputs"))
        given = [e.read(e.at(flow, i * lanes)) for i in range(vectors)]
        for factor, sums in zip(factors, totals):
            x = e.splat(e.get("float", e.at(factor, b)))
            for total, other in zip(sums, given):
                e.set(e.wide, total, e.fma(x, other, e.get(e.wide, total)))
    for start, sums in zip(starts, totals):
        for i, total in enumerate(sums):
            place = e.at(start, i * lanes)
            e.write(place, e.plus(e.read(place), e.get(e.wide, total)))
    return e.text()


def _block(rows: int, examples: int, vectors: int, lanes: int, declarations: dict[str, str]) -> str:
    """All that is done with so many rows of weights, of a stretch of outputs."""
    parameters = ["ptr w", "i64 outputs", "ptr scaled", "ptr dy", "i64 examples", "i64 count", "ptr dx",
                  "i64 inputs"]  # fmt: skip
    e = Code(f"block{rows}", parameters, lanes, declarations)
    declarations["llvm.prefetch.p0"] = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
    following = e.at("%w", e.mul("%outputs", rows))
    with e.loop(0, "%count", _LINE) as n:
        for i in range(rows):
            place = e.at(e.at(following, e.mul("%outputs", i)), n)
            e.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 1, i32 2, i32 1)")
    whole = e.mul(e.quotient("%examples", examples), examples)
    for first, last, count in (("0", whole, examples), (whole, "%examples", 1)):
        with e.loop(first, last, count) as b:
            flow, to = e.at("%dy", e.mul(b, "%outputs")), e.at("%dx", e.mul(b, "%inputs"))
            e.do(f"call void @dots{rows}x{count}(ptr %w, i64 %outputs, ptr {flow}, i64 %count, ptr {to}, "
                 "i64 %inputs)")  # fmt: skip
    size = vectors * lanes
    whole = e.mul(e.quotient("%count", size), size)
    for first, last, width in (("0", whole, vectors), (whole, "%count", 1)):
        with e.loop(first, last, width * lanes) as n:
            e.do(f"call void @product{rows}x{width}(ptr {e.at('%w', n)}, i64 %outputs, ptr %scaled, "
                 f"ptr {e.at('%dy', n)}, i64 %examples)")  # fmt: skip
    return e.text()


def _descend_some(lanes: int, declarations: dict[str, str]) -> str:
    """A thread's inputs."""
    e = Code("descend_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["descend"])
    words = words_of(e, a["words"], WORDS)
    rows, inputs, outputs = words["rows"], words["inputs"], words["outputs"]
    _, start, end = my_part(e, e.quotient(e.add(inputs, _ROWS - 1), _ROWS))
    start, end = e.mul(start, _ROWS), e.least(e.mul(end, _ROWS), inputs)
    whole = e.add(start, e.mul(e.quotient(e.sub(end, start), _ROWS), _ROWS))
    with e.loop(0, outputs, STRETCH) as n:
        count = e.least(STRETCH, e.sub(outputs, n))
        dy = e.at(a["dy"], n)
        for first, last, size in ((start, whole, _ROWS), (whole, end, 1)):
            with e.loop(first, last, size) as k:
                w = e.at(a["weights"], e.add(e.mul(k, outputs), n))
                scaled = e.at(a["scaled"], e.mul(k, rows))
                e.do(f"call void @block{size}(ptr {w}, i64 {outputs}, ptr {scaled}, ptr {dy}, "
                     f"i64 {rows}, i64 {count}, ptr {e.at(a['dx'], k)}, i64 {inputs})")  # fmt: skip
    return e.text()
