"""`tensorflow.python.autograph.impl.api`: marks of functions whose Python stays as it is, as it does here."""

from __future__ import annotations

from typing import Any

__all__ = ["do_not_convert"]


def do_not_convert(func: Any = None) -> Any:
    """The function itself; without one, a decorator that returns what it is given."""
    return func if func is not None else lambda function: function
