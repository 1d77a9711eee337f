"""Running sums of the weights that logits give classes, by machine code, on a host.

The code for a type is compiled on a thread when a plan first asks for it; what is called before it is there
waits. Threads share the rows where that is worth it. Bits are those of ATen's kernels
(`ops/randomness/class_weights.py`).
"""

from __future__ import annotations

import ctypes
import functools

import torch

from flowstone.framework import dtypes, flags, machine
from flowstone.native import host
from flowstone.native.code_library import CodeLibrary, my_part, places_of, share, words_of
from flowstone.native.emitter import FLOATS, KINDS, Emitter, sleef_name
from flowstone.native.structured import Code
from flowstone.native.vector_memory import in_all_lanes, load, store

__all__ = ["RunningWeights", "running_weights", "running_weights_code"]

WORDS = ("threads", "rows", "classes")
PLACES = {"weigh": ("notes", "logits", "out")}
"""`out` float64, as the logits [rows, classes]; a note, 0 at first, becomes 1 if a row's largest logit is not
finite, or one is NaN."""
_WORK = 40  # of a logit, in additions
_WIDE = "float64"


class RunningWeights:
    """The function for a type."""

    def __init__(self, dtype: str) -> None:
        self._library = _library(dtype)

    def __call__(self, logits: torch.Tensor) -> torch.Tensor | None:
        """The sums, float64; None if a row's largest logit is not finite, or one is NaN."""
        rows, classes = logits.shape
        out, note = torch.empty(logits.shape, dtype=torch.float64), ctypes.c_int64()
        has_team = logits.numel() * _WORK >= machine.current().profile.native_team
        threads = torch.get_num_threads() if has_team else 1
        words = {"threads": threads, "rows": rows, "classes": classes}
        places = {"notes": ctypes.addressof(note), "logits": logits.contiguous(), "out": out}
        self._library.call("weigh", words, places)
        return None if note.value else out


@functools.cache
def _library(dtype: str) -> CodeLibrary:
    return CodeLibrary(lambda: running_weights_code(dtype, host.lanes() // 2), WORDS, PLACES)


def running_weights(dtype: torch.dtype | None) -> RunningWeights | None:
    """The function for a type; None if there is none, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype is None or not host.has(sleef_name("exp", _WIDE)):
        return None
    name = dtypes.from_torch(dtype).name
    return RunningWeights(name) if name in FLOATS else None


# ---- text


def running_weights_code(dtype: str, lanes: int) -> str:
    """LLVM's text, by vectors of so many float64."""
    declarations: dict[str, str] = {}
    e = Code("weigh_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["weigh"])
    words = words_of(e, a["words"], WORDS)
    classes = words["classes"]
    whole = e.mul(e.quotient(classes, lanes), lanes)
    parts = ((e, "0", whole), (e.one, whole, classes))
    _, start, end = my_part(e, words["rows"])
    with e.loop(start, end) as row:
        first = e.mul(row, classes)
        top, is_fine = _largest(e, dtype, a["logits"], first, parts)
        with e.when(e.let(f"xor i1 {is_fine}, true")):
            e.set("i64", a["notes"], "1")
        top = e.one.convert(top, dtype, _WIDE)
        wide_top = in_all_lanes(e, KINDS[_WIDE], top)
        for some, begin, until in parts:
            with e.loop(begin, until, some.lanes) as i:
                place = e.add(first, i)
                x = some.convert(load(some, dtype, a["logits"], place), dtype, _WIDE)
                x = some.binary("fsub", _WIDE, x, top if some.lanes == 1 else wide_top)
                store(some, _WIDE, some.sleef("exp", _WIDE, x), a["out"], place)
        total = e.variable("double", e.one.constant(_WIDE, 0))
        with e.loop(0, classes) as i:
            place = e.at(a["out"], e.add(first, i), "double")
            sum_ = e.one.binary("fadd", _WIDE, e.get("double", total), e.get("double", place))
            e.set("double", total, sum_)
            e.set("double", place, sum_)
    texts = [e.text()]
    e = Code("weigh", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "weigh_some")
    return "\n".join([*declarations.values(), *texts, e.text()])


def _largest(
    e: Code, dtype: str, logits: str, first: str, parts: tuple[tuple[Emitter, str, str], ...]
) -> tuple[str, str]:
    """A row's largest number, and whether it is finite and no number is NaN."""
    low, kind = float("-inf"), KINDS[dtype]
    best = {some.lanes: e.variable(some.type(dtype), some.constant(dtype, low)) for some, _, _ in parts}
    odd = {some.lanes: e.variable(some.vector("i1"), some.constant("bool", False)) for some, _, _ in parts}
    for some, begin, until in parts:
        mine, bad = best[some.lanes], odd[some.lanes]
        e.set(some.type(dtype), mine, some.constant(dtype, low))
        e.set(some.vector("i1"), bad, some.constant("bool", False))
        with e.loop(begin, until, some.lanes) as i:
            x = load(some, dtype, logits, e.add(first, i))
            held, bits = e.get(some.type(dtype), mine), some.vector("i1")
            larger = some.select(some.compare("fcmp ogt", dtype, x, held), dtype, x, held)
            e.set(some.type(dtype), mine, larger)
            nan = some.compare("fcmp uno", dtype, x, x)
            e.set(bits, bad, e.let(f"or {bits} {e.get(bits, bad)}, {nan}"))
    suffix = f"v{e.lanes}{'f32' if dtype == 'float32' else 'f64'}"
    vector = e.type(dtype)
    top = e.call(f"llvm.vector.reduce.fmax.{suffix}", kind, [(vector, e.get(vector, best[e.lanes]))])
    rest = e.get(kind, best[1])
    top = e.one.select(e.one.compare("fcmp ogt", dtype, rest, top), dtype, rest, top)
    bits = e.vector("i1")
    nan = e.call(f"llvm.vector.reduce.or.v{e.lanes}i1", "i1", [(bits, e.get(bits, odd[e.lanes]))])
    nan = e.let(f"or i1 {nan}, {e.get('i1', odd[1])}")
    size = e.one.intrinsic("fabs", dtype, top)
    finite = e.one.compare("fcmp olt", dtype, size, e.one.constant(dtype, float("inf")))
    return top, e.let(f"and i1 {finite}, {e.let(f'xor i1 {nan}, true')}")
