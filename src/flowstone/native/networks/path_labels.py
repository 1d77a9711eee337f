"""The most probable labels of time steps (`ops/networks/ctc_decoding.py`) by machine code, on a host.

The code for a type is compiled on a thread when a plan first asks for it; what is called before it is there
waits. Threads share the rows where that is worth it.
"""

from __future__ import annotations

import ctypes
import functools
import math

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import FLOATS, KINDS, SIZES
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load

__all__ = ["PathLabels", "path_labels", "path_labels_code"]

WORDS = ("threads", "steps", "rows", "classes", "blank", "merges")
PLACES = {"decode": ("notes", "logits", "lengths", "labels", "counts", "scores")}
"""Logits [steps, rows, classes], `lengths` int64 [rows]; `labels` int64 [rows, steps], of which `counts`
int64 [rows] are kept; `scores`: minus the sum of the largest logits. A note, 0 at first, becomes 1 if a logit
that is looked at is NaN."""
_WORK = 4  # of a logit, in additions
_FAR = 2**31 - 1  # behind all places


class PathLabels:
    """The function for a type."""

    def __init__(self, dtype: str) -> None:
        self._library = _library(dtype)

    def __call__(
        self, logits: torch.Tensor, lengths: torch.Tensor, blank: int, merges: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
        """The labels that are no blank, of a row [steps] one after the other, how many each row has, and the
        scores [rows, 1]; None if a logit is NaN. `merges`: of equal labels that follow each other the first
        is kept."""
        steps, rows, classes = logits.shape
        if classes > _FAR:
            return None
        labels = torch.empty((rows, steps), dtype=torch.int64)
        counts, scores = torch.empty(rows, dtype=torch.int64), torch.empty((rows, 1), dtype=logits.dtype)
        note = ctypes.c_int64()
        looked_at = min(int(lengths.sum()), steps * rows) * classes
        has_team = looked_at * _WORK >= machine.current().profile.native_team
        words = {
            "threads": torch.get_num_threads() if has_team else 1, "steps": steps, "rows": rows,
            "classes": classes, "blank": blank, "merges": int(merges),
        }  # fmt: skip
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "logits": logits.contiguous(),
            "lengths": lengths.long().contiguous(), "labels": labels, "counts": counts, "scores": scores,
        }  # fmt: skip
        self._library.call("decode", words, places)
        return None if note.value else (labels, counts, scores)


@functools.cache
def _library(dtype: str) -> CodeLibrary:
    lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
    return CodeLibrary(lambda: path_labels_code(dtype, lanes), WORDS, PLACES)


def path_labels(dtype: torch.dtype | None) -> PathLabels | None:
    """The function for a type; None if there is none, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype is None:
        return None
    name = dtypes.from_torch(dtype).name
    return PathLabels(name) if name in FLOATS else None


# ---- text


def path_labels_code(dtype: str, lanes: int) -> str:
    """LLVM's text, by vectors of so many lanes."""
    declarations: dict[str, str] = {}
    e = Code("decode_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["decode"])
    words = words_of(e, a["words"], WORDS)
    kind, steps, classes = KINDS[dtype], words["steps"], words["classes"]
    merges = e.let(f"icmp ne i64 {words['merges']}, 0")
    kept, before = e.variable("i64", "0"), e.variable("i64", "-1")
    total = e.variable("double", e.one.constant("float64", 0))
    largest = _Largest(e, dtype, classes)
    _, start, end = my_part(e, words["rows"])
    with e.loop(start, end) as row:
        e.set("i64", kept, "0")
        e.set("i64", before, "-1")
        e.set("double", total, e.one.constant("float64", 0))
        length = e.get("i64", e.at(a["lengths"], row, "i64"))
        with e.loop(0, length) as step:
            first = e.at(a["logits"], e.mul(e.add(e.mul(step, words["rows"]), row), classes), kind)
            best, found = largest.of(first)
            wide = e.one.convert(best, dtype, "float64")
            e.set("double", total, e.one.binary("fadd", "float64", e.get("double", total), wide))
            repeats = e.let(f"icmp eq i64 {found}, {e.get('i64', before)}")
            dropped = e.let(f"and i1 {repeats}, {merges}")
            dropped = e.let(f"or i1 {dropped}, {e.let(f'icmp eq i64 {found}, ' + words['blank'])}")
            e.set("i64", before, found)
            with e.when(e.let(f"xor i1 {dropped}, true")):
                place = e.get("i64", kept)
                e.set("i64", e.at(a["labels"], e.add(e.mul(row, steps), place), "i64"), found)
                e.set("i64", kept, e.add(place, 1))
        e.set("i64", e.at(a["counts"], row, "i64"), e.get("i64", kept))
        score = e.one.convert(e.one.negate("float64", e.get("double", total)), "float64", dtype)
        e.set(kind, e.at(a["scores"], row, kind), score)
    with e.when(largest.has_nan()):
        e.set("i64", a["notes"], "1")
    parts = [e.text()]
    e = Code("decode", ["ptr a"], 1, declarations, is_public=True)
    share(e, "decode_some")
    return "\n".join([*declarations.values(), *parts, e.text()])


class _Largest:
    """The text of the largest of so many logits, and the first place that has it."""

    def __init__(self, e: Code, dtype: str, count: str) -> None:
        self._e, self._dtype, self._count = e, dtype, count
        self._none = e.constant(dtype, -math.inf)
        self._lanes = f"<{', '.join(f'i32 {i}' for i in range(e.lanes))}>"
        self._best = e.variable(e.type(dtype), self._none)
        self._place, self._odd = (e.variable(e.vector(kind), "zeroinitializer") for kind in ("i32", "i1"))

    def of(self, address: str) -> tuple[str, str]:
        """(the largest from an address on, its place)."""
        e, dtype, kinds = self._e, self._dtype, self._e.type(self._dtype)
        e.set(kinds, self._best, self._none)
        e.set(e.vector("i32"), self._place, self._lanes)
        for i, [mask] in e.vectors(self._count):
            x, held = load(e, dtype, address, i, mask), e.get(kinds, self._best)
            is_nan = e.compare("fcmp uno", dtype, x, x)
            e.set(e.vector("i1"), self._odd, e.let(
                f"or {e.vector('i1')} {e.get(e.vector('i1'), self._odd)}, {is_nan}"))  # fmt: skip
            larger = e.compare("fcmp ogt", dtype, x, held)
            if mask:
                larger = e.let(f"and {e.vector('i1')} {larger}, {mask}")
            e.set(kinds, self._best, e.select(larger, dtype, x, held))
            first = in_all_lanes(e, "i32", e.let(f"trunc i64 {i} to i32"))
            places = e.binary("add", "int32", first, self._lanes)
            e.set(e.vector("i32"), self._place, e.select(larger, "int32", places, self._places()))
        vector = e.get(kinds, self._best)
        best = self._reduced("fmax", KINDS[dtype], vector)
        is_best = e.compare("fcmp oeq", dtype, vector, in_all_lanes(e, KINDS[dtype], best))
        places = e.select(is_best, "int32", self._places(), e.constant("int32", _FAR))
        return best, e.let(f"sext i32 {self._reduced('smin', 'i32', places)} to i64")

    def has_nan(self) -> str:
        """Whether one of all that were looked at is NaN."""
        return self._reduced("or", "i1", self._e.get(self._e.vector("i1"), self._odd))

    def _places(self) -> str:
        return self._e.get(self._e.vector("i32"), self._place)

    def _reduced(self, how: str, kind: str, vector: str) -> str:
        suffix = {"float": "f32", "double": "f64"}.get(kind, kind)
        name, whole = f"llvm.vector.reduce.{how}.v{self._e.lanes}{suffix}", self._e.vector(kind)
        self._e.declarations[name] = f"declare {kind} @{name}({whole})"
        no_nan = "nnan " if how == "fmax" else ""
        return self._e.let(f"call {no_nan}{kind} @{name}({whole} {vector})")
