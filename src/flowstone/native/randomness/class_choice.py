"""Random choices of classes by their logits, by machine code, on a host.

The code for a type is compiled on a thread when a plan first asks for it; what is called before it is there
waits. Threads share the rows where that is worth it. Each has room for the running sums of one row, which the
nearest cache keeps; their bits are those of ATen's kernels (`ops/randomness/class_weights.py`).
"""

from __future__ import annotations

import ctypes
import functools

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import FLOATS, KINDS, Emitter, sleef_name
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store

__all__ = ["ClassChoice", "class_choice", "class_choice_code"]

WORDS = ("threads", "rows", "classes", "samples")
PLACES = {"draw": ("notes", "logits", "uniform", "sums", "out")}
"""Of logits [rows, classes] and numbers of [0, 1), float64 [rows, samples]: `out` int64 is the first class
whose running sum is above the number's part of the last sum, or the last class. `sums` float64 [threads,
classes + _APART]. A note, 0 at first, becomes 1 if a row's largest logit is not finite, or one is NaN."""
_APART = 16  # numbers between what different threads write, so that cores do not take lines from each other
_WORK = 40  # of a logit, in additions
_WIDE = "float64"


class ClassChoice:
    """The function for a type."""

    def __init__(self, dtype: str) -> None:
        self._library = _library(dtype)

    def __call__(self, logits: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor | None:
        """The classes, int64, of [rows, classes] that numbers [rows, samples] choose; None if a row's largest
        logit is not finite, or one is NaN."""
        (rows, classes), samples = logits.shape, uniform.shape[1]
        out, note = torch.empty(uniform.shape, dtype=torch.int64), ctypes.c_int64()
        has_team = (logits.numel() + uniform.numel()) * _WORK >= machine.current().profile.native_team
        threads = torch.get_num_threads() if has_team else 1
        words = {"threads": threads, "rows": rows, "classes": classes, "samples": samples}
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "logits": logits.contiguous(), "uniform": uniform.contiguous(),
            "sums": torch.empty((threads, classes + _APART), dtype=torch.float64), "out": out,
        }  # fmt: skip
        self._library.call("draw", words, places)
        return None if note.value else out


@functools.cache
def _library(dtype: str) -> CodeLibrary:
    return CodeLibrary(lambda: class_choice_code(dtype, host.lanes() // 2), WORDS, PLACES)


def class_choice(dtype: torch.dtype | None) -> ClassChoice | None:
    """The function for a type; None if there is none, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype is None or not host.has(sleef_name("exp", _WIDE)):
        return None
    name = dtypes.from_torch(dtype).name
    return ClassChoice(name) if name in FLOATS else None


# ---- text


def class_choice_code(dtype: str, lanes: int) -> str:
    """LLVM's text, by vectors of so many float64."""
    declarations: dict[str, str] = {}
    e = Code("draw_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["draw"])
    words = words_of(e, a["words"], WORDS)
    classes, samples = words["classes"], words["samples"]
    me, start, end = my_part(e, words["rows"])
    sums = e.at(a["sums"], e.mul(me, e.add(classes, _APART)), "double")
    place, left = e.variable("i64", "0"), e.variable("i64", "0")
    total = e.variable("double", e.one.constant(_WIDE, 0))
    with e.loop(start, end) as row:
        _weigh(e, dtype, a, e.mul(row, classes), classes, sums, total)
        with e.loop(0, samples) as i:
            sample = e.add(e.mul(row, samples), i)
            part = e.get("double", e.at(a["uniform"], sample, "double"))
            wanted = e.one.binary("fmul", _WIDE, part, e.get("double", total))
            found = _first_above(e, sums, classes, wanted, place, left)
            e.set("i64", e.at(a["out"], sample, "i64"), e.least(found, e.sub(classes, 1)))
    texts = [e.text()]
    e = Code("draw", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "draw_some")
    return "\n".join([*declarations.values(), *texts, e.text()])


def _weigh(e: Code, dtype: str, a: dict[str, str], first: str, classes: str, sums: str, total: str) -> None:
    """Writes the running sums of a row, whose logits begin at place `first`, and the last of them."""
    whole = e.mul(e.quotient(classes, e.lanes), e.lanes)
    parts = ((e, "0", whole), (e.one, whole, classes))
    top, is_fine = _largest(e, dtype, a["logits"], first, parts)
    with e.when(e.let(f"xor i1 {is_fine}, true")):
        e.set("i64", a["notes"], "1")
    top = e.one.convert(top, dtype, _WIDE)
    wide_top = in_all_lanes(e, KINDS[_WIDE], top)
    for some, begin, until in parts:
        with e.loop(begin, until, some.lanes) as i:
            x = some.convert(load(some, dtype, a["logits"], e.add(first, i)), dtype, _WIDE)
            x = some.binary("fsub", _WIDE, x, top if some.lanes == 1 else wide_top)
            store(some, _WIDE, some.sleef("exp", _WIDE, x), sums, i)
    e.set("double", total, e.one.constant(_WIDE, 0))
    with e.loop(0, classes) as i:
        place = e.at(sums, i, "double")
        so_far = e.one.binary("fadd", _WIDE, e.get("double", total), e.get("double", place))
        e.set("double", total, so_far)
        e.set("double", place, so_far)


def _first_above(e: Code, sums: str, count: str, wanted: str, place: str, left: str) -> str:
    """The place of the first sum above a number: a search by halves, without branches, in two variables."""

    def skip(number: str, last: str) -> None:
        """Goes past so many sums if the last of them is not above."""
        here = e.get("i64", place)
        seen = e.get("double", e.at(sums, e.add(here, last), "double"))
        mask = e.let(f"sext i1 {e.one.compare('fcmp ole', _WIDE, seen, wanted)} to i64")
        e.set("i64", place, e.add(here, e.let(f"and i64 {mask}, {number}")))

    e.set("i64", place, "0")
    e.set("i64", left, count)
    with e.repeat() as leave:
        rest = e.get("i64", left)
        leave(e.let(f"icmp slt i64 {rest}, 2"))
        half = e.quotient(rest, 2)
        skip(half, e.sub(half, 1))
        e.set("i64", left, e.sub(rest, half))
    skip("1", "0")
    return e.get("i64", place)


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
