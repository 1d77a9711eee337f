"""Numbers at equal distances by machine code, with the bits of ATen's kernels for AVX2 and AVX-512.

Of floats between two ends the first half is counted from the start, the other from the end, each with one
rounding, so that both ends are exact and the numbers never fall back. Those by a step are start + k step:
integers wrap around, floats are rounded twice as float64, and then to their type. The code for a type is
compiled on a thread when it is first asked for; until then, and where there is no native tier,
`spaced_numbers` and `stepped_numbers` are None. Threads share what is worth it.
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

__all__ = [
    "SpacedNumbers",
    "SteppedNumbers",
    "spaced_numbers",
    "spaced_numbers_code",
    "stepped_numbers",
    "stepped_numbers_code",
]

WORDS = ("threads", "count", "half")
PLACES = {"space": ("ends", "out")}
"""`ends`: the first number and the last, or the first one and the step, as int64 or float64."""
STEPPED = {"step": ("ends", "out")}
_STEPPED_FLOATS = {torch.float32: "float", torch.float64: "double"}


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


def _signed(number: float) -> int:
    """The int64 that has the lower 64 bits of an integer."""
    return (int(number) + (1 << 63)) % (1 << 64) - (1 << 63)


class SteppedNumbers:
    """The function for a type of integers, or float32 or float64."""

    def __init__(self, library: CodeLibrary, dtype: torch.dtype) -> None:
        self._library, self._dtype = library, dtype

    def __call__(self, start: float, step: float, count: int) -> torch.Tensor:
        """`count` numbers, from start on."""
        is_float = self._dtype in _STEPPED_FLOATS
        ends = array.array("d", [start, step]) if is_float else array.array("q", map(_signed, (start, step)))
        out = torch.empty(count, dtype=self._dtype)
        has_team = count >= machine.current().profile.native_team
        words = {"threads": torch.get_num_threads() if has_team else 1, "count": count}
        self._library.call("step", words, {"ends": ends.buffer_info()[0], "out": out})
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


@functools.cache
def _asked_by_step(dtype: torch.dtype) -> Callable[[], SteppedNumbers | None]:
    kind = _STEPPED_FLOATS.get(dtype, f"i{8 * dtype.itemsize}")

    def make() -> SteppedNumbers:
        lanes = host.lanes() * SIZES["float32"] // (8 if dtype in _STEPPED_FLOATS else dtype.itemsize)
        library = CodeLibrary(lambda: stepped_numbers_code(kind, lanes), WORDS, STEPPED)
        return SteppedNumbers(library, dtype)

    return when_asked(make)


def stepped_numbers(dtype: torch.dtype | None) -> SteppedNumbers | None:
    """What counts by a step in a type; None if it is not there, or not yet."""
    if dtype is None or not (dtype in _STEPPED_FLOATS or dtypes.from_torch(dtype).is_integer):
        return None
    return _asked_by_step(dtype)()


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


def stepped_numbers_code(kind: str, lanes: int) -> str:
    """LLVM's text for elements that LLVM calls so."""
    declarations: dict[str, str] = {}
    e = Code("step_some", ["ptr a"], lanes, declarations)
    a = places_of(e, STEPPED["step"])
    _, done, end = my_part(e, words_of(e, a["words"], WORDS)["count"])
    given = "double" if kind in ("float", "double") else "i64"
    first, step = (e.get(given, e.at(a["ends"], i, given)) for i in range(2))
    numbers = _float_number if given == "double" else _whole_number
    for some in (e, e.one):
        whole = e.mul(e.let(f"sdiv i64 {e.sub(end, done)}, {some.lanes}"), some.lanes)
        until = e.add(done, whole)
        with e.loop(done, until, some.lanes) as i:
            value = numbers(some, kind, i, first, step)
            e.do(f"store {some.vector(kind)} {value}, ptr {e.at(a['out'], i, kind)}, align 1")
        done = until
    shared = Code("step", ["ptr a"], lanes, declarations, is_public=True)
    share(shared, "step_some")
    return "\n".join([*declarations.values(), e.text(), shared.text()])


def _whole_number(e: Emitter, kind: str, i: str, first: str, step: str) -> str:
    """first + k step from k = i on, lane by lane, as integers of a kind."""
    number = e.let(f"add i64 {first}, {e.let(f'mul i64 {i}, {step}')}")
    if kind != "i64":
        number, step = (e.let(f"trunc i64 {each} to {kind}") for each in (number, step))
    if e.lanes == 1:
        return number
    lanes = ", ".join(f"{kind} {k % (1 << int(kind[1:]))}" for k in range(e.lanes))
    behind = e.let(f"mul {e.vector(kind)} {in_all_lanes(e, kind, step)}, <{lanes}>")
    return e.let(f"add {e.vector(kind)} {in_all_lanes(e, kind, number)}, {behind}")


def _float_number(e: Emitter, kind: str, i: str, first: str, step: str) -> str:
    """The same of float64, made float or left double."""
    wide, k = e.vector("double"), in_all_lanes(e, "double", e.let(f"sitofp i64 {i} to double"))
    if e.lanes > 1:
        k = e.let(f"fadd {wide} {k}, <{', '.join(f'double {n}.0' for n in range(e.lanes))}>")
    number = e.let(f"fmul {wide} {k}, {in_all_lanes(e, 'double', step)}")
    number = e.let(f"fadd {wide} {number}, {in_all_lanes(e, 'double', first)}")
    return number if kind == "double" else e.let(f"fptrunc {wide} {number} to {e.vector(kind)}")
