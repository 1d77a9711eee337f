"""Tests of flowstone.framework.declarations.attributes."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest

from flowstone.framework.declarations import attributes
from flowstone.framework.declarations.attributes import (
    REQUIRED,
    as_text,
    parse_attribute,
    parse_attributes,
    type_attribute,
)
from flowstone.framework.types import dtypes
from flowstone.framework.types.dimension import Dimension
from flowstone.framework.types.shape import TensorShape


def test_examples() -> None:
    assert doctest.testmod(attributes).failed == 0


@pytest.mark.parametrize(
    "text, kind, is_list, minimum, default",
    [
        ("N: int >= 2", "int", False, 2, REQUIRED),
        ("k: int = -3", "int", False, None, -3),
        ("k: int >= -1 = 5", "int", False, -1, 5),
        ("x: float = 1e-3", "float", False, None, 1e-3),
        ("x: float = -6", "float", False, None, -6.0),
        ("b: bool = true", "bool", False, None, True),
        ("b: bool = false", "bool", False, None, False),
        ("s: string = ''", "string", False, None, ""),
        ("s: string = 'a b'", "string", False, None, "a b"),
        ("T: type = float", "type", False, None, dtypes.float32),
        ("shape: shape = ?", "shape", False, None, None),
        ("shape: shape = []", "shape", False, None, ()),
        ("shape: shape = [2, ?]", "shape", False, None, (2, None)),
        ("strides: list(int) >= 4", "int", True, 4, REQUIRED),
        ("d: list(int) = [1, 2]", "int", True, None, (1, 2)),
        ("d: list(float) = [0.75, 1.33]", "float", True, None, (0.75, 1.33)),
        ("Ts: list(type) = []", "type", True, None, ()),
        ("f: func", "func", False, None, REQUIRED),
        ("value: tensor", "tensor", False, None, REQUIRED),
    ],
)
def test_declaration(text: str, kind: str, is_list: bool, minimum: Any, default: Any) -> None:
    spec = parse_attribute(text)
    assert (spec.kind, spec.is_list, spec.minimum, spec.default) == (kind, is_list, minimum, default)


def test_tensor_default() -> None:
    default = parse_attribute("color: tensor = uint8 [255, 0]").default
    assert default.dtype == np.uint8
    assert default.tolist() == [255, 0]


def test_allowed_values() -> None:
    specs = parse_attributes("T: type in [float, int32] = int32 ; p: string in ['SAME', 'VALID']")
    assert [spec.name for spec in specs] == ["T", "p"]
    assert specs[0].allowed == {dtypes.float32, dtypes.int32}
    assert specs[1].allowed == {"SAME", "VALID"}
    assert type_attribute("T", None).allowed is None


@pytest.mark.parametrize(
    "text", ["T", "T: zork", "T: type in", "k: int = x", "T: type = zork", "s: string = x"]
)
def test_malformed_declarations(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        parse_attribute(text)


@pytest.mark.parametrize(
    "text, value, canonical",
    [
        ("a: type", "float", dtypes.float32),
        ("a: type", np.int32, dtypes.int32),
        ("a: type", dtypes.float32.as_ref, dtypes.float32),
        ("a: int", np.int64(3), 3),
        ("a: int", Dimension(3), 3),
        ("a: float", 1, 1.0),
        ("a: float", np.float32(0.5), 0.5),
        ("a: bool", np.True_, True),
        ("a: string", b"x", "x"),
        ("a: string", b"\xff", b"\xff"),
        ("a: shape", [1, None], (1, None)),
        ("a: shape", TensorShape(None), None),
        ("a: shape", TensorShape([2]), (2,)),
        ("a: list(int)", [1, 2], (1, 2)),
        ("a: list(int)", np.array([1, 2]), (1, 2)),
        ("a: list(int)", 7, (7,)),
        ("a: list(shape)", [[1], None], ((1,), None)),
        ("a: func", "f", "f"),
    ],
)
def test_canonical_form(text: str, value: Any, canonical: Any) -> None:
    found = parse_attribute(text).canonical(value)
    assert found == canonical
    assert type(found) is type(canonical)


@pytest.mark.parametrize(
    "text, value, error",
    [
        ("a: int", 1.5, TypeError),
        ("a: int", True, TypeError),
        ("a: float", "1", TypeError),
        ("a: bool", 1, TypeError),
        ("a: string", 1, TypeError),
        ("a: type", "zork", TypeError),
        ("a: shape", "x", TypeError),
        ("a: shape", [-2], TypeError),
        ("a: list(int)", [1, "x"], TypeError),
        ("a: int >= 2", 1, ValueError),
        ("a: list(int) >= 2", [1], ValueError),
        ("a: string in ['x', 'y']", "z", ValueError),
        ("a: type in [float]", "int32", TypeError),
    ],
)
def test_wrong_values_name_the_attribute_and_the_op(text: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"'a'.*'Odd'"):
        parse_attribute(text).canonical(value, "Odd")


def test_text() -> None:
    assert (as_text("é"), as_text("é".encode()), as_text(bytearray(b"\xfe"))) == ("é", "é", b"\xfe")
    with pytest.raises(TypeError):
        as_text(3)
