"""The text of histograms."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.arrays.histogram_code import histogram_code


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_text_is_valid(dtype) -> None:
    assert shown_functions(histogram_code(dtype)) == {"histogram"}
