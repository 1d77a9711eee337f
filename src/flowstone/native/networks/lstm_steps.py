"""Steps of LSTM cells in machine code, as functions of addresses (`lstm_code.py`), and when there are any.

A layer calls them once a step, between products by its state, so that what a call needs is bound before.
What a plan first asks for is compiled on a thread; what is called before it is there waits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.networks.lstm_code import GATES, PLACES, WORDS, lstm_code

__all__ = ["bound", "is_available"]

_WORK = 60  # of a cell, in additions; the team is awake from the product before


def is_available() -> bool:
    """Whether there is machine code."""
    return bool(flags.NATIVE) and not host.reason()


@functools.cache
def _library() -> CodeLibrary:
    return CodeLibrary(lambda: lstm_code(host.lanes()), WORDS, PLACES)


def bound(name: str, rows: int, units: int, order: Sequence[int]) -> Callable[..., Any]:
    """`advance` or `differentiate` for cells of this shape, whose gates are the parts of `order`: a function
    of the addresses of `PLACES`."""
    _library().prepare(name)
    parts = {gate: part * units for gate, part in zip(GATES, order)}
    call = _library().bound(name, {"rows": rows, "units": units, **parts}, {})
    has_team = rows * units * _WORK >= machine.current().profile.native_team

    def step(*addresses: int) -> None:
        call(torch.get_num_threads() if has_team else 1, *addresses)

    return step
