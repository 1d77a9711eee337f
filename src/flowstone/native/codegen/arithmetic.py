"""`Arithmetic`: operations on numbers of one floating-point type in an emitter, as methods."""

from __future__ import annotations

from typing import ClassVar

from flowstone.native.codegen.emitter import Emitter

__all__ = ["Arithmetic"]


class Arithmetic:
    """Operations of an emitter; numbers are values of its text or constants."""

    TYPE: ClassVar[str]
    """The type of all numbers, such as "float32"."""

    def __init__(self, e: Emitter) -> None:
        self.e = e

    def number(self, x: str | float) -> str:
        return x if isinstance(x, str) else self.e.constant(self.TYPE, x)

    def _binary(self, name: str, a: str | float, b: str | float) -> str:
        return self.e.binary(name, self.TYPE, self.number(a), self.number(b))

    def add(self, a: str | float, b: str | float) -> str:
        return self._binary("fadd", a, b)

    def sub(self, a: str | float, b: str | float) -> str:
        return self._binary("fsub", a, b)

    def mul(self, a: str | float, b: str | float) -> str:
        return self._binary("fmul", a, b)

    def div(self, a: str | float, b: str | float) -> str:
        return self._binary("fdiv", a, b)

    def intrinsic(self, name: str, *x: str | float) -> str:
        return self.e.intrinsic(name, self.TYPE, *[self.number(each) for each in x])

    def is_(self, predicate: str, a: str | float, b: str | float) -> str:
        return self.e.compare(f"fcmp {predicate}", self.TYPE, self.number(a), self.number(b))

    def where(self, condition: str, a: str | float, b: str | float) -> str:
        return self.e.select(condition, self.TYPE, self.number(a), self.number(b))
