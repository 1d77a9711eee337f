"""The text of pooling over windows; what the code computes is held by `test_window_pools.py`."""

from __future__ import annotations

import pytest

from code_texts import shown_functions
from flowstone.native.networks.window_pool_code import PLACES, window_pool_code


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int8"])
@pytest.mark.parametrize("lanes", [4, 16])
def test_the_text_is_valid_and_has_its_functions(dtype: str, lanes: int) -> None:
    assert shown_functions(window_pool_code(dtype, lanes)) == set(PLACES)
