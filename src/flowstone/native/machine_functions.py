"""`MachineFunction`: a function of Python whose machine code one text has, whatever that computes.

As kernels of clusters do (`kernels.py`), it works at once by a function of Python, is compiled on a thread
after a plan's second run, and then stands in the globals of the generated code itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from flowstone.framework import flags
from flowstone.native import compiler
from flowstone.native.entry_points import builtin
from flowstone.native.kernels import NativeKernel

__all__ = ["MachineFunction"]

_modules: dict[Hashable, compiler.Module] = {}


class MachineFunction(NativeKernel):
    """The function ``name`` of the module whose text `text` gives; `key`: what the text depends on.

    `otherwise` does the same by ATen. It takes the same arguments, and is called for those that the code is
    not for.
    """

    def __init__(
        self, name: str, key: Hashable, text: Callable[[], str], otherwise: Callable[..., Any]
    ) -> None:
        unknown: Any = key
        super().__init__(unknown, otherwise, None)
        self.__name__, self._text, self._key = name, text, (name, key)
        if flags.NATIVE > 1:
            self.compile()

    def compile(self) -> None:
        """Compiles the function now."""
        name = self.__name__
        module = compiler.kept(_modules, self._key, lambda: compiler.compiled(self._text(), [name]))
        compiled = builtin(name, module.address(name), self.otherwise)
        with self._lock:
            self._current = compiled
            for names, place in self._places:
                if names.get(place) is self:
                    names[place] = compiled
            self._places.clear()
