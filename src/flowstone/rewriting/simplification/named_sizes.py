"""`Size`: a size that is not known but has a name.

Sizes are products of a number and of names, each at least 2, such a product and a number more or less (a
slice's size), or such a sum divided by a number and rounded down (what strides leave). They are compared,
added, multiplied and divided as far as the result does not depend on how large they are; else they raise
`Undecided`.

    >>> n = Size((-1,))
    >>> n * 6 // 3, n - 1, n - 1 + 1, n == 1, n - 1 > 0
    (2*n1, (n1-1), n1, False, True)
    >>> (n + 1) // 2
    ((n1+1)//2)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Undecided(ArithmeticError):
    """Depends on how large a size is."""


class _Sum(NamedTuple):
    """What a number more than a product is called."""

    names: tuple[Any, ...]
    factor: int
    offset: int

    def __repr__(self) -> str:
        product = repr(Size(self.names, self.factor))
        return f"({product}{self.offset:+d})" if self.offset else product


class _Quotient(NamedTuple):
    """What a size divided by a number and rounded down is called."""

    size: _Sum
    divisor: int

    def __repr__(self) -> str:
        return f"({self.size!r}//{self.divisor})"


def _least(name: Any) -> int:
    """The smallest size of this name."""
    if isinstance(name, _Quotient):
        return _least(name.size) // name.divisor
    return 2 if isinstance(name, int) else _product(name.names, name.factor) + int(name.offset)


def _product(names: tuple[Any, ...], factor: int) -> int:
    return factor * math.prod(map(_least, names))


class Size:
    """The product of a number and of sizes with names."""

    __slots__ = ("factor", "names")
    __hash__: Any = None

    def __init__(self, names: tuple[Any, ...], factor: int = 1) -> None:
        self.names, self.factor = names, factor

    def __eq__(self, other: Any) -> bool:
        if other is None:
            return False
        if isinstance(other, Size):
            if (self.names, self.factor) == (other.names, other.factor):
                return True
            if self._sum()[:2] == other._sum()[:2]:
                return False
        elif other < self._least:
            return False
        raise Undecided

    def __bool__(self) -> bool:
        return self > 0

    @property
    def _least(self) -> int:
        """The smallest that it may be."""
        return _product(self.names, self.factor)

    def _above(self, other: Any) -> bool:
        if isinstance(other, Size):
            return bool(self - other > 0)
        if other < self._least:
            return True
        raise Undecided

    def _not_below(self, other: Any) -> bool:
        return bool(self - other >= 0) if isinstance(other, Size) else self._above(other - 1)

    __gt__ = _above
    __ge__ = _not_below

    def __lt__(self, other: Any) -> bool:
        return not self._not_below(other)

    def __le__(self, other: Any) -> bool:
        return not self._above(other)

    def _sum(self) -> _Sum:
        """The size as a product and a number."""
        if self.factor == 1 and len(self.names) == 1 and isinstance(self.names[0], _Sum):
            return self.names[0]
        return _Sum(self.names, self.factor, 0)

    def __add__(self, other: int) -> Size:
        found = self._sum()
        total = found._replace(offset=found.offset + int(other))
        if not total.offset:
            return Size(total.names, total.factor)
        if _least(total) < 0:
            raise Undecided
        return Size((total,))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if not isinstance(other, Size):
            return self + -int(other)
        a, b = self._sum(), other._sum()
        if a[:2] != b[:2]:
            raise Undecided
        return a.offset - b.offset

    def __mul__(self, other: Any) -> Size:
        if isinstance(other, Size):
            names = tuple(sorted((*self.names, *other.names), key=repr))
            return Size(names, self.factor * other.factor)
        if other < 1:
            raise Undecided
        return Size(self.names, self.factor * int(other))

    __rmul__ = __mul__

    def __mod__(self, other: Any) -> int:
        self._divided(other)
        return 0

    def __floordiv__(self, other: Any) -> Any:
        try:
            return self._divided(other)
        except Undecided:
            if isinstance(other, Size) or other < 1:
                raise
            return Size((_Quotient(self._sum(), int(other)),))

    def _divided(self, other: Any) -> Any:
        """The quotient if nothing remains."""
        names, divisor = list(self.names), other
        if isinstance(other, Size):
            divisor = other.factor
            for name in other.names:
                if name not in names or _least(name) < 1:
                    raise Undecided
                names.remove(name)
        if divisor < 1 or self.factor % divisor:
            raise Undecided
        factor = self.factor // int(divisor)
        return Size(tuple(names), factor) if names else factor

    def __repr__(self) -> str:
        names = [f"n{-name}" if isinstance(name, int) else repr(name) for name in self.names]
        return "*".join([*([str(self.factor)] if self.factor != 1 else []), *names])
