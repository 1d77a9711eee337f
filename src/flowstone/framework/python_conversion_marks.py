"""`tf.autograph.experimental`: marks of functions whose Python stays as it is, as it does here."""

from __future__ import annotations

import enum
from typing import Any

__all__ = ["Feature", "do_not_convert", "set_loop_options"]


class Feature(enum.Enum):
    """What a conversion may be asked for."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


def do_not_convert(func: Any = None) -> Any:
    """The function itself; without one, a decorator that returns what it is given."""
    return func if func is not None else lambda function: function


def set_loop_options(**options: Any) -> None:
    """Takes what a loop that is converted would be given; Python's own loops take nothing."""
