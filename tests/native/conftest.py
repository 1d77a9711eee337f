"""Tests of machine code compile when a step is planned, so that its first run is what they look at."""

from __future__ import annotations

import pytest

from flowstone.framework import flags
from flowstone.native.codegen import host


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = host.reason()
    for item in items if reason else ():
        if "/native/" in str(item.path):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles at plan time."""
    monkeypatch.setattr(flags, "NATIVE", 2)
