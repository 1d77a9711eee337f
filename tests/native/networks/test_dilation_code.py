"""The text of dilation; what the code computes is held by `test_dilations.py`."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.networks.dilation_code import PLACES, dilation_code


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lanes", [4, 16])
def test_the_text_is_valid_and_has_its_functions(dtype: str, lanes: int) -> None:
    assert shown_functions(dilation_code(dtype, lanes)) == set(PLACES)
