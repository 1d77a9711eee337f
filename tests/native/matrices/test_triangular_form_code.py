"""The text of triangular forms is valid for both types."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.matrices.triangular_form_code import PLACES, triangular_form_code

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_the_text_is_valid_and_has_its_functions(dtype: str, lanes: int) -> None:
    assert shown_functions(triangular_form_code(dtype, lanes)) == set(PLACES)
