"""Functions and arguments that go. The notes are 1.15.5's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flowstone as tf

framework = tf.contrib.framework


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    found: list[str] = []
    monkeypatch.setattr(tf.logging, "warning", found.append)
    yield found


def function(a: Any, b: Any = None) -> Any:
    """Doc."""
    return a


def test_functions(warnings: list[str]) -> None:
    old = framework.deprecated("2016-01-01", "use x")(function)
    assert old.__name__ == "function"
    assert old.__doc__ == (
        "Doc. (deprecated)\n\nWarning: THIS FUNCTION IS DEPRECATED. It will be removed after 2016-01-01.\n"
        "Instructions for updating:\nuse x"
    )
    assert [old(1), old(2)] == [1, 2]
    assert len(warnings) == 1 and "use x" in warnings[0]


def test_arguments(warnings: list[str]) -> None:
    old = framework.deprecated_args(None, "use x", ("b", None))(function)
    old(1, b=None)
    assert warnings == []
    old(1, 2)
    assert len(warnings) == 1 and "`(b)`. They will be removed in a future version" in warnings[0]


def test_values(warnings: list[str]) -> None:
    old = framework.deprecated_arg_values("2016-01-01", "use x", warn_once=False, b=True)(function)
    old(1, b=False)
    assert warnings == []
    old(1, b=True)
    old(1, True)
    assert len(warnings) == 2 and "`(b=True)`" in warnings[0]


def test_refused() -> None:
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        framework.deprecated("bad", "x")
    with pytest.raises(ValueError, match="instructions"):
        framework.deprecated("2016-01-01", "")
    with pytest.raises(ValueError, match="which argument is"):
        framework.deprecated_args("2016-01-01", "x")
    with pytest.raises(ValueError, match=r"signature: \['zz'\]"):
        framework.deprecated_args("2016-01-01", "x", "zz")(function)
    with pytest.raises(ValueError, match="which argument values"):
        framework.deprecated_arg_values("2016-01-01", "x")
