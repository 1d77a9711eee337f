"""Numbers at equal distances by machine code, with the bits of ATen's kernel for AVX2 and AVX-512.

The first half is counted from the start, the other from the end, each with one rounding, so that both ends
are exact and the numbers never fall back. The code for a type is compiled on a thread when it is first asked
for; until then, and where there is no native tier, `spaced_numbers` is None. Threads share what is worth it.
"""

from __future__ import annotations

import array
import functools
from collections.abc import Callable

import torch

from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, when_asked, words_of
from flowstone.native.codegen.emitter import FLOATS, KINDS, SIZES, Emitter
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, store

__all__ = ["SpacedNumbers", "spaced_numbers", "spaced_numbers_code"]

WORDS = ("threads", "count", "half")
PLACES = {"space": ("ends", "out")}
"""`ends`: the first number and the last."""


class SpacedNumbers:
    """The function for a type of floats."""

    def __init__(self, library: CodeLibrary, dtype: torch.dtype) -> None:
        self._library, self._dtype = library, dtype

    def __call__(self, start: float, stop: float, count: int) -> torch.Tensor:
        """`count` numbers, more than one and less than 2^31, from start to stop."""
        ends = array.array("d" if self._dtype is torch.float64 else "f", [start, stop])
        out = torch.empty(count, dtype=self._dtype)
        has_team = count >= machine.current().profile.native_team
        words = {
            "threads": torch.get_num_threads() if has_team else 1, "count": count, "half": count // 2,
        }  # fmt: skip
        self._library.call("space", words, {"ends": ends.buffer_info()[0], "out": out})
        return out


@functools.cache
def _asked(dtype: torch.dtype) -> Callable[[], SpacedNumbers | None]:
    name = dtypes.from_torch(dtype).name

    def make() -> SpacedNumbers:
        lanes = host.lanes() * SIZES["float32"] // SIZES[name]
        return SpacedNumbers(CodeLibrary(lambda: spaced_numbers_code(name, lanes), WORDS, PLACES), dtype)

    return when_asked(make)


def spaced_numbers(dtype: torch.dtype | None) -> SpacedNumbers | None:
    """What makes numbers of a type; None if it is not there, or not yet."""
    if dtype is None or dtypes.from_torch(dtype).name not in FLOATS:
        return None
    return _asked(dtype)()


# ---- text


def spaced_numbers_code(dtype: str, lanes: int) -> str:
    """LLVM's text for a type."""
    declarations: dict[str, str] = {}
    e = Code("space_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["space"])
    words = words_of(e, a["words"], WORDS)
    _, begin, end = my_part(e, words["count"])
    half, last = words["half"], e.sub(words["count"], 1)
    first, final = (e.get(KINDS[dtype], e.at(a["ends"], i, KINDS[dtype])) for i in range(2))
    steps = e.one.convert(e.let(f"trunc i64 {last} to i32"), "int32", dtype)
    step = e.one.binary("fdiv", dtype, e.one.binary("fsub", dtype, final, first), steps)
    back = e.one.negate(dtype, step)

    def numbers(start: str, stop: str, base: str, by: str, from_end: bool) -> None:
        """Writes base + by k, where k is how far the element is from that end."""
        done = start
        for some in (e, e.one):
            whole = e.mul(e.let(f"sdiv i64 {e.sub(stop, done)}, {some.lanes}"), some.lanes)
            until = e.add(done, e.most(whole, 0))
            with e.loop(done, until, some.lanes) as i:
                k = _distance(some, dtype, e.sub(last, i) if from_end else i, from_end)
                ends = (in_all_lanes(some, KINDS[dtype], each) for each in (by, base))
                store(some, dtype, some.intrinsic("fma", dtype, k, *ends), a["out"], i)
            done = until

    numbers(begin, e.least(end, half), first, step, False)
    numbers(e.most(begin, half), end, final, back, True)
    shared = Code("space", ["ptr a"], lanes, declarations, is_public=True)
    share(shared, "space_some")
    return "\n".join([*declarations.values(), e.text(), shared.text()])


def _distance(e: Emitter, dtype: str, first: str, falls: bool) -> str:
    """The whole numbers from `first`, which rise or fall from lane to lane, as floats."""
    start = in_all_lanes(e, "i32", e.let(f"trunc i64 {first} to i32"))
    if e.lanes > 1:
        places = ", ".join(f"i32 {i}" for i in range(e.lanes))
        start = e.let(f"{'sub' if falls else 'add'} {e.vector('i32')} {start}, <{places}>")
    return e.convert(start, "int32", dtype)
