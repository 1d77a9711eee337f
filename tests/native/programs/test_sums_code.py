"""Accumulators in the text of programs: what changes nothing, and how several become one."""

from __future__ import annotations

import pytest
import torch

from flowstone.native.programs.sums_code import REDUCTIONS, Sums, combined, neutral
from flowstone.native.programs.writer import Writer
from small_programs import made, run


def writer() -> Writer:
    return Writer(made([torch.zeros(1)], lambda e, x: [x]), {})


def test_what_changes_nothing() -> None:
    own = writer()
    assert neutral(own, "Sum", "float32") == own.vectors.constant("float32", 0)
    assert neutral(own, "Prod", "int32") == own.vectors.constant("int32", 1)
    assert neutral(own, "Max", "int32") == own.vectors.constant("int32", -(2**31))
    assert neutral(own, "Min", "float64") == own.vectors.constant("float64", float("inf"))


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_each_kind_combines_two_vectors(kind: str) -> None:
    own = writer()
    dtype = "bool" if kind in ("All", "Any") else "int32"
    vector = own.vectors.type(dtype)
    found = combined(own.vectors, kind, dtype, "%a", "%b")
    assert found.startswith("%") and vector.startswith(f"<{own.lanes} x")
    assert any("%a" in line and "%b" in line for line in own.lines)


def test_sums_of_products_are_rounded_once() -> None:
    own = writer()
    sums = Sums(own, "float32", "Sum", [0, 1])
    sums.add_product(0, "%a", "%b")
    assert any("llvm.fma" in line for line in own.lines)
    assert sums.total([0, 1]).startswith("%")


def test_a_row_of_one_element_less_than_a_vector() -> None:
    x = torch.arange(7, dtype=torch.float32)
    (found,) = run(
        [x], lambda e, y: [e.add("Reduce", [y], ("float32", ()), kind="Max", outer=1, size=7, inner=1)]
    )
    assert found.item() == 6
