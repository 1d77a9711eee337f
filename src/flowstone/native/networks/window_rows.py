"""The windows of images as the rows of a matrix, by machine code, on a host: zeros where they reach outside.

The code is compiled on a thread when it is first asked for; until then, and where there is no native tier,
`window_rows` is None. Threads share the rows of windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, when_asked, words_of
from flowstone.native.codegen.emitter import SIZES
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import load, store

__all__ = ["WindowRows", "window_rows", "window_rows_code"]

_PLANE = ("height", "width", "rows", "columns", "tall", "wide", "down", "across", "above", "beside")
WORDS = ("threads", "batch", *_PLANE, "channels")
"""The images' sizes; how many windows there are below and beside each other; their sizes; how far they are
apart; the padding before; float32 numbers of a pixel."""
PLACES = {"cut": ("images", "out")}
_WORD = "float32"


class WindowRows:
    """The function."""

    def __init__(self) -> None:
        self._library = CodeLibrary(lambda: window_rows_code(host.lanes()), WORDS, PLACES)

    def __call__(
        self,
        images: torch.Tensor,
        counts: Sequence[int],
        window: Sequence[int],
        strides: Sequence[int],
        before: Sequence[int],
    ) -> torch.Tensor:
        """See `network_code.WindowRows`."""
        batch, *lengths, channels = images.shape
        out = images.new_empty((batch * math.prod(counts), math.prod(window) * channels))
        given = (lengths, counts, window, strides, before)
        plane = [each for values, other in zip(given, (1, 1, 1, 1, 0)) for each in _two(values, other)]
        words = dict(zip(_PLANE, plane))
        has_team = out.nbytes >= machine.current().profile.copies_team
        words |= {
            "threads": torch.get_num_threads() if has_team else 1, "batch": batch,
            "channels": channels * images.element_size() // SIZES[_WORD],
        }  # fmt: skip
        self._library.call("cut", words, {"images": images, "out": out})
        return out


def _two(values: Sequence[int], other: int) -> Sequence[int]:
    return values if len(values) > 1 else (other, values[0])


window_rows = when_asked(WindowRows)
"""The machine code, if it is there by now."""


# ---- text


def window_rows_code(lanes: int) -> str:
    """LLVM's text, by vectors of so many lanes."""
    declarations: dict[str, str] = {}
    some = Code("cut_some", ["ptr a"], lanes, declarations)
    _cut_some(some)
    e = Code("cut", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "cut_some")
    return "\n".join([*declarations.values(), some.text(), e.text()])


def _cut_some(e: Code) -> None:
    """What a thread does: rows of windows, of each window one row of pixels after the other."""
    a = places_of(e, PLACES["cut"])
    w = words_of(e, a["words"], WORDS)
    channels, wide = w["channels"], w["wide"]
    run = e.mul(wide, channels)
    _, start, end = my_part(e, e.mul(w["batch"], w["rows"]))
    with e.loop(start, end) as line:
        image = e.mul(e.quotient(line, w["rows"]), w["height"])
        top = e.sub(e.mul(e.rest(line, w["rows"]), w["down"]), w["above"])
        with e.loop(0, w["columns"]) as column:
            left = e.sub(e.mul(column, w["across"]), w["beside"])
            first = e.least(e.most(0, e.sub(0, left)), wide)  # of a window's pixels, in the image
            last = e.most(first, e.least(e.sub(w["width"], left), wide))
            inside = [e.mul(each, channels) for each in (first, last)]
            to = e.mul(e.mul(e.add(e.mul(line, w["columns"]), column), w["tall"]), run)
            with e.loop(0, w["tall"]) as i:
                y = e.add(top, i)
                here = e.add(to, e.mul(i, run))
                is_seen = e.within(y, w["height"])
                begin, stop = (e.let(f"select i1 {is_seen}, i64 {each}, i64 {run}") for each in inside)
                pixel = e.add(e.mul(e.add(image, y), w["width"]), left)
                source = e.at(a["images"], e.mul(pixel, channels))
                _fill(e, e.at(a["out"], here), begin)
                _copy(e, e.at(a["out"], e.add(here, begin)), e.at(source, begin), e.sub(stop, begin))
                _fill(e, e.at(a["out"], e.add(here, stop)), e.sub(run, stop))


def _fill(e: Code, to: str, count: str) -> None:
    with e.when(e.let(f"icmp sgt i64 {count}, 0")):
        for i, (mask,) in e.vectors(count):
            store(e, _WORD, e.constant(_WORD, 0), to, i, mask)


def _copy(e: Code, to: str, source: str, count: str) -> None:
    for i, (mask,) in e.vectors(count):
        store(e, _WORD, load(e, _WORD, source, i, mask), to, i, mask)
