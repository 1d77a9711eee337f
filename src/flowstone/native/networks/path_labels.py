"""The most probable labels of time steps (`ops/networks/ctc_decoding.py`) by machine code, on a host.

The code for a type is compiled on a thread when a plan first asks for it; what is called before it is there
waits. Threads share the rows where that is worth it.
"""

from __future__ import annotations

import ctypes
import functools

import torch

from flowstone.framework import dtypes, flags, machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import FLOATS, KINDS
from flowstone.native.codegen.structured import Code

__all__ = ["PathLabels", "path_labels", "path_labels_code"]

WORDS = ("threads", "steps", "rows", "classes", "blank", "merges")
PLACES = {"decode": ("notes", "logits", "lengths", "labels", "counts", "scores")}
"""Logits [steps, rows, classes], `lengths` int64 [rows]; `labels` int64 [rows, steps], of which `counts`
int64 [rows] are kept; `scores`: minus the sum of the largest logits. A note, 0 at first, becomes 1 if a logit
that is looked at is NaN."""
_WORK = 4  # of a logit, in additions


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
        labels = torch.empty((rows, steps), dtype=torch.int64)
        counts, scores = torch.empty(rows, dtype=torch.int64), torch.empty((rows, 1), dtype=logits.dtype)
        note = ctypes.c_int64()
        has_team = logits.numel() * _WORK >= machine.current().profile.native_team
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
    return CodeLibrary(lambda: path_labels_code(dtype), WORDS, PLACES)


def path_labels(dtype: torch.dtype | None) -> PathLabels | None:
    """The function for a type; None if there is none, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype is None:
        return None
    name = dtypes.from_torch(dtype).name
    return PathLabels(name) if name in FLOATS else None


# ---- text


def path_labels_code(dtype: str) -> str:
    """LLVM's text."""
    declarations: dict[str, str] = {}
    e = Code("decode_some", ["ptr a"], 1, declarations)
    a = places_of(e, PLACES["decode"])
    words = words_of(e, a["words"], WORDS)
    kind, steps, classes = KINDS[dtype], words["steps"], words["classes"]
    merges = e.let(f"icmp ne i64 {words['merges']}, 0")
    kept, before = e.variable("i64", "0"), e.variable("i64", "-1")
    best, label = e.variable(kind, e.constant(dtype, 0)), e.variable("i64", "0")
    total, odd = e.variable("double", e.constant("float64", 0)), e.variable("i1", "false")
    _, start, end = my_part(e, words["rows"])
    with e.loop(start, end) as row:
        e.set("i64", kept, "0")
        e.set("i64", before, "-1")
        e.set("double", total, e.constant("float64", 0))
        length = e.get("i64", e.at(a["lengths"], row, "i64"))
        with e.loop(0, length) as step:
            first = e.at(a["logits"], e.mul(e.add(e.mul(step, words["rows"]), row), classes), kind)
            e.set(kind, best, e.get(kind, first))
            e.set("i64", label, "0")
            with e.loop(0, classes) as i:
                x, held = e.get(kind, e.at(first, i, kind)), e.get(kind, best)
                nan = e.compare("fcmp uno", dtype, x, x)
                e.set("i1", odd, e.let(f"or i1 {e.get('i1', odd)}, {nan}"))
                larger = e.compare("fcmp ogt", dtype, x, held)
                e.set(kind, best, e.select(larger, dtype, x, held))
                e.set("i64", label, e.let(f"select i1 {larger}, i64 {i}, i64 {e.get('i64', label)}"))
            found = e.get("i64", label)
            wide = e.convert(e.get(kind, best), dtype, "float64")
            e.set("double", total, e.binary("fadd", "float64", e.get("double", total), wide))
            repeats = e.let(f"icmp eq i64 {found}, {e.get('i64', before)}")
            dropped = e.let(f"and i1 {repeats}, {merges}")
            dropped = e.let(f"or i1 {dropped}, {e.let(f'icmp eq i64 {found}, ' + words['blank'])}")
            e.set("i64", before, found)
            with e.when(e.let(f"xor i1 {dropped}, true")):
                place = e.get("i64", kept)
                e.set("i64", e.at(a["labels"], e.add(e.mul(row, steps), place), "i64"), found)
                e.set("i64", kept, e.add(place, 1))
        e.set("i64", e.at(a["counts"], row, "i64"), e.get("i64", kept))
        score = e.convert(e.negate("float64", e.get("double", total)), "float64", dtype)
        e.set(kind, e.at(a["scores"], row, kind), score)
    with e.when(e.get("i1", odd)):
        e.set("i64", a["notes"], "1")
    parts = [e.text()]
    e = Code("decode", ["ptr a"], 1, declarations, is_public=True)
    share(e, "decode_some")
    return "\n".join([*declarations.values(), *parts, e.text()])
