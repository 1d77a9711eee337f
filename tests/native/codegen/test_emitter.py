"""LLVM's text of single instructions."""

from __future__ import annotations

import pytest

from flowstone.native.codegen.emitter import Emitter


def test_vectors_and_scalars() -> None:
    wide, single = Emitter(8, {}), Emitter(1, {})
    assert wide.binary("fadd", "float32", "%a", "%b") == "%v1"
    single.binary("add", "int64", "%a", "%b")
    assert wide.lines == [" %v1 = fadd <8 x float> %a, %b"]
    assert single.lines == [" %v1 = add i64 %a, %b"]


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("float32", 0.1, "float 0x3FB99999A0000000"),
        ("float64", 0.1, "double 0x3FB999999999999A"),
        ("float16", 0.1, "half 0xH2E66"),
        ("int32", -3, "i32 -3"),
        ("bool", True, "i1 true"),
    ],
)
def test_constants_have_their_types_precision(dtype: str, value: float, text: str) -> None:
    assert Emitter(4, {}).constant(dtype, value) == f"splat ({text})"
    assert Emitter(1, {}).constant(dtype, value) == text.split()[1]


def test_functions_are_declared_once() -> None:
    declarations: dict[str, str] = {}
    for prefix in "ab":
        Emitter(4, declarations, prefix).intrinsic("sqrt", "float32", "%x")
    assert declarations == {"llvm.sqrt.v4f32": "declare <4 x float> @llvm.sqrt.v4f32(<4 x float>)"}


@pytest.mark.parametrize(
    ("source", "target", "instruction"),
    [
        ("float32", "float64", "fpext"),
        ("int32", "float32", "sitofp"),
        ("uint8", "int32", "zext"),
        ("int8", "uint8", "bitcast"),
        ("int64", "int16", "trunc"),
        ("bool", "float32", "uitofp"),
        ("float32", "bool", "fcmp une"),
    ],
)
def test_conversions(source: str, target: str, instruction: str) -> None:
    emitter = Emitter(4, {})
    emitter.convert("%x", source, target)
    assert f"= {instruction} " in emitter.lines[0]


@pytest.mark.parametrize(
    ("source", "target", "instructions"),
    [
        ("float64", "float16", ["fptrunc", "fptrunc"]),
        ("int64", "float16", ["sitofp", "fptrunc"]),
        ("float16", "float64", ["fpext", "fpext"]),
        ("float16", "bool", ["fpext", "fcmp"]),
        ("float16", "float16", []),
    ],
)
def test_float16_is_converted_by_float32(source: str, target: str, instructions: list[str]) -> None:
    emitter = Emitter(4, {})
    emitter.convert("%x", source, target)
    assert [line.split()[2] for line in emitter.lines] == instructions
