"""Loads and stores as text: masks, bools as bytes, one element in all lanes."""

from __future__ import annotations

import pytest

from flowstone.native.codegen.emitter import Emitter
from flowstone.native.codegen.vector_memory import lane_mask, load, load_apart, read_one, store, store_one


@pytest.fixture
def e() -> Emitter:
    return Emitter(8, {}, "e")


def test_whole_vectors(e: Emitter) -> None:
    value = load(e, "float32", "%p", "%i")
    store(e, "float32", value, "%q", "%i")
    assert "load <8 x float>, ptr %" in e.lines[1] and e.lines[1].endswith(", align 4")
    assert e.lines[-1].strip().startswith(f"store <8 x float> {value}") and not e.declarations


def test_masks_are_of_the_lanes_that_are_left(e: Emitter) -> None:
    mask = lane_mask(e, "%left")
    value = load(e, "int16", "%p", "0", mask)
    store(e, "int16", value, "%q", "0", mask)
    assert list(e.declarations) == ["llvm.masked.load.v8i16.p0", "llvm.masked.store.v8i16.p0"]
    assert "icmp slt <8 x i64>" in "\n".join(e.lines)


def test_a_bool_is_a_byte_in_memory(e: Emitter) -> None:
    value = load(e, "bool", "%p", "0")
    store(e, "bool", value, "%q", "0")
    assert "load <8 x i8>" in e.lines[1] and "icmp ne <8 x i8>" in e.lines[2]
    assert "zext <8 x i1>" in e.lines[3]


def test_one_element_is_in_all_lanes(e: Emitter) -> None:
    value = read_one(e, "float64", "%p")
    assert "load double, ptr %p, align 8" in e.lines[0] and "shufflevector" in e.lines[-1]
    store_one(e, "float64", value, "%q", "%r")
    assert "extractelement <8 x double>" in "\n".join(e.lines)


def test_elements_that_lie_apart_are_gathered(e: Emitter) -> None:
    load_apart(e, "float32", "%p", "%i", 5, lane_mask(e, "%left"))
    load_apart(e, "bool", "%p", "%i", 3)
    text = "\n".join(e.lines)
    assert (
        "mul i64 %i, 5" in text and "<i64 0, i64 5, i64 10, i64 15, i64 20, i64 25, i64 30, i64 35>" in text
    )
    assert list(e.declarations) == ["llvm.masked.gather.v8f32.v8p0", "llvm.masked.gather.v8i8.v8p0"]
    assert e.lines[-1].strip().split(" = ")[1].startswith("icmp ne <8 x i8>")
    alone = Emitter(1, {}, "a")
    load_apart(alone, "float32", "%p", "%i", 5)
    assert "load float, ptr" in alone.lines[-1] and not alone.declarations
