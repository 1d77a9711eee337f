"""`Open`: a size that only a run of a program knows, as arithmetic over sizes with names.

    >>> n = named(1)
    >>> n * 6 // 3, n - 1 + 1 == n, n > 1, -(-n // 16)
    (2*n1, True, True, -1*(-1*n1 // 16))

It stands in shapes, and in attributes of statements, where else a number does. Named sizes are at least 2.
Comparisons that this does not decide raise `Undecided`, but for ==: sizes are equal if they are the same
expression, and else taken for different. In LLVM's text an open size is a register, ``%"=n1*n2"``;
`definitions` are the lines that compute those of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeGuard

__all__ = [
    "Open",
    "Undecided",
    "definitions",
    "is_at_most",
    "is_open",
    "named",
    "names_of",
    "register",
    "typical",
]

_TYPICAL = 16  # what a named size is taken to be where only the order of things matters
_Atom = Any  # a name, or the quotient of an open size and a number
_REGISTER = re.compile(r'%"=([^"]+)"')
_by_text: dict[str, Open] = {}


class Undecided(ValueError):
    """Depends on how large a size is."""


class Open:
    """A sum of products of atoms: `terms` has the factor of each product, in order."""

    __slots__ = ("terms",)

    def __init__(self, terms: Iterable[tuple[tuple[_Atom, ...], int]]) -> None:
        self.terms = tuple(terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Open) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.terms)

    def __bool__(self) -> bool:
        return self > 0

    def __index__(self) -> int:
        raise Undecided(f"the size {self!r} is not known before the step")

    __int__ = __float__ = __index__

    @property
    def is_named(self) -> bool:
        """Whether it is a named size itself."""
        return len(self.terms) == 1 and self.terms[0][1] == 1 and [type(x) for x in self.terms[0][0]] == [int]

    # ---- arithmetic

    def __add__(self, other: Any) -> Any:
        return _sum([*self.terms, *_terms(other)])

    def __mul__(self, other: Any) -> Any:
        pairs = [(a, b) for a in self.terms for b in _terms(other)]
        return _sum([(tuple(sorted((*a[0], *b[0]), key=repr)), a[1] * b[1]) for a, b in pairs])

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + other * -1

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, Open):
            return self._without(other)
        if all([factor % other == 0 for _, factor in self.terms]):
            return _sum([(atoms, factor // other) for atoms, factor in self.terms])
        return Open([((_Quotient((self, other)),), 1)])

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    __radd__, __rmul__ = __add__, __mul__

    def _without(self, other: Open) -> Any:
        """The quotient by a single product that all terms have."""
        ((common, divisor),) = other.terms if len(other.terms) == 1 else [((), 0)]
        found = []
        for atoms, factor in self.terms:
            left = list(atoms)
            for atom in common:
                if atom not in left:
                    raise Undecided(f"{self!r} // {other!r}")
                left.remove(atom)
            if not divisor or factor % divisor:
                raise Undecided(f"{self!r} // {other!r}")
            found.append((tuple(left), factor // divisor))
        return _sum(found)

    # ---- comparisons

    def _least(self) -> int | None:
        """The smallest that it may be, if that is known: in terms of what names are more than 2, no factor is
        negative."""
        total: Any = 0
        for atoms, factor in self.terms:
            for atom in atoms:
                factor = factor * (Open([((atom,), 1)]) + (2 if isinstance(atom, int) else 0))
            total = total + factor
        terms = dict(_terms(total))
        if any([factor < 0 and atoms for atoms, factor in terms.items()]):
            return None
        return terms.get((), 0)

    def __gt__(self, other: Any) -> bool:
        difference = self - other
        if not isinstance(difference, Open):
            return bool(difference > 0)
        least, other_way = difference._least(), (-difference)._least()
        if least is not None and least > 0:
            return True
        if other_way is not None and other_way >= 0:
            return False
        raise Undecided(f"{self!r} > {other!r}")

    def __lt__(self, other: Any) -> bool:
        return bool(-self > -other)

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    # ---- text

    def __repr__(self) -> str:
        return "+".join(
            "*".join([*([str(f)] if f != 1 or not atoms else []), *(_atom_text(x) for x in atoms)])
            for atoms, f in self.terms
        )

    def __str__(self) -> str:
        """The register of LLVM that holds it."""
        text = repr(self)
        _by_text.setdefault(text, self)
        return f'%"={text}"'

    def __format__(self, spec: str) -> str:
        return str(self)


class _Quotient(tuple[Open, int]):
    """An open size divided by a number, rounded down."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"({self[0]!r} // {self[1]})"


def _terms(x: Any) -> Iterable[tuple[tuple[_Atom, ...], int]]:
    if isinstance(x, Open):
        return x.terms
    return [((), int(x))] if x else []


def _sum(terms: Iterable[tuple[tuple[_Atom, ...], int]]) -> Any:
    totals: dict[tuple[_Atom, ...], int] = {}
    for atoms, factor in terms:
        totals[atoms] = totals.get(atoms, 0) + factor
    found = sorted(
        [each for each in totals.items() if each[1]], key=lambda each: (-len(each[0]), repr(each[0]))
    )
    if not found:
        return 0
    return Open(found) if found[0][0] else found[0][1]


def _atom_text(atom: _Atom) -> str:
    return f"n{atom}" if isinstance(atom, int) else repr(atom)


def named(name: int) -> Open:
    """The size with this name."""
    return Open([((name,), 1)])


def is_open(x: Any) -> TypeGuard[Open]:
    """Whether only a run knows the size."""
    return isinstance(x, Open)


def is_at_most(size: Any, most: int) -> bool:
    """Whether a size is known to be so small."""
    return not isinstance(size, Open) and bool(size <= most)


def typical(size: Any) -> int:
    """What a size may well be: for estimates, never for what a result depends on."""
    return _value(size, _TYPICAL) if isinstance(size, Open) else int(size)


def _value(size: Open, of_names: int) -> int:
    total = 0
    for atoms, factor in size.terms:
        for atom in atoms:
            factor *= of_names if isinstance(atom, int) else _value(atom[0], of_names) // atom[1]
        total += factor
    return total


def names_of(sizes: Iterable[Any]) -> list[int]:
    """The names in these sizes."""
    found: dict[int, None] = {}
    for size in sizes:
        for atoms, _ in size.terms if isinstance(size, Open) else ():
            for atom in atoms:
                found.update({atom: None} if isinstance(atom, int) else dict.fromkeys(names_of([atom[0]])))
    return list(found)


def register(name: int) -> str:
    """The register of a named size, which something else defines."""
    return str(named(name))


def definitions(text: str, known: set[str]) -> list[str]:
    """The lines that compute the open sizes of a text, but those that are `known`, which are all of the
    names; these are known, too, afterwards."""
    lines: list[str] = []
    for found in _REGISTER.findall(text):
        if found in _by_text:
            _define(_by_text[found], known, lines)
    return lines


def _define(size: Open, known: set[str], lines: list[str]) -> None:
    if str(size) in known:
        return
    total = "0"
    for i, (atoms, factor) in enumerate(size.terms):
        product = str(factor)
        for j, atom in enumerate(atoms):
            place = f'%"{size!r} part {i} {j}"'
            if isinstance(atom, int):
                word = register(atom)
                if word not in known:
                    raise Undecided(f"no argument tells the size {word}")
            else:
                _define(atom[0], known, lines)
                word = f'%"{size!r} quotient {i} {j}"'
                shift = atom[1].bit_length() - 1
                if atom[1] != 1 << shift:
                    raise Undecided(f"{size!r} is divided by {atom[1]}")
                lines.append(f" {word} = ashr i64 {atom[0]}, {shift}")
            lines.append(f" {place} = mul i64 {product}, {word}")
            product = place
        last = i == len(size.terms) - 1
        name = str(size) if last else f'%"{size!r} sum {i}"'
        lines.append(f" {name} = add i64 {total}, {product}")
        total = name
    known.add(str(size))
