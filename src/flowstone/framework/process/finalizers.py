"""`when_freed` has a function called once an object is freed; at the interpreter's exit, nothing happens.

`weakref.finalize` does the same and more: at the exit it goes through all that are left, and raises
RuntimeError if another thread makes one meanwhile. Threads of a server do, at each step.

>>> class Block: pass
>>> block = Block()
>>> undo = when_freed(block, print, "freed:", 7)
>>> del block
freed: 7
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from sys import is_finalizing
from typing import Any

__all__ = ["when_freed"]

_numbers = itertools.count()
_living: dict[int, weakref.ref[Any]] = {}  # by numbers, since a reference to an array has no hash


def when_freed(held: object, function: Callable[..., object], *arguments: object) -> Callable[[], None]:
    """Has `function` called with `arguments` when nothing refers to `held` any more; returns a function that
    undoes this.

    The thread that drops the last reference, which may hold any lock, calls it. TypeError for an object that
    has no weak references, such as a list.
    """
    number = next(_numbers)

    def freed(reference: weakref.ref[Any]) -> None:
        if _living.pop(number, None) is not None and not is_finalizing():
            function(*arguments)

    def undo() -> None:
        _living.pop(number, None)

    _living[number] = weakref.ref(held, freed)
    return undo
