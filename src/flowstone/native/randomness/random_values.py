"""Arrays of random numbers by machine code (`random_value_code.py`), on a host.

A function is compiled on a thread when a plan first asks for it. What is drawn before it is there waits,
since normal numbers by ATen differ in their last places: numbers of a seed must not depend on time. It is
made quickly at first, since many programs draw few numbers, once; such code takes 1.4 to 2 times as long for
the same numbers. Once some have been drawn, the best is made and takes its place (`making.py`).
"""

from __future__ import annotations

import array
import ctypes
import functools
import math
import struct
from collections.abc import Callable

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_code import RandomValues
from flowstone.native.codegen import compiler, host, making
from flowstone.native.codegen.emitter import sleef_name
from flowstone.native.randomness.random_value_code import NAMES, random_value_code

__all__ = ["random_values"]

_WORK = {"uniform": 4, "normal": 20, "truncated": 30, "integers": 20, "permutation": 0}
"""Of a number, in additions; 0 where one thread does it all."""
_MANY = 1 << 24  # numbers, from which the best code is awaited: it is made in the time that it saves
_SOME = 1 << 21  # numbers, from which the best code is made at all
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_GIVEN = struct.Struct("2P q 3Q q q Q q")  # two addresses, and what `PARAMETERS` says
_FIRST = struct.Struct("2P q 3Q")  # what differs from draw to draw
_BEHIND = struct.calcsize("2P")  # bytes from the beginning to the numbers
_DOUBLE = 1 << 64


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
        self._name = name
        self._least_of_team = machine.current().profile.native_team // work if work else math.inf
        self._asked: dict[bool, making.Begun[None]] = {}  # by whether for code made quickly
        self._left: float = _SOME  # numbers until the best code is made
        self._function: Callable[[int], None] | None = None
        self._modules: list[compiler.Module] = []  # which stay loaded

    def __call__(
        self, key: int, counter: int, out: torch.Tensor, least: int = 0, width: int = 1, shift: int = 0
    ) -> None:
        self.of(out.numel(), least, width, shift)(key, counter, out.data_ptr())

    def of(
        self, count: int, least: int = 0, width: int = 1, shift: int = 0
    ) -> Callable[[int, int, int], None]:
        given = bytearray(_GIVEN.size)
        _GIVEN.pack_into(given, 0, *[0] * 6, count, least, width % _DOUBLE, shift)
        template, pack, behind = array.array("B", given), _FIRST.pack_into, _BEHIND
        is_shared, asked = count >= self._least_of_team, self._begin(count < _MANY)

        def fill(key: int, counter: int, out: int) -> None:
            memory = template[:]
            place = memory.buffer_info()[0]
            threads = torch.get_num_threads() if is_shared else 1
            pack(memory, 0, place + behind, out, threads, key, counter % _DOUBLE, counter >> 64)
            if self._left < math.inf:
                self._count(count)
            (self._function or self._awaited(asked))(place)

        return fill

    def _begin(self, quickly: bool) -> making.Begun[None]:
        """Has the function made on a thread, unless it is there or was begun."""
        quickly &= flags.NATIVE == 1
        if quickly not in self._asked:
            self._asked[quickly] = making.in_background(lambda: self._make(quickly))
        return self._asked[quickly]

    def _awaited(self, asked: making.Begun[None]) -> Callable[[int], None]:
        asked.result()
        assert self._function is not None
        return self._function

    def _make(self, quickly: bool) -> None:
        # All of LLVM's passes make uniform numbers faster by a third, others not.
        text, is_rough = random_value_code(host.lanes(), [self._name]), self._name.startswith("uniform")
        module = compiler.compiled(text, [self._name], is_rough, quickly)
        if not (quickly and self._modules):  # the best code is there already
            self._modules.append(module)
            self._function = _FUNCTION(module.address(self._name))
        if not module.is_quick:
            self._left = math.inf

    def _count(self, count: int) -> None:
        """Notes that numbers are drawn while there may be better code."""
        self._left -= count
        if self._left <= 0:
            self._left = math.inf
            making.later(lambda: self._make(quickly=False))
