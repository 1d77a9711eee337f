"""How statements of programs are written in LLVM's text, all but those of `elements.py`: one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flowstone.native.programs import (
    array_code,
    container_code,
    drawn_code,
    indexed_code,
    matrix_code,
    ranking_code,
)
from flowstone.native.programs.programs import Statement

if TYPE_CHECKING:
    from flowstone.native.programs.program_code import Writer

__all__ = ["STATEMENTS"]

STATEMENTS: dict[str, Callable[[Writer, Statement], None]] = {
    **array_code.STATEMENTS,
    **container_code.STATEMENTS,
    **drawn_code.STATEMENTS,
    **indexed_code.STATEMENTS,
    **matrix_code.STATEMENTS,
    **ranking_code.STATEMENTS,
}
"""By their operations."""
