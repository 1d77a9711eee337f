"""`tensorflow.python.util.deprecation`: decorators that mark what is deprecated."""

from __future__ import annotations

import contextlib
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from flowstone.contrib.framework.deprecation import deprecated as deprecated
from flowstone.contrib.framework.deprecation import deprecated_arg_values as deprecated_arg_values
from flowstone.contrib.framework.deprecation import deprecated_args as deprecated_args

__all__ = [
    "DeprecatedArgSpec",
    "deprecated",
    "deprecated_alias",
    "deprecated_arg_values",
    "deprecated_args",
    "deprecated_argument_lookup",
    "deprecated_endpoints",
    "rewrite_argument_docstring",
    "silence",
]

Function = TypeVar("Function", bound=Callable[..., Any])

DeprecatedArgSpec = namedtuple("DeprecatedArgSpec", ["position", "has_ok_value", "ok_value"])


def deprecated_endpoints(*names: str) -> Callable[[Function], Function]:
    """A decorator that leaves the function as it is."""
    return lambda function: function


def deprecated_alias(
    deprecated_name: str, name: str, func_or_class: Function, warn_once: bool = True
) -> Function:
    """The function or class itself."""
    return func_or_class


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that may be given under its new or its old name.

    Raises ValueError if both are given.
    """
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return old_value


def rewrite_argument_docstring(old_doc: str, old_argument: str, new_argument: str) -> str:
    """The docstring with an argument's new name, also where it is quoted."""
    return old_doc.replace(f"`{old_argument}`", f"`{new_argument}`").replace(
        f"{old_argument}:", f"{new_argument}:"
    )


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """A context without deprecation warnings; flowstone issues none."""
    yield
