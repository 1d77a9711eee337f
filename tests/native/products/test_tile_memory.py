"""Loads and stores of tiles: whole vectors, the last of a row, and truths."""

from __future__ import annotations

import pytest

from flowstone.native.codegen.emitter import Emitter
from flowstone.native.products.tile_memory import Memory, memory_kind


def memory() -> tuple[Memory, Emitter]:
    made = Memory()
    made.lanes, made.dtype, made.declarations = 4, "float32", {}
    return made, Emitter(4, made.declarations)


@pytest.mark.parametrize(("dtype", "kind"), [("float32", "float"), ("float64", "double"), ("bool", "i8")])
def test_what_lies_in_memory(dtype: str, kind: str) -> None:
    assert memory_kind(dtype) == kind


@pytest.mark.parametrize("count", [1, 3, 4])
def test_only_what_is_left_of_a_row_is_read_and_written(count: int) -> None:
    made, e = memory()
    made.store(e, "%to", "float32", made.load(e, "%from", "float32", count), count)
    masked = [name for name in made.declarations if "masked" in name]
    assert len(masked) == (0 if count == 4 else 2)
    assert made.mask(count).count("true") == count


def test_truths_are_bytes_in_memory() -> None:
    made, e = memory()
    made.store(e, "%to", "bool", made.load(e, "%from", "bool", 4), 4)
    made.everywhere(e, "%one", "bool")
    text = "\n".join(e.lines)
    assert "icmp ne <4 x i8>" in text and "zext <4 x i1>" in text and "icmp ne i8" in text
