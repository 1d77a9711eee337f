"""`tensorflow.python.util.decorator_utils`: docstrings with notices, names, properties of classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["add_notice_to_docstring", "classproperty", "get_qualified_name", "validate_callable"]


def add_notice_to_docstring(
    doc: str | None, instructions: str, no_doc_str: str, suffix_str: str, notice: list[str]
) -> str:
    """A docstring with a notice after its first line, and with `suffix_str` at the end of that line."""
    if not doc:
        return "\n\n".join([no_doc_str, *notice, instructions]).rstrip()
    first, _, rest = inspect.cleandoc(doc).partition("\n")
    parts = [f"{first}{suffix_str}", "", *notice, instructions]
    if rest.strip():
        parts += ["", rest.lstrip("\n")]
    return "\n".join(parts)


def get_qualified_name(function: Callable[..., Any]) -> str:
    """The function's qualified name; its plain name if it has no other."""
    return getattr(function, "__qualname__", function.__name__)


def validate_callable(func: Any, decorator_name: str) -> None:
    """Raises ValueError unless `func` can be called."""
    if not callable(func):
        raise ValueError(
            f"{func} is not a function. If this is a property, make sure @property appears before "
            f"@{decorator_name} in your source code."
        )


class classproperty:
    """A property of a class, which needs no instance."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self._func = func

    def __get__(self, owner_self: Any, owner_cls: Any) -> Any:
        return self._func(owner_cls)
