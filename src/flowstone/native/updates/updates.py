"""`Update`: one step of an optimiser on many parameters, as a value: what `update_code.py` compiles.

A `Rule` is a list of steps on numbers and arrays. `h0`, `h1` … are what a parameter holds (the variable and
its slots), `x0` … what it is given (a gradient), `n0` … numbers that all parameters share. A step is
named by `t` and its place, ``t0`` first; `results` says what each of `h0`, `h1` … becomes. What only
depends on numbers is computed once a call, in float64; the rest once an element, in the parameters' type, so
that memory is read and written once.
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.native.numerics.elements import ELEMENTS

__all__ = ["Operand", "RowUpdate", "Rule", "Update"]

Operand = str | float
"""A name, or a number that the rule itself has."""


class Rule(NamedTuple):
    """How many arrays a parameter `held`s and is `given`, how many `numbers` there are, and what is done:
    pairs of an element-wise operation's name and its operands."""

    held: int
    given: int
    numbers: int
    steps: tuple[tuple[str, tuple[Operand, ...]], ...]
    results: tuple[Operand, ...]

    def of_numbers(self) -> list[bool]:
        """For every step whether it only depends on numbers."""
        known: list[bool] = []
        for _, operands in self.steps:
            known.append(all(self.is_number(each, known) for each in operands))
        return known

    def is_number(self, operand: Operand, known: list[bool]) -> bool:
        """Whether an operand is the same for all elements; `known` says it of the steps."""
        if isinstance(operand, str):
            return operand[0] == "n" or (operand[0] == "t" and known[int(operand[1:])])
        return True


class Update(NamedTuple):
    """A rule for parameters of `sizes` elements of one type; `floats`: which numbers are floats of Python."""

    rule: Rule
    dtype: str
    sizes: tuple[int, ...]
    floats: tuple[bool, ...]

    @property
    def work(self) -> int:
        """About how many additions it takes as long as."""
        arrays = self.rule.held * 2 + self.rule.given
        return sum(self.sizes) * (arrays + sum(max(1, ELEMENTS[name].cost) for name, _ in self.rule.steps))


class RowUpdate(NamedTuple):
    """A rule for `rows` rows of `width` elements of a type; `indices`: the type of the indices; `summed`:
    rows of the same index are added first; `repeats`: an index may come twice; `floats`: which numbers are
    floats of Python; `is_matrix`: whether the gradient has two dimensions; `rest`: the rule of the rows that
    no index names, of the same numbers, if these change, too."""

    rule: Rule
    dtype: str
    rows: int
    width: int
    indices: str
    summed: bool
    repeats: bool
    floats: tuple[bool, ...]
    is_matrix: bool
    rest: Rule | None = None
