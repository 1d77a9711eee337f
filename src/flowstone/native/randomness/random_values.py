"""Arrays of random numbers by machine code (`random_value_code.py`), on a host.

A function is compiled on a thread when a plan first asks for it. What is drawn before it is there waits,
since normal numbers by ATen differ in their last places: with seeds, numbers must not depend on time.
"""

from __future__ import annotations

import ctypes
import functools
import math

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_code import RandomValues
from flowstone.native.codegen import compiler, host
from flowstone.native.codegen.emitter import sleef_name
from flowstone.native.codegen.making import in_background
from flowstone.native.randomness.random_value_code import NAMES, PARAMETERS, random_value_code

__all__ = ["random_values"]

_WORK = {"uniform": 4, "normal": 20, "truncated": 30, "integers": 20, "permutation": 0}
"""Of a number, in additions; 0 where one thread does it all."""
_FUNCTION = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(PARAMETERS), ctypes.c_void_p)


def random_values(how: str, dtype: torch.dtype) -> RandomValues | None:
    """What fills arrays; None if there is no native tier, or no such code."""
    return _values(how, dtype) if flags.NATIVE and not host.reason() else None


@functools.cache
def _values(how: str, dtype: torch.dtype) -> RandomValues | None:
    kind = str(dtype).removeprefix("torch.")
    if f"{how}_{kind}" not in NAMES:
        return None
    if kind == "float64" and not all(host.has(sleef_name(each, kind)) for each in ("log", "sin", "cos")):
        return None
    return _Filling(f"{how}_{kind}", _WORK[how])


class _Filling:
    """One function."""

    def __init__(self, name: str, work: int) -> None:
        self._team = machine.current().profile.native_team // work if work else math.inf
        self._made = in_background(lambda: _made(name))

    def __call__(self, key: int, counter: int, out: torch.Tensor, least: int = 0, width: int = 1) -> None:
        count = out.numel()
        threads = 1 if count < self._team else torch.get_num_threads()
        self._function(threads, count, key, counter, counter >> 64, least, width, out.data_ptr())

    @functools.cached_property
    def _function(self) -> ctypes._CFunctionType:
        self._module, address = self._made.result()
        return _FUNCTION(address)


def _made(name: str) -> tuple[compiler.Module, int]:
    """The machine code of a function, and where it begins."""
    # All of LLVM's passes make uniform numbers faster by a third, others not.
    module = compiler.compiled(
        random_value_code(host.lanes(), [name]), [name], is_rough=name.startswith("uniform")
    )
    return module, module.address(name)
