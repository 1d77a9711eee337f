"""tf.compat's conversions, with TensorFlow's answers."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from flowstone.compat import text
from flowstone.framework.types.shape import TensorShape


def test_bytes_and_text() -> None:
    assert text.as_bytes("é") == text.as_bytes(b"\xc3\xa9") == b"\xc3\xa9"
    assert text.as_text("é") == text.as_str(b"\xc3\xa9") == "é"
    assert [text.as_str_any(value) for value in (b"x", "x", 3)] == ["x", "x", "3"]


@pytest.mark.parametrize("value", [3, None, bytearray(b"a")])
def test_neither_bytes_nor_text(value: object) -> None:
    for convert in (text.as_bytes, text.as_text, text.as_str):
        with pytest.raises(TypeError, match="Expected binary or unicode string"):
            convert(value)  # type: ignore[arg-type]


def test_paths() -> None:
    assert text.path_to_str(pathlib.Path("a")) == "a"
    assert text.path_to_str(3) == 3


def test_number_types() -> None:
    assert isinstance(np.int8(1), text.integral_types)
    assert isinstance(np.float32(1), text.real_types)
    assert isinstance(1j, text.complex_types)
    assert not isinstance(1.5, text.integral_types)
    assert not isinstance(1j, text.real_types)


def test_dimensions() -> None:
    assert text.dimension_at_index(TensorShape([2, None]), 0).value == 2
    assert text.dimension_at_index(TensorShape(None), 1).value is None
    assert text.dimension_value(TensorShape([2])[0]) == 2
