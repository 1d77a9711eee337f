"""Functions of machine code that take one address, and how threads share them.

Text: ``share`` has all threads of a team call a function, ``my_part`` says there what a thread is to do.
Calls: a `CodeLibrary` calls the functions of a text with whole numbers, named by its `words`, and addresses,
named by its `places`: a function takes the address of an array of addresses, of which the first is that of
the numbers. The first number is how many threads there are. Plans have the functions that they call
`prepare`d on threads. What is not in the cache is made quickly, each function by itself, and the best code
of all after its second call, with the same results (`making.py`). What kernels can do without is made
`when_asked`.
"""

from __future__ import annotations

import array
import ctypes
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch

from flowstone.framework import flags
from flowstone.native.codegen import compiler, host, making
from flowstone.native.codegen.parts import by_team
from flowstone.native.codegen.structured import Code

__all__ = ["CodeLibrary", "my_part", "places_of", "share", "when_asked", "words_of"]

_Made = TypeVar("_Made")


def when_asked(make: Callable[[], _Made], work: float = 0.0) -> Callable[[], _Made | None]:
    """A function that gives what `make` makes on a thread, which the first call begins: None until it is
    there, and where there is no native tier. With ``FLOWSTONE_NATIVE=2`` a call waits. It is made
    before what less `work` waits for."""

    @functools.cache
    def begun() -> making.Begun[_Made]:
        return making.in_background(make) if flags.NATIVE > 1 else making.unhurried(make, work)

    made: list[_Made] = []  # once it is there: to ask a future takes longer

    def found() -> _Made | None:
        if not flags.NATIVE or host.reason():
            return None
        if not made:
            asked = begun()
            if not asked.done() and flags.NATIVE < 2:
                return None
            made.append(asked.result())
        return made[0]

    return found


class CodeLibrary:
    """The functions of a text; `places`: by the name of each the names of the addresses that it takes after
    that of the numbers. What is called before it is compiled waits.
    """

    def __init__(
        self, text: Callable[[], str], words: Sequence[str], places: Mapping[str, Sequence[str]]
    ) -> None:
        self._text, self._words, self._places = functools.cache(text), words, places
        self._functions: dict[str, Callable[[int], None]] = {}
        self._modules: list[compiler.Module] = []  # which stay loaded
        self._quick: set[str] = set()  # functions that better code has not been asked for
        self._again: set[str] = set()  # of these, such as have been called
        self._locks = making.Locks()
        self._waits = False

    def prepare(self, *names: str, waits: bool = False) -> None:
        """Has these functions made on a thread, or all; `waits`: for their best code, since they have more to
        do than that takes to make."""
        self._waits |= waits
        for name in names or self._places:
            if name not in self._functions:
                making.in_background(functools.partial(self._function, name))

    def call(self, name: str, words: Mapping[str, int], places: Mapping[str, torch.Tensor | int]) -> None:
        """Calls a function by its name; numbers that are not given are 0."""
        own = self._places[name]
        addresses = [x if isinstance(x, int) else x.data_ptr() for x in map(places.__getitem__, own)]
        memory = array.array("q", [0, *addresses, *map(words.get, self._words, itertools.repeat(0))])
        start = memory.buffer_info()[0]
        memory[0] = start + 8 * (1 + len(addresses))
        self._run(name, start)

    def bound(
        self, name: str, words: Mapping[str, int], places: Mapping[str, int], more: int = 0
    ) -> Callable[..., array.array[int]]:
        """A function of how many threads there are and of the addresses that are left, which are the first
        ones. It calls that of the name and gives the memory that this has seen, of which the last are `more`
        numbers behind the words, 0 before."""
        own = self._places[name]
        left = [each for each in own if each not in places]
        fixed = [places[each] for each in own[len(left) :]]
        template = array.array("q", [0] * (1 + len(left)) + fixed)
        template.extend([words.get(each, 0) for each in self._words] + [0] * more)
        start, count = 1 + len(own), 1 + len(left)

        def call(threads: int, *addresses: int) -> array.array[int]:
            memory = template[:]
            place = memory.buffer_info()[0]
            memory[:count] = array.array("q", (place + 8 * start, *addresses))
            memory[start] = threads
            self._run(name, place)
            return memory

        return call

    def _run(self, name: str, place: int) -> None:
        """Calls a function with the memory at an address, and has better code made where it was quick."""
        function = self._functions.get(name) or self._function(name)
        function(place)
        if name in self._quick:
            if name in self._again:
                self._quick.clear()
                making.later(self._take_best)
            self._again.add(name)

    def _function(self, name: str) -> Callable[[int], None]:
        with self._locks.of(name if not self._waits else ""):
            if name not in self._functions:
                quickly = flags.NATIVE == 1 and not self._waits
                names = [name] if quickly else list(self._places)
                module = compiler.compiled(self._text(), names, quickly=quickly)
                self._take(module, names)
                if module.is_quick:
                    self._quick.add(name)
        return self._functions[name]

    def _take_best(self) -> None:
        names = list(self._places)
        self._take(compiler.compiled(self._text(), names), names)

    def _take(self, module: compiler.Module, names: Sequence[str]) -> None:
        self._modules.append(module)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self._functions.update({name: kind(module.address(name)) for name in names})


# ---- text


def words_of(e: Code, place: str, words: Sequence[str]) -> dict[str, str]:
    """All whole numbers by their names; LLVM drops those that are not used."""
    return {name: e.word(place, i) for i, name in enumerate(words)}


def places_of(e: Code, names: Sequence[str]) -> dict[str, str]:
    """The addresses that the function of the parameter %a was given, and that of the ``words``."""
    return {name: e.pointer("%a", i) for i, name in enumerate(("words", *names))}


def share(e: Code, name: str) -> None:
    """Has the threads of the team do all parts of a function of %a, which asks for `my_part`."""
    threads = e.let(f"trunc i64 {e.word(e.pointer('%a', 0), 0)} to i32")
    e.do(f"call void @{by_team(name, e.declarations)}(ptr %a, i32 {threads})")


def my_part(e: Code, units: str) -> tuple[str, str, str]:
    """The number of the part that this call does, and the range of its units. The function takes two numbers
    more for that."""
    e.takes("i64 part", "i64 parts")
    start, end = (e.quotient(e.mul(i, units), "%parts") for i in ("%part", e.add("%part", 1)))
    return "%part", start, end
