"""`tensorflow.python.util.function_utils`: names, code and arguments of functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any

from flowstone.estimator.function_arguments import argument_names as fn_args

__all__ = ["fn_args", "get_func_code", "get_func_name", "has_kwargs"]


def has_kwargs(fn: Callable[..., Any]) -> bool:
    """Whether a function takes any keywords. TypeError for what cannot be called."""
    if not callable(fn):
        raise TypeError(f"fn should be a function-like object, but is of type {type(fn)}.")
    kinds = [each.kind for each in inspect.signature(fn).parameters.values()]
    return inspect.Parameter.VAR_KEYWORD in kinds


def get_func_name(func: Callable[..., Any]) -> str:
    """A function's name, a method's with its object's class, another callable's type."""
    if not callable(func):
        raise ValueError("Argument must be callable")
    if inspect.isfunction(func):
        return func.__name__
    if inspect.ismethod(func):
        return f"{type(func.__self__).__name__}.{func.__name__}"
    return str(type(func))


def get_func_code(func: Callable[..., Any]) -> CodeType | None:
    """The code of a function, a method or an object's `__call__`; None if that has none, as in a partial."""
    if not callable(func):
        raise ValueError("Argument must be callable")
    is_plain = inspect.isfunction(func) or inspect.ismethod(func)
    code = getattr(func if is_plain else getattr(func, "__call__", None), "__code__", None)  # noqa: B004 (its value)
    return code if isinstance(code, CodeType) else None
