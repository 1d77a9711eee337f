"""The table of how statements are written."""

from __future__ import annotations

from flowstone.native.programs import (
    array_code,
    container_code,
    drawn_code,
    indexed_code,
    matrix_code,
    ranking_code,
    summed_products,
)
from flowstone.native.programs.statement_texts import STATEMENTS


def test_no_statement_is_of_two_families() -> None:
    families = (
        array_code,
        container_code,
        drawn_code,
        indexed_code,
        matrix_code,
        ranking_code,
        summed_products,
    )
    names = [name for each in families for name in each.STATEMENTS]
    assert len(names) == len(set(names)) and set(names) == set(STATEMENTS)


def test_every_family_says_what_its_statements_are() -> None:
    for each in (array_code, drawn_code, indexed_code, ranking_code, summed_products):
        for name in each.STATEMENTS:
            assert name in (each.__doc__ or "") or name.startswith(("Integer", "Windows")), name
