"""Products of quantised integers, each less the one that stands for zero, and sums of multiples of them, by
machine code, on a host.

The code for two types is compiled on a thread when a plan first asks for it; what is called before it is
there waits. Threads share what is worth it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import Emitter
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes

__all__ = ["IntegerProduct", "integer_product", "integer_product_code"]

WORDS = ("threads", "count", "first", "second", "start")
"""How many elements; what stands for zero in both, or how many times both are taken, and what is added."""
PLACES = dict.fromkeys(("multiply", "add"), ("x", "y", "out"))
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
        return self._computed("multiply", x, y, {"first": first, "second": second})

    def sum(self, x: torch.Tensor, y: torch.Tensor, first: int, second: int, start: int) -> torch.Tensor:
        """``first x + second y + start``; the same."""
        return self._computed("add", x, y, {"first": first, "second": second, "start": start})

    def _computed(
        self, name: str, x: torch.Tensor, y: torch.Tensor, numbers: Mapping[str, int]
    ) -> torch.Tensor:
        out, count = torch.empty(x.shape, dtype=torch.int32), x.numel()
        has_team = count * _WORK >= machine.current().profile.native_team
        threads = torch.get_num_threads() if has_team else 1
        words = {**numbers, "threads": threads, "count": count}
        self._library.call(name, words, {"x": x.contiguous(), "y": y.contiguous(), "out": out})
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
    texts = [text for name in PLACES for text in _texts(name, (x, y), lanes, declarations)]
    return "\n".join([*declarations.values(), *texts])


def _texts(
    name: str, types: Sequence[tuple[str, str]], lanes: int, declarations: dict[str, str]
) -> list[str]:
    e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    _, start, end = my_part(e, words["count"])
    numbers = [e.let(f"trunc i64 {words[each]} to i32") for each in ("first", "second", "start")]
    wide = [in_all_lanes(e, "i32", each) for each in numbers]
    whole = e.add(start, e.mul(e.quotient(e.sub(end, start), lanes), lanes))
    for some, given, first, until in ((e, wide, start, whole), (e.one, numbers, whole, end)):
        with e.loop(first, until, some.lanes) as i:
            _compute(some, name, types, (a, given), i)
    public = Code(name, ["ptr a"], lanes, declarations, is_public=True)
    share(public, f"{name}_some")
    return [e.text(), public.text()]


def _compute(
    some: Emitter,
    name: str,
    types: Sequence[tuple[str, str]],
    given: tuple[Mapping[str, str], Sequence[str]],
    i: str,
) -> None:
    """What a function gives of the elements from i on; `given`: addresses, and the numbers of the call."""
    (a, numbers), kind = given, some.vector("i32")
    own, both = ("sub", "mul") if name == "multiply" else ("mul", "add")
    terms = []
    for place, (narrow, extension), number in zip("xy", types, numbers):
        address = some.let(f"getelementptr {narrow}, ptr {a[place]}, i64 {i}")
        value = some.let(f"load {some.vector(narrow)}, ptr {address}, align 1")
        value = some.let(f"{extension} {some.vector(narrow)} {value} to {kind}")
        terms.append(some.let(f"{own} {kind} {value}, {number}"))
    found = some.let(f"{both} {kind} {terms[0]}, {terms[1]}")
    if name == "add":
        found = some.let(f"add {kind} {found}, {numbers[2]}")
    address = some.let(f"getelementptr i32, ptr {a['out']}, i64 {i}")
    some.do(f"store {kind} {found}, ptr {address}, align 4")
