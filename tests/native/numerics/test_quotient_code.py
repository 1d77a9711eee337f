"""The text of quotients is valid, and divides by the processor only where floats are not exact."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.numerics.quotient_code import PLACES, quotient_code

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_the_text_is_valid_and_has_its_functions(dtype: str) -> None:
    text = quotient_code(dtype, 8)
    assert shown_functions(text) == set(PLACES)
    assert ("sdiv" in text) == (dtype == "int64")
    assert ("x double>" in text) == (dtype == "int32")
