"""The text of each function is valid, and calls SLEEF only for what is said."""

from __future__ import annotations

import re

import pytest

from code_texts import shown_functions
from flowstone.native.codegen import host
from flowstone.native.numerics.complex_function_code import CALLS, PLACES, complex_function_code

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


@pytest.mark.parametrize("name", PLACES)
def test_the_text_is_valid_and_has_its_function(name: str) -> None:
    text = complex_function_code(name, host.lanes())
    assert shown_functions(text) == {name}
    called = set(re.findall(r"@Sleef_([a-z0-9]+?)f\d+_", text))
    assert called == set(CALLS.get(name, ()))
