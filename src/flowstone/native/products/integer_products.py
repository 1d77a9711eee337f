"""Products of quantised integers, each less the one that stands for zero, by machine code, on a host.

The code for two types is compiled on a thread when a plan first asks for it; what is called before it is
there waits. Threads share what is worth it.
"""

from __future__ import annotations

import functools

import torch

from flowstone.framework import flags, machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import Emitter
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes

__all__ = ["IntegerProduct", "integer_product", "integer_product_code"]

WORDS = ("threads", "count", "first", "second")
"""How many elements, and what stands for zero in both."""
PLACES = {"multiply": ("x", "y", "out")}
_INTEGERS = {
    torch.uint8: ("i8", "zext"), torch.int8: ("i8", "sext"), torch.uint16: ("i16", "zext"),
    torch.int16: ("i16", "sext"),
}  # fmt: skip
_WORK = 4  # of an element, in additions


class IntegerProduct:
    """The function for two types."""

    def __init__(self, x: torch.dtype, y: torch.dtype) -> None:
        self._library = _library(x, y)

    def __call__(self, x: torch.Tensor, y: torch.Tensor, first: int, second: int) -> torch.Tensor:
        """``(x - first) (y - second)`` of tensors of one shape, int32, with its wrap-around."""
        out, count = torch.empty(x.shape, dtype=torch.int32), x.numel()
        has_team = count * _WORK >= machine.current().profile.native_team
        threads = torch.get_num_threads() if has_team else 1
        words = {"threads": threads, "count": count, "first": first, "second": second}
        self._library.call("multiply", words, {"x": x.contiguous(), "y": y.contiguous(), "out": out})
        return out


@functools.cache
def _library(x: torch.dtype, y: torch.dtype) -> CodeLibrary:
    return CodeLibrary(lambda: integer_product_code(_INTEGERS[x], _INTEGERS[y], host.lanes()), WORDS, PLACES)


def integer_product(x: torch.dtype | None, y: torch.dtype | None) -> IntegerProduct | None:
    """What multiplies integers of these types; None if there is none, or no native tier."""
    if not flags.NATIVE or host.reason() or x not in _INTEGERS or y not in _INTEGERS:
        return None
    return IntegerProduct(x, y)


# ---- text


def integer_product_code(x: tuple[str, str], y: tuple[str, str], lanes: int) -> str:
    """LLVM's text, of two types as LLVM calls them, each with the instruction that makes i32 of it."""
    declarations: dict[str, str] = {}
    e = Code("multiply_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["multiply"])
    words = words_of(e, a["words"], WORDS)
    _, start, end = my_part(e, words["count"])
    zeros = [e.let(f"trunc i64 {words[name]} to i32") for name in ("first", "second")]
    wide = [in_all_lanes(e, "i32", each) for each in zeros]
    whole = e.add(start, e.mul(e.quotient(e.sub(end, start), lanes), lanes))

    def body(some: Emitter, i: str) -> None:
        kind = some.vector("i32")
        terms = []
        for name, (narrow, extension), zero in zip("xy", (x, y), wide if some.lanes > 1 else zeros):
            place = some.let(f"getelementptr {narrow}, ptr {a[name]}, i64 {i}")
            given = some.let(f"load {some.vector(narrow)}, ptr {place}, align 1")
            given = some.let(f"{extension} {some.vector(narrow)} {given} to {kind}")
            terms.append(some.let(f"sub {kind} {given}, {zero}"))
        place = some.let(f"getelementptr i32, ptr {a['out']}, i64 {i}")
        some.do(f"store {kind} {some.let(f'mul {kind} {terms[0]}, {terms[1]}')}, ptr {place}, align 4")

    for some, first, until in ((e, start, whole), (e.one, whole, end)):
        with e.loop(first, until, some.lanes) as i:
            body(some, i)
    parts = [e.text()]
    e = Code("multiply", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "multiply_some")
    return "\n".join([*declarations.values(), *parts, e.text()])
