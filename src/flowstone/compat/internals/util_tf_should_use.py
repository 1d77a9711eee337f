"""`tensorflow.python.util.tf_should_use`: decorators for functions whose result should be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["must_use_result_or_fatal", "should_use_result"]

Function = TypeVar("Function", bound=Callable[..., Any])


def should_use_result(fn: Any = None, warn_in_eager: bool = False, error_in_function: bool = False) -> Any:
    """The function itself, or a decorator that leaves functions as they are."""
    return fn if fn is not None else lambda function: function


def must_use_result_or_fatal(fn: Function) -> Function:
    """The function itself."""
    return fn
