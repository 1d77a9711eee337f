"""The largest elements of rows by machine code on a host: what TopK does where few are wanted.

A row's largest so far stand in the result, in falling order, equal ones in order of their places, NaN first
(`ops/numbers/ranking.py`). A vector of elements is compared with the last of them at once, and only where one
may be larger they are looked at one by one. Threads share the rows. The code for a type is compiled on a
thread when it is first asked for; until then, and where there is no native tier, `largest` is None.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch

from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, when_asked, words_of
from flowstone.native.codegen.emitter import FLOATS, HALF, KINDS, SIZES, Emitter, kind_of
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load

__all__ = ["Largest", "largest", "largest_code"]

WORDS = ("threads", "rows", "columns", "count")
PLACES = {"find": ("x", "values", "places")}
"""`find` looks for the `count` largest, at least one, of each row of x [rows, columns]; their places are
int32."""
_TYPES = {
    torch.float32: "float32", torch.float64: "float64", torch.int32: "int32", torch.int64: "int64",
    torch.float16: HALF,
}  # fmt: skip
_MOST = 32  # that are wanted of a row; of more, every one that comes moves too many


class Largest:
    """The function for a type of elements."""

    def __init__(self, dtype: str) -> None:
        lanes = host.lanes() * SIZES["float32"] // max(SIZES[dtype], SIZES["float32"])
        self._library = CodeLibrary(lambda: largest_code(dtype, lanes), WORDS, PLACES)

    def __call__(self, x: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The values and the places of a row's largest; None if there are too many, or none."""
        columns = x.shape[-1]
        rows = math.prod(x.shape[:-1])
        if not 0 < count <= min(_MOST, columns) or not rows:
            return None
        has_team = x.numel() >= machine.current().profile.native_team and rows > 1
        values = torch.empty((*x.shape[:-1], count), dtype=x.dtype)
        places = torch.empty(values.shape, dtype=torch.int32)
        words = {
            "threads": torch.get_num_threads() if has_team else 1, "rows": rows, "columns": columns,
            "count": count,
        }  # fmt: skip
        self._library.call("find", words, {"x": x.contiguous(), "values": values, "places": places})
        return values, places


@functools.cache
def _asked(dtype: str) -> Callable[[], Largest | None]:
    return when_asked(lambda: Largest(dtype))


def largest(dtype: torch.dtype | None) -> Largest | None:
    """What finds the largest of rows of a type; None if it is not there, or not yet."""
    return _asked(_TYPES[dtype])() if dtype in _TYPES else None


def largest_code(dtype: str, lanes: int) -> str:
    """LLVM's text."""
    declarations: dict[str, str] = {}
    some = _Rows(dtype, lanes, declarations).text()
    e = Code("find", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "find_some")
    return "\n".join([*declarations.values(), some, e.text()])


class _Rows:
    """A thread's rows."""

    def __init__(self, dtype: str, lanes: int, declarations: dict[str, str]) -> None:
        self.e = e = Code("find_some", ["ptr a"], lanes, declarations)
        self.dtype, self.kind = dtype, kind_of(dtype)
        self.compared = "float32" if dtype == HALF else dtype
        self.a = places_of(e, PLACES["find"])
        self.words = words_of(e, self.a["words"], WORDS)
        self.place = e.variable("i64", "0")

    def text(self) -> str:
        e, count, columns = self.e, self.words["count"], self.words["columns"]
        _, start, end = my_part(e, self.words["rows"])
        with e.loop(start, end) as row:
            x = e.at(self.a["x"], e.mul(row, columns), self.kind)
            self.values = e.at(self.a["values"], e.mul(row, count), self.kind)
            self.places = e.at(self.a["places"], e.mul(row, count), "i32")
            with e.loop(0, count) as i:
                self.put(e.get(self.kind, e.at(x, i, self.kind)), i, i)
            last = e.sub(count, 1)
            whole = e.add(count, e.mul(e.quotient(e.sub(columns, count), e.lanes), e.lanes))
            with e.loop(count, whole, e.lanes) as c:
                worst = self.number(e.one, e.get(self.kind, e.at(self.values, last, self.kind)))
                order = "fcmp ugt" if self.compared in FLOATS else "icmp sgt"
                some = self.number(e, load(e, self.dtype, x, c))
                may_be = e.compare(order, self.compared, some, in_all_lanes(e, KINDS[self.compared], worst))
                bits = e.let(f"bitcast <{e.lanes} x i1> {may_be} to i{e.lanes}")
                with e.when(e.let(f"icmp ne i{e.lanes} {bits}, 0")):
                    self.look(x, c, e.add(c, e.lanes), last)
            self.look(x, whole, columns, last)
        return e.text()

    def look(self, x: str, start: str, end: str, last: str) -> None:
        """Takes what is larger than the last of those so far, in its place."""
        e = self.e
        with e.loop(start, end) as i:
            value = e.get(self.kind, e.at(x, i, self.kind))
            with e.when(self.is_larger(value, e.get(self.kind, e.at(self.values, last, self.kind)))):
                self.put(value, i, last)

    def put(self, value: str, i: str, free: str) -> None:
        """Puts element i where it belongs among those before a free place."""
        e = self.e
        e.set("i64", self.place, free)
        with e.repeat() as leave:
            here = e.get("i64", self.place)
            leave(e.let(f"icmp eq i64 {here}, 0"))
            before = e.sub(here, 1)
            other = e.get(self.kind, e.at(self.values, before, self.kind))
            leave(e.let(f"xor i1 {self.is_larger(value, other)}, true"))
            e.set(self.kind, e.at(self.values, here, self.kind), other)
            e.set("i32", e.at(self.places, here, "i32"), e.get("i32", e.at(self.places, before, "i32")))
            e.set("i64", self.place, before)
        here = e.get("i64", self.place)
        e.set(self.kind, e.at(self.values, here, self.kind), value)
        e.set("i32", e.at(self.places, here, "i32"), e.let(f"trunc i64 {i} to i32"))

    def is_larger(self, a: str, b: str) -> str:
        """Whether a comes before b."""
        e, kind = self.e, KINDS[self.compared]
        a, b = self.number(e.one, a), self.number(e.one, b)
        if self.compared not in FLOATS:
            return e.let(f"icmp sgt {kind} {a}, {b}")
        is_number = e.let(f"fcmp ord {kind} {b}, {b}")
        is_first = e.let(f"and i1 {e.let(f'fcmp uno {kind} {a}, {a}')}, {is_number}")
        return e.let(f"or i1 {is_first}, {e.let(f'fcmp ogt {kind} {a}, {b}')}")

    def number(self, some: Emitter, value: str) -> str:
        """What is compared: of float16, float32."""
        if self.dtype == self.compared:
            return value
        return some.let(f"fpext {some.vector(self.kind)} {value} to {some.type(self.compared)}")
