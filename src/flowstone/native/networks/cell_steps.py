"""A step of LSTM cells after its product, with all gates as results, by machine code on a host
(`ops/networks/lstm_blocks.py`).

The code is compiled on a thread when a plan first asks for it; what is called before it is there waits.
Threads share the rows where that is worth it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code
from flowstone.native.numerics.elements import ELEMENTS

__all__ = ["CellStep", "cell_step", "cell_step_code"]

WORDS = ("threads", "batch", "cells")
_RESULTS = ("i", "cs", "f", "o", "ci", "co", "h")
_WEIGHTS = ("wci", "wcf", "wco")
PLACES = {"step": ("sums", "before", *_RESULTS, *_WEIGHTS, "numbers")}
"""Arrays [batch, cells], weights [cells], `sums` [batch, 4 cells]; `numbers` are the forget gate's bias and
the limit of states."""
_FLOAT = "float32"
_WORK = 60  # of a cell, in additions
_REMEMBERED = 16  # sizes seen lately


class CellStep:
    """The function with peepholes or without, for an order of the columns; float32."""

    def __init__(self, peephole: bool, forget_second: bool, forget_bias: float, clip: float) -> None:
        self._library = _library(peephole, forget_second, clip > 0)
        self._library.prepare()
        self._numbers = torch.tensor([forget_bias, clip], dtype=torch.float32)
        self._bound = functools.lru_cache(_REMEMBERED)(self._of_size)

    def _of_size(self, batch: int, cells: int) -> Callable[..., object]:
        """The function of threads, and of the addresses of all arrays but the numbers."""
        fixed = {"numbers": self._numbers.data_ptr()}
        return self._library.bound("step", {"batch": batch, "cells": cells}, fixed)

    def __call__(
        self,
        sums: torch.Tensor,
        before: torch.Tensor,
        peepholes: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
    ) -> None:
        """See `network_code.CellStep`."""
        batch, cells = before.shape
        call = self._bound(batch, cells)
        arrays = [sums, before.contiguous(), *results, *[each.contiguous() for each in peepholes]]
        call(_threads(batch * cells), *[each.data_ptr() for each in arrays])

    def over(
        self,
        sums: torch.Tensor,
        before: torch.Tensor,
        peepholes: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
    ) -> Callable[[int], None]:
        """See `network_code.CellStep`."""
        batch, cells = before.shape
        threads = _threads(batch * cells)
        before, *weights = (each.contiguous() for each in (before, *peepholes))
        fixed = dict(zip(PLACES["step"][-4:], [each.data_ptr() for each in (*weights, self._numbers)]))
        call = self._library.bound("step", {"batch": batch, "cells": cells}, fixed)
        starts, size = [each.data_ptr() for each in results], batch * cells * before.itemsize
        first = sums.data_ptr()

        def advance(step: int, _alive: object = weights) -> None:
            offset = step * size
            state = starts[1] + offset - size if step else before.data_ptr()
            call(threads, first + 4 * offset, state, *[each + offset for each in starts])

        return advance


def _threads(count: int) -> int:
    """How many threads share so many cells."""
    return torch.get_num_threads() if count * _WORK >= machine.current().profile.native_team else 1


@functools.cache
def _library(peephole: bool, forget_second: bool, clips: bool) -> CodeLibrary:
    return CodeLibrary(lambda: cell_step_code(peephole, forget_second, clips, host.lanes()), WORDS, PLACES)


def cell_step(
    dtype: torch.dtype | None, peephole: bool, forget_second: bool, forget_bias: float, clip: float
) -> CellStep | None:
    """The function; None if there is none for the type, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype is not torch.float32:
        return None
    return CellStep(peephole, forget_second, forget_bias, clip)


# ---- text


def cell_step_code(peephole: bool, forget_second: bool, clips: bool, lanes: int) -> str:
    """LLVM's text."""
    declarations: dict[str, str] = {}
    e = Code("step_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["step"])
    words = words_of(e, a["words"], WORDS)
    bias, limit = (e.splat(e.get("float", e.at(a["numbers"], i))) for i in range(2))
    order = ("i", "f", "ci", "o") if forget_second else ("i", "ci", "f", "o")
    _, start, end = my_part(e, words["batch"])
    with e.loop(start, end) as row:
        for column, (mask,) in e.vectors(words["cells"]):
            first = e.mul(row, words["cells"])
            place, sums = e.add(first, column), e.add(e.mul(first, 4), column)
            given = {name: e.read(e.at(a[name], column), mask) for name in _WEIGHTS} if peephole else {}
            given["before"] = e.read(e.at(a["before"], place), mask)
            for number, name in enumerate(order):
                at = e.add(sums, e.mul(words["cells"], number))
                given[name] = e.read(e.at(a["sums"], at), mask)
            found = _cells(e, given, bias, limit if clips else "")
            for name in _RESULTS:
                e.write(e.at(a[name], place), found[name], mask)
    parts = [e.text()]
    e = Code("step", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "step_some")
    return "\n".join([*declarations.values(), *parts, e.text()])


def _cells(e: Code, given: dict[str, str], bias: str, limit: str) -> dict[str, str]:
    """The results of a vector of cells; peepholes are among what is given if they count, `limit` is empty
    where there is none."""

    def function(name: str, x: str) -> str:
        return ELEMENTS[name].emit(e, _FLOAT, [x], {})

    def seen(x: str, weight: str, state: str) -> str:
        return e.plus(x, e.times(given[weight], state)) if weight in given else x

    before = given["before"]
    i = function("Sigmoid", seen(given["i"], "wci", before))
    f = function("Sigmoid", e.plus(seen(given["f"], "wcf", before), bias))
    ci = function("Tanh", given["ci"])
    state = e.plus(e.times(ci, i), e.times(before, f))
    if limit:
        least = e.negate(_FLOAT, limit)
        state = e.select(e.compare("fcmp olt", _FLOAT, state, least), _FLOAT, least, state)
        state = e.select(e.compare("fcmp ogt", _FLOAT, state, limit), _FLOAT, limit, state)
    o, co = function("Sigmoid", seen(given["o"], "wco", state)), function("Tanh", state)
    return {"i": i, "cs": state, "f": f, "o": o, "ci": ci, "co": co, "h": e.times(co, o)}
