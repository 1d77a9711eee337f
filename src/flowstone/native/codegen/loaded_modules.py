"""Modules of machine code by what they were compiled from: equal code is loaded once a process.

A module stays as long as a function of it is in use (`entry_points.builtin` holds it), so that programs which
make ever new graphs do not grow. The `most` that were asked for last stay anyway: plans come again, and
what is made in the background is not in use yet. A thread that runs code holds the function that it called.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable

from flowstone.native.codegen.compiler import Module

__all__ = ["LoadedModules"]

_MOST = 256  # modules, of some 20 kB


class LoadedModules:
    """The best code of each key, and code that was made quickly."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._best: weakref.WeakValueDictionary[Hashable, Module] = weakref.WeakValueDictionary()
        self._quick: weakref.WeakValueDictionary[Hashable, Module] = weakref.WeakValueDictionary()
        self._recent: OrderedDict[Module, None] = OrderedDict()
        self._lock = threading.Lock()  # the weak dictionaries' own steps are not atomic

    def __len__(self) -> int:
        """How many are loaded."""
        return len(self._best) + len(self._quick)

    def found(self, key: Hashable, quickly: bool) -> Module | None:
        """The best code; if there is none and it is to come `quickly`, what was made quickly."""
        with self._lock:
            found = self._best.get(key)
            if found is None and quickly:
                found = self._quick.get(key)
            return None if found is None else self._used(found)

    def kept(self, key: Hashable, made: Module) -> Module:
        """What was made; if another thread has put such code here meanwhile, that."""
        with self._lock:
            return self._used((self._quick if made.is_quick else self._best).setdefault(key, made))

    def open(self) -> None:
        """In a child, where nobody holds the lock that another thread may have held."""
        self._lock = threading.Lock()

    def _used(self, module: Module) -> Module:
        self._recent[module] = None
        self._recent.move_to_end(module)
        while len(self._recent) > self._most:
            self._recent.popitem(last=False)
        return module
