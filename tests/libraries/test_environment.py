"""How the scripts that run libraries' tests read what pytest prints."""

from __future__ import annotations

import pytest
from environment import passed


@pytest.mark.parametrize(
    "line, count",
    [
        ("=== 2 failed, 163 passed, 5 warnings in 5.24s ===", 163),
        ("20 passed in 1.00s", 20),
        ("3 failed in 0.10s", 0),
        ("", 0),
    ],
)
def test_the_number_of_passed_tests(line: str, count: int) -> None:
    assert passed(line) == count
