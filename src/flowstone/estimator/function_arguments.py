"""The names of a function's arguments, by which the values are chosen that it is called with."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["argument_names", "fn_args"]


def argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of arguments that a call may still give, without `self` and what a partial has bound.

    TypeError for what cannot be called.
    """
    if not callable(function):
        raise TypeError("unsupported callable")
    if isinstance(function, functools.partial):
        names = argument_names(function.func)[len(function.args) :]
        return tuple(name for name in names if name not in function.keywords)
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters
    return tuple(name for name, each in parameters.items() if each.kind not in kinds)


fn_args = argument_names  # the name in TensorFlow's module `estimator.util`
