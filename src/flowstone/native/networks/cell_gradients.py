"""Gradients of a step of LSTM cells by machine code, on a host (`ops/networks/lstm_blocks.py`).

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
from flowstone.native.codegen.emitter import Emitter
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import load, store

__all__ = ["CellGradient", "cell_gradient", "cell_gradient_code"]

WORDS = ("threads", "batch", "cells")
_GATES = ("i", "cs", "f", "o", "ci", "co")
_WEIGHTS = ("wci", "wcf", "wco")
_STEP = ("before", *_GATES, "d_state", "dh", "columns")
PLACES = {"gradient": (*_STEP, *_WEIGHTS, "d_before"), "carried": (*_STEP, *_WEIGHTS, "d_before", "more")}
"""Arrays [batch, cells], weights [cells], and `columns` [batch, 4 cells]: the gradient for weighted sums.
`carried` adds to `d_state` what is in `d_before`, and `more` to `dh`."""
_FLOAT = "float32"
_WORK = 30  # of a cell, in additions
_REMEMBERED = 16  # sizes seen lately


class CellGradient:
    """The functions with peepholes or without, for an order of the columns; float32."""

    def __init__(self, peephole: bool, forget_second: bool) -> None:
        self._library = _library(peephole, forget_second)
        self._bound = functools.lru_cache(_REMEMBERED)(self._of_size)

    def _of_size(self, batch: int, cells: int) -> Callable[..., object]:
        """The function of threads, and of the addresses of all arrays."""
        return self._library.bound("gradient", {"batch": batch, "cells": cells}, {})

    def __call__(
        self,
        before: torch.Tensor,
        peepholes: Sequence[torch.Tensor],
        gates: Sequence[torch.Tensor],
        d_state: torch.Tensor,
        dh: torch.Tensor,
        columns: torch.Tensor,
    ) -> torch.Tensor:
        """See `network_code.CellGradient`."""
        d_before = torch.empty_like(before, memory_format=torch.contiguous_format)
        arrays = [each.contiguous() for each in (before, *gates, d_state, dh)]
        arrays += [columns, *[each.contiguous() for each in peepholes], d_before]
        self._bound(*before.shape)(_threads(before.numel()), *[each.data_ptr() for each in arrays])
        return d_before

    def over(
        self,
        first: torch.Tensor,
        peepholes: Sequence[torch.Tensor],
        gates: Sequence[torch.Tensor],
        flows: Sequence[torch.Tensor],
        columns: torch.Tensor,
        carried: Sequence[torch.Tensor],
    ) -> Callable[[int], None]:
        """See `network_code.CellGradient`."""
        batch, cells = first.shape
        threads, size = _threads(batch * cells), batch * cells * first.itemsize
        alive = [each.contiguous() for each in (first, *gates, *flows, *peepholes)]
        places = [each.data_ptr() for each in alive]
        before, starts, state = places[0], places[1:9], places[2] - size
        fixed = dict(zip(PLACES["carried"][10:], [*places[9:], *[each.data_ptr() for each in carried]]))
        call = self._library.bound("carried", {"batch": batch, "cells": cells}, fixed)
        to = columns.data_ptr()

        def advance(step: int, _alive: object = alive) -> None:
            offset = step * size
            since = [each + offset for each in starts]
            call(threads, state + offset if step else before, *since, to + 4 * offset)

        return advance


def _threads(count: int) -> int:
    """How many threads share so many cells."""
    return torch.get_num_threads() if count * _WORK >= machine.current().profile.native_team else 1


@functools.cache
def _library(peephole: bool, forget_second: bool) -> CodeLibrary:
    return CodeLibrary(lambda: cell_gradient_code(peephole, forget_second, host.lanes()), WORDS, PLACES)


def cell_gradient(dtype: torch.dtype | None, peephole: bool, forget_second: bool) -> CellGradient | None:
    """The function; None if there is none for the type, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype is not torch.float32:
        return None
    return CellGradient(peephole, forget_second)


# ---- text


def cell_gradient_code(peephole: bool, forget_second: bool, lanes: int) -> str:
    """LLVM's text. Operations are those of the kernels without machine code, in their order."""
    declarations: dict[str, str] = {}
    order = ("di", "df", "dci", "do") if forget_second else ("di", "dci", "df", "do")
    parts = [text for name in PLACES for text in _texts(name, peephole, order, lanes, declarations)]
    return "\n".join([*declarations.values(), *parts])


def _texts(
    name: str, peephole: bool, order: Sequence[str], lanes: int, declarations: dict[str, str]
) -> list[str]:
    e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    cells = words["cells"]
    whole = e.mul(e.quotient(cells, lanes), lanes)
    _, start, end = my_part(e, words["batch"])
    with e.loop(start, end) as row:
        first = e.mul(row, cells)
        for some, begin, until in ((e, "0", whole), (e.one, whole, cells)):
            with e.loop(begin, until, some.lanes) as column:
                found = _cells(some, peephole, a, column, e.add(first, column))
                store(some, _FLOAT, found["d_before"], a["d_before"], e.add(first, column))
                for number, gate in enumerate(order):
                    place = e.add(e.mul(e.add(e.mul(row, 4), number), cells), column)
                    store(some, _FLOAT, found[gate], a["columns"], place)
    public = Code(name, ["ptr a"], lanes, declarations, is_public=True)
    share(public, f"{name}_some")
    return [e.text(), public.text()]


def _cells(some: Emitter, peephole: bool, a: dict[str, str], column: str, place: str) -> dict[str, str]:
    """The gradients of the cells from a place on."""
    one = some.constant(_FLOAT, 1)

    def get(name: str) -> str:
        return load(some, _FLOAT, a[name], column if name.startswith("w") else place)

    def times(x: str, y: str) -> str:
        return some.binary("fmul", _FLOAT, x, y)

    def plus(x: str, y: str) -> str:
        return some.binary("fadd", _FLOAT, x, y)

    def through_sigmoid(dy: str, y: str) -> str:
        return times(times(dy, some.binary("fsub", _FLOAT, one, y)), y)

    def through_tanh(dy: str, y: str) -> str:
        return times(dy, some.binary("fsub", _FLOAT, one, times(y, y)))

    i, f, o, ci, co, dh, d_state = map(get, ("i", "f", "o", "ci", "co", "dh", "d_state"))
    if "more" in a:
        d_state, dh = plus(d_state, get("d_before")), plus(dh, get("more"))
    found = {"do": through_sigmoid(times(dh, co), o)}
    d_state = plus(d_state, through_tanh(times(dh, o), co))
    if peephole:
        d_state = plus(d_state, times(found["do"], get("wco")))
    found["di"] = through_sigmoid(times(d_state, ci), i)
    found["df"] = through_sigmoid(times(d_state, get("before")), f)
    found["dci"] = through_tanh(times(d_state, i), ci)
    d_before = times(d_state, f)
    if peephole:
        for name, weight in (("di", "wci"), ("df", "wcf")):
            d_before = plus(d_before, times(found[name], get(weight)))
    return found | {"d_before": d_before}
