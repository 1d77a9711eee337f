"""`MachineFunction`: a function of Python whose machine code one text has, whatever that computes.

It is compiled when kernels of clusters are (`kernels.py`), and then stands in the globals of the generated
code itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from flowstone.framework import flags
from flowstone.native.clusters.kernels import Code, NativeKernel

__all__ = ["MachineFunction"]


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
        self.__name__, self._text, self._key = name, text, key
        if flags.NATIVE > 1:
            self.compile()

    @property
    def work(self) -> float:
        return float(getattr(self._key, "work", 0))

    def _code(self) -> Code:
        return Code((self.__name__, self._key), self._text, [self.__name__], self.__name__)

    def _other(self) -> Callable[..., Any]:
        return self.otherwise
