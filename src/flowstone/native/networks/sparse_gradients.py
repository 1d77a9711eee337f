"""Gradients of convolutions whose results' gradient is zero almost everywhere, by machine code, on a host.

A maximum over all positions has a gradient at one position of a channel. Of what the gradients of the
convolution below it add up, nearly all are products with zero. Here only what is not zero is multiplied: a
window of the images, or the taps of one of the filter's outputs, is added where it belongs.

    images[n, window of p] += dy[n, p, f] filter[f]          filter[f] += dy[n, p, f] images[n, window of p]

Threads share the images, or the filter's outputs, and each goes through all that goes into its own, in
order: what is computed does not depend on how many there are. Zero times what is not finite is not zero, and
where many elements are not zero a library is faster. Each thread looks for both in its part before it begins;
if one finds any, there is no result.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Iterator

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import KINDS, SIZES
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store

__all__ = ["MOST", "SparseGradient", "is_on", "sparse_gradient_code"]

MOST = 1 / 10
"""The share of elements of a gradient that may differ from zero."""
WORDS = (
    "threads", "batch", "height", "width", "channels", "rows", "columns", "outputs", "taps_down",
    "taps_across", "stride_down", "stride_across", "dilation_down", "above", "beside",
)  # fmt: skip
"""Of images [batch, height, width, channels] and results [batch, rows, columns, outputs], with so many zeros
before the images."""
PLACES = dict.fromkeys(("images", "filter"), ("notes", "given", "dy", "found"))
"""A note, 0 at first, becomes 1 where nothing is computed. `given` is the filter [outputs, taps down, taps
across, channels] for the gradient of the images, and the images for that of the filter."""


def is_on() -> bool:
    """Whether there is machine code."""
    return bool(flags.NATIVE) and not host.reason()


class SparseGradient:
    """The gradient by "images" or "filter" of a geometry, its `words` but for the first by their names."""

    def __init__(self, kind: str, dtype: str, words: dict[str, int]) -> None:
        self._kind, self._words, self._library = kind, words, _library(dtype)
        self._library.prepare(kind)
        names = {
            "images": ("batch", "height", "width", "channels"),
            "filter": ("outputs", "taps_down", "taps_across", "channels"),
        }[kind]
        self._dims = [words[name] for name in names]
        used = ("batch", "rows", "columns", "outputs", "taps_down", "taps_across", "channels")
        work = MOST * math.prod(words[name] for name in used)
        self._has_team = work >= machine.current().profile.native_team

    def __call__(self, given: torch.Tensor, dy: torch.Tensor) -> torch.Tensor | None:
        """That gradient, in the order of `PLACES`; None where it is to be computed otherwise."""
        found, note = given.new_empty(self._dims), ctypes.c_int64()
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "given": given.contiguous(), "dy": dy.contiguous(),
            "found": found,
        }  # fmt: skip
        threads = torch.get_num_threads() if self._has_team else 1
        self._library.call(self._kind, {"threads": threads, **self._words}, places)
        return None if note.value else found


@functools.cache
def _library(dtype: str) -> CodeLibrary:
    lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
    return CodeLibrary(lambda: sparse_gradient_code(dtype, lanes), WORDS, PLACES)


# ---- text


def sparse_gradient_code(dtype: str, lanes: int) -> str:
    """LLVM's text, by vectors of so many lanes."""
    declarations: dict[str, str] = {}
    parts = [_Part(kind, dtype, lanes, declarations).text() for kind in PLACES]
    for kind in PLACES:
        e = Code(kind, ["ptr a"], lanes, declarations, is_public=True)
        share(e, f"{kind}_some")
        parts.append(e.text())
    return "\n".join([*declarations.values(), *parts])


class _Part:
    """What one thread does: of the images from `images[0]` to `images[1]`, the outputs likewise."""

    def __init__(self, kind: str, dtype: str, lanes: int, declarations: dict[str, str]) -> None:
        self.e = e = Code(f"{kind}_some", ["ptr a"], lanes, declarations)
        self.by_images, self.dtype = kind == "images", dtype
        self.a = places_of(e, PLACES[kind])
        self.words = words = words_of(e, self.a["words"], WORDS)
        _, start, end = my_part(e, words["batch" if self.by_images else "outputs"])
        self.images = (start, end) if self.by_images else ("0", words["batch"])
        self.outputs = ("0", words["outputs"]) if self.by_images else (start, end)
        self.width = e.sub(self.outputs[1], self.outputs[0])
        self.image = self.product("height", "width", "channels")
        self.taps = self.product("taps_down", "taps_across", "channels")
        self.positions = self.product("rows", "columns")

    def product(self, *names: str) -> str:
        return functools.reduce(self.e.mul, [self.words[name] for name in names])

    def text(self) -> str:
        e = self.e
        is_usual = e.let(f"or i1 {self.has_infinities()}, {self.has_many()}")
        with e.when(is_usual):
            e.set("i64", self.a["notes"], "1")
        with e.when(e.let(f"xor i1 {is_usual}, true")):
            size, (start, end) = (self.image, self.images) if self.by_images else (self.taps, self.outputs)
            first, zeros = e.mul(start, size), e.constant(self.dtype, 0)
            for i, masks in e.vectors(e.mul(e.sub(end, start), size)):
                store(e, self.dtype, zeros, self.a["found"], e.add(first, i), masks[0])
            rows, columns = self.words["rows"], self.words["columns"]
            with e.loop(*self.images) as n, e.loop(0, rows) as r, e.loop(0, columns) as c:
                for at, f, bits in self.vectors(n, e.add(e.mul(r, columns), c)):
                    self.add_each(n, r, c, at, f, bits)
        return e.text()

    def has_infinities(self) -> str:
        """Whether this part of what is given, of all parts alike, is not finite."""
        e, kind = self.e, self.e.type(self.dtype)
        zero = e.constant(self.dtype, 0)
        size, count = (self.taps, "outputs") if self.by_images else (self.image, "batch")
        _, start, end = my_part(e, e.mul(size, self.words[count]))
        total = e.variable(kind, zero)
        for i, masks in e.vectors(e.sub(end, start), 4):
            some = e.get(kind, total)
            for j, mask in enumerate(masks):
                x = load(e, self.dtype, self.a["given"], e.add(start, e.add(i, j * e.lanes)), mask)
                some = e.binary("fadd", self.dtype, some, e.binary("fmul", self.dtype, x, zero))
            e.set(kind, total, some)
        bits = self.bits(e.compare("fcmp uno", self.dtype, e.get(kind, total), zero))
        return e.let(f"icmp ne i64 {bits}, 0")

    def has_many(self) -> str:
        """Whether more than `MOST` of this part of the gradient are not zero."""
        e, count = self.e, self.e.variable("i64", "0")
        with e.loop(*self.images) as n, e.loop(0, self.positions) as position:
            for _, _, bits in self.vectors(n, position):
                more = e.call("llvm.ctpop.i64", "i64", [("i64", bits)])
                e.set("i64", count, e.add(e.get("i64", count), more))
        images = e.sub(self.images[1], self.images[0])
        elements = e.mul(e.mul(images, self.positions), self.width)
        return e.let(f"icmp sgt i64 {e.mul(e.get('i64', count), int(1 / MOST))}, {elements}")

    def bits(self, truths: str) -> str:
        """Truths of a vector as the bits of a number."""
        e = self.e
        number = e.let(f"bitcast {e.vector('i1')} {truths} to i{e.lanes}")
        return number if e.lanes == 64 else e.let(f"zext i{e.lanes} {number} to i64")

    def vectors(self, n: str, position: str) -> Iterator[tuple[str, str, str]]:
        """Vectors of the gradient at a position: the first element, its output, and which are not zero."""
        e, zero = self.e, self.e.constant(self.dtype, 0)
        row = e.mul(e.add(e.mul(n, self.positions), position), self.words["outputs"])
        for i, masks in e.vectors(self.width):
            f = e.add(self.outputs[0], i)
            at = e.add(row, f)
            x = load(e, self.dtype, self.a["dy"], at, masks[0])
            yield at, f, self.bits(e.compare("fcmp une", self.dtype, x, zero))

    def add_each(self, n: str, r: str, c: str, at: str, f: str, bits: str) -> None:
        """Adds what the elements of a vector that are not zero are multiplied by."""
        e, words, kind = self.e, self.words, KINDS[self.dtype]
        left = e.variable("i64", bits)
        with e.repeat() as leave:
            now = e.get("i64", left)
            leave(e.let(f"icmp eq i64 {now}, 0"))
            k = e.call("llvm.cttz.i64", "i64", [("i64", now), ("i1", "true")])
            e.set("i64", left, e.let(f"and i64 {now}, {e.sub(now, 1)}"))
            factor = in_all_lanes(e, kind, e.get(kind, e.at(self.a["dy"], e.add(at, k), kind)))
            top = e.sub(e.mul(r, words["stride_down"]), words["above"])
            side = e.sub(e.mul(c, words["stride_across"]), words["beside"])
            first = e.most(0, e.sub(0, side))  # of the taps across that are in the image
            end = e.least(words["taps_across"], e.sub(words["width"], side))
            length = e.most(0, e.mul(e.sub(end, first), words["channels"]))
            with e.loop(0, words["taps_down"]) as tap:
                row = e.add(top, e.mul(tap, words["dilation_down"]))
                with e.when(e.within(row, words["height"])):
                    image = e.add(e.mul(e.add(e.mul(n, words["height"]), row), words["width"]), side)
                    taps = e.mul(e.add(e.mul(e.add(f, k), words["taps_down"]), tap), words["taps_across"])
                    image, taps = (e.mul(e.add(each, first), words["channels"]) for each in (image, taps))
                    to, source = (image, taps) if self.by_images else (taps, image)
                    self.add_row(factor, to, source, length)

    def add_row(self, factor: str, to: str, source: str, length: str) -> None:
        e = self.e
        for i, masks in e.vectors(length, 4):
            for j, mask in enumerate(masks):
                step = e.add(i, j * e.lanes)
                x = load(e, self.dtype, self.a["given"], e.add(source, step), mask)
                old = load(e, self.dtype, self.a["found"], e.add(to, step), mask)
                new = e.intrinsic("fma", self.dtype, factor, x, old)
                store(e, self.dtype, new, self.a["found"], e.add(to, step), mask)
