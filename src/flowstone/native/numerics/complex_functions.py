"""Functions of many complex64 numbers by machine code (`complex_function_code.py`), on a host.

The code of a function is compiled on a thread when a plan first asks for it; what is called before it is
there waits, so that digits are always its. Of numbers that the code leaves out, ATen computes the results.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np
import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.codegen.emitter import sleef_name
from flowstone.native.numerics.complex_function_code import CALLS, PLACES, WORDS, complex_function_code

__all__ = ["ComplexFunction", "complex_function"]

_WORK = 60  # of an element, in additions


class ComplexFunction:
    """A function of one complex64 tensor, or two that broadcast; `otherwise` is ATen's."""

    def __init__(self, name: str, otherwise: Callable[..., torch.Tensor]) -> None:
        self._name, self._otherwise = name, otherwise
        self._library = _library(name)
        self._library.prepare()

    def __call__(self, *given: torch.Tensor) -> torch.Tensor:
        """The results, in the shape that they have together."""
        if len(given) > 1:
            try:
                shape = np.broadcast_shapes(*[x.shape for x in given])  # torch's own imports sympy: 0.1 s
            except ValueError:
                return self._otherwise(*given)  # which says why
            given = tuple([x.expand(shape) for x in given])
        dense = [x.resolve_conj().contiguous() for x in given]
        out, note = torch.empty_like(dense[0]), ctypes.c_int64()
        count = out.numel()
        has_team = count * _WORK >= machine.current().profile.native_team
        words = {"threads": torch.get_num_threads() if has_team else 1, "count": count}
        places: dict[str, torch.Tensor | int] = dict(zip(PLACES[self._name], dense))
        self._library.call(self._name, words, {**places, "out": out, "notes": ctypes.addressof(note)})
        if note.value:
            left = torch.isnan(out.real)
            out[left] = self._otherwise(*[x[left] for x in dense])
        return out


@functools.cache
def _library(name: str) -> CodeLibrary:
    return CodeLibrary(lambda: complex_function_code(name, host.lanes()), WORDS, {name: PLACES[name]})


def complex_function(name: str, otherwise: Callable[..., torch.Tensor]) -> ComplexFunction | None:
    """The function of the operation `name`; None if there is none, or no native tier, or exact digits of
    libraries are asked for."""
    if name not in PLACES or not flags.NATIVE or flags.NATIVE_EXACT or host.reason():
        return None
    if not all(host.has(sleef_name(each, "float32")) for each in CALLS.get(name, ())):
        return None
    return ComplexFunction(name, otherwise)
