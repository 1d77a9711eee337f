"""LLVM's text that reads the lists that a walk has found (`example_code`) into tensors.

A *job* is one output: values of a feature, each row's `width` of them side by side, or, where the width is
-1, all one after the other. What is left of a row is filled: of a missing list with a default value of the
row's width (`step` 1), behind a short one with a padding element (`step` 0). Values may come with their
places, [row, place in the row] or, of one message, the latter alone, and the shape that these are in.
"""

from __future__ import annotations

from flowstone.native.codegen.structured import Code
from flowstone.native.records.example_code import BYTES, ENTRY, FIRST, FLOATS, INTEGERS, SINGLE, SUMMARY
from flowstone.native.records.wire_code import byte, moved, number, until, walked

__all__ = ["JOB", "reading_code"]

JOB = ("feature", "kind", "width", "fill", "step", "out", "places", "rank", "shape")
"""The words of a job. `fill`, `out`, `places` and `shape` are addresses; 0 is none."""
_MEMCPY = "llvm.memcpy.p0.p0.i64"
_KINDS = {BYTES: ("ptr", 8), FLOATS: ("i32", 4), INTEGERS: ("i64", 8)}


def reading_code(declarations: dict[str, str]) -> list[str]:
    """The functions of ``read(found, rows, features, jobs, count)``, which does all jobs. The first word of
    `found` becomes 1 where there is no memory for an object. With Python's lock where a job makes some."""
    declarations[_MEMCPY] = f"declare void @{_MEMCPY}(ptr, ptr, i64, i1)"
    declarations["objects"] = "\n".join([
        "declare ptr @PyBytes_FromStringAndSize(ptr, i64)", "declare void @Py_IncRef(ptr)",
        "declare void @Py_DecRef(ptr)",
    ])  # fmt: skip
    e = Code(
        "read", ["ptr found", "i64 rows", "i64 features", "ptr jobs", "i64 count"], 1, declarations,
        is_public=True,
    )  # fmt: skip
    first = e.at("%found", e.add(e.mul("%features", len(SUMMARY)), 1), "i64")
    pitch = e.mul("%features", len(ENTRY))
    e.set("i64", "%found", "0")
    with e.loop(0, "%count") as i:
        job = e.at("%jobs", e.mul(i, len(JOB)), "i64")
        entries = e.at(first, e.mul(e.word(job, JOB.index("feature")), len(ENTRY)), "i64")
        kind = e.word(job, JOB.index("kind"))
        for each in _KINDS:
            with e.when(e.let(f"icmp eq i64 {kind}, {each}")):
                e.do(f"call void @read_{each}(ptr {job}, ptr {entries}, i64 %rows, i64 {pitch}, ptr %found)")
        with e.when(e.let(f"icmp ne i64 {e.word(job, JOB.index('rank'))}, 0")):
            e.do(f"call void @places(ptr {job}, ptr {entries}, i64 %rows, i64 {pitch})")
    readers = [_reader(kind, declarations) for kind in _KINDS]
    return [*readers, _places_code(declarations), e.text()]


def _reader(kind: int, declarations: dict[str, str]) -> str:
    unit, width = _KINDS[kind]
    e = Code(
        f"read_{kind}", ["ptr job", "ptr entries", "i64 rows", "i64 pitch", "ptr status"], 1, declarations
    )
    row_width, step = e.word("%job", JOB.index("width")), e.word("%job", JOB.index("step"))
    fill = e.pointer("%job", JOB.index("fill"))
    out = e.variable("ptr", e.pointer("%job", JOB.index("out")))
    with e.loop(0, "%rows") as row:
        entry = e.at("%entries", e.mul(row, "%pitch"), "i64")
        count = e.most(e.get("i64", entry), 0)
        start = e.get("ptr", out)
        with e.when(e.let(f"icmp ne i64 {count}, 0")):
            cursor = e.variable("ptr", e.pointer(entry, 1))
            end = e.at(e.get("ptr", cursor), e.word(entry, 2), "i8")
            with until(e, cursor, end):
                _READERS[kind](e, cursor, end, out)
        with e.loop(count, row_width) as i:
            value = e.get(unit, e.at(fill, e.mul(i, step), unit))
            if kind == BYTES:
                e.do(f"call void @Py_IncRef(ptr {value})")
                _put_object(e, e.at(start, i, unit), value)
            else:
                e.set(unit, e.at(start, i, unit), value)
        with e.when(e.let(f"icmp sgt i64 {row_width}, 0")):
            e.set("ptr", out, e.at(start, e.mul(row_width, width), "i8"))
    return e.text()


def _read_bytes(e: Code, cursor: str, end: str, out: str) -> None:
    moved(e, cursor, 1)
    length = number(e, cursor, end, walked, 5)
    made = e.let(f"call ptr @PyBytes_FromStringAndSize(ptr {e.get('ptr', cursor)}, i64 {length})")
    moved(e, cursor, length)
    with e.when(e.let(f"icmp eq ptr {made}, null")):
        e.set("i64", "%status", "1")
    with e.when(e.let(f"icmp ne ptr {made}, null")):
        _put_object(e, e.get("ptr", out), made)
    moved(e, out, 8)


def _put_object(e: Code, place: str, value: str) -> None:
    """Puts an object that is counted already to where another one may be."""
    before = e.get("ptr", place)
    e.set("ptr", place, value)
    with e.when(e.let(f"icmp ne ptr {before}, null")):
        e.do(f"call void @Py_DecRef(ptr {before})")


def _read_floats(e: Code, cursor: str, end: str, out: str) -> None:
    tag, part = byte(e, cursor, end, walked), e.variable("i64", "4")
    with e.when(e.let(f"icmp eq i64 {tag}, {FIRST}")):
        e.set("i64", part, number(e, cursor, end, walked, 5))
    length = e.get("i64", part)
    source, to = e.get("ptr", cursor), e.get("ptr", out)
    is_one = e.let(f"icmp eq i64 {length}, 4")
    with e.when(is_one):
        e.do(f"store i32 {e.let(f'load i32, ptr {source}, align 1')}, ptr {to}, align 4")
    with e.when(e.let(f"xor i1 {is_one}, true")):
        e.do(f"call void @{_MEMCPY}(ptr {to}, ptr {source}, i64 {length}, i1 false)")
    moved(e, cursor, length)
    moved(e, out, length)


def _read_integers(e: Code, cursor: str, end: str, out: str) -> None:
    tag = byte(e, cursor, end, walked)
    stop = e.variable("ptr", e.get("ptr", cursor))
    is_single = e.let(f"icmp eq i64 {tag}, {SINGLE[INTEGERS]}")
    with e.when(is_single):
        _read_integer(e, cursor, end, out)
        e.set("ptr", stop, e.get("ptr", cursor))
    with e.when(e.let(f"xor i1 {is_single}, true")):
        length = number(e, cursor, end, walked, 5)
        e.set("ptr", stop, e.at(e.get("ptr", cursor), length, "i8"))
    with until(e, cursor, e.get("ptr", stop)):
        _read_integer(e, cursor, end, out)


def _read_integer(e: Code, cursor: str, end: str, out: str) -> None:
    e.set("i64", e.get("ptr", out), number(e, cursor, end, walked, 10))
    moved(e, out, 8)


_READERS = {BYTES: _read_bytes, FLOATS: _read_floats, INTEGERS: _read_integers}


def _places_code(declarations: dict[str, str]) -> str:
    """``places(job, entries, rows, pitch)``: the places of all values, and their shape."""
    e = Code("places", ["ptr job", "ptr entries", "i64 rows", "i64 pitch"], 1, declarations)
    out = e.variable("ptr", e.pointer("%job", JOB.index("places")))
    is_batch = e.let(f"icmp eq i64 {e.word('%job', JOB.index('rank'))}, 2")
    most = e.variable("i64", "0")
    with e.loop(0, "%rows") as row:
        count = e.most(e.get("i64", e.at("%entries", e.mul(row, "%pitch"), "i64")), 0)
        e.set("i64", most, e.most(e.get("i64", most), count))
        with e.loop(0, count) as i:
            with e.when(is_batch):
                e.set("i64", e.get("ptr", out), row)
                moved(e, out, 8)
            e.set("i64", e.get("ptr", out), i)
            moved(e, out, 8)
    shape = e.variable("ptr", e.pointer("%job", JOB.index("shape")))
    with e.when(is_batch):
        e.set("i64", e.get("ptr", shape), "%rows")
        moved(e, shape, 8)
    e.set("i64", e.get("ptr", shape), e.get("i64", most))
    return e.text()
