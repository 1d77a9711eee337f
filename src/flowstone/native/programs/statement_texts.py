"""LLVM's text of a program's statements: neighbours by element together, all others by one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.programs import (
    array_code,
    container_code,
    drawn_code,
    indexed_code,
    matrix_code,
    ranking_code,
    summed_products,
)
from flowstone.native.programs.element_code import write_elements
from flowstone.native.programs.programs import Statement
from flowstone.native.programs.writer import Writer

__all__ = ["STATEMENTS", "write_statements"]

STATEMENTS: dict[str, Callable[[Writer, Statement], None]] = {
    **array_code.STATEMENTS,
    **container_code.STATEMENTS,
    **drawn_code.STATEMENTS,
    **indexed_code.STATEMENTS,
    **matrix_code.STATEMENTS,
    **ranking_code.STATEMENTS,
    **summed_products.STATEMENTS,
}
"""By their operations."""


def write_statements(writer: Writer, statements: Sequence[Statement]) -> None:
    """Writes a statement, or several that are one loop over the elements."""
    if statements[0].op in ELEMENTS:
        write_elements(writer, statements)
    else:
        (each,) = statements
        STATEMENTS[each.op](writer, each)
