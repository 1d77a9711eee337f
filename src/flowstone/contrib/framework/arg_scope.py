"""Default arguments for a stretch of code: `arg_scope`.

A function decorated with `add_arg_scope` takes the keyword arguments of the scope in force, unless the call
gives them:

    with arg_scope([conv2d], padding="SAME", activation_fn=relu) as scope:
        net = conv2d(inputs, 64, 3)                  # padding="SAME"
        net = conv2d(net, 64, 3, padding="VALID")

The state is a stack of scopes. A scope is a dict from a function's key to its keyword arguments; the function
that decorates and the one that is decorated have the same key. Entering a list of functions pushes a copy of
the scope in force with their arguments added; entering a scope that `arg_scope` gave pushes that one.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

__all__ = [
    "add_arg_scope",
    "arg_scope",
    "arg_scope_func_key",
    "arg_scoped_arguments",
    "current_arg_scope",
    "has_arg_scope",
]

P = ParamSpec("P")
Result = TypeVar("Result")
Scope = dict[str, dict[str, Any]]


class _ArgumentStack(threading.local):
    """The scopes in force of this thread, the innermost last."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = [{}]


argument_stack = _ArgumentStack()
_DECORATED_OPS: dict[str, tuple[str, ...]] = {}


def current_arg_scope() -> Scope:
    """The scope in force: keyword arguments by the keys of functions."""
    return argument_stack.scopes[-1]


def arg_scope_func_key(op: Any) -> str:
    """The key of a function, decorated or not, in scopes."""
    key: str = getattr(op, "_key_op", str(op))
    return key


def _kwarg_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the arguments that have defaults."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(
        parameter.name
        for parameter in parameters
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.default is not parameter.empty
    )


def add_arg_scope(func: Callable[P, Result]) -> Callable[P, Result]:
    """Decorates a function so that `arg_scope` can set its keyword arguments."""
    key = str(func)

    @functools.wraps(func)
    def func_with_args(*args: P.args, **kwargs: P.kwargs) -> Result:
        defaults = argument_stack.scopes[-1].get(key)
        if defaults:
            return func(*args, **{**defaults, **kwargs})
        return func(*args, **kwargs)

    func_with_args.__dict__["_key_op"] = key
    _DECORATED_OPS[key] = _kwarg_names(func)
    return func_with_args


def has_arg_scope(func: Any) -> bool:
    """Whether the function is decorated with `add_arg_scope`."""
    return arg_scope_func_key(func) in _DECORATED_OPS


def arg_scoped_arguments(func: Any) -> tuple[str, ...]:
    """The names of the arguments that `arg_scope` may set for a decorated function.

    Raises:
        KeyError: the function is not decorated.
    """
    return _DECORATED_OPS[arg_scope_func_key(func)]


@contextlib.contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[Scope]:
    """Sets keyword arguments of decorated functions.

    Args:
        list_ops_or_scope: functions decorated with `add_arg_scope`, in a list or tuple; or a scope that an
            `arg_scope` gave, to enter again.
        **kwargs: the arguments and their values; none with a scope.

    Yields the scope in force within.

    Raises:
        TypeError: it is neither a list, a tuple nor a dict.
        ValueError: a function is not decorated, or arguments are given with a scope.
    """
    if isinstance(list_ops_or_scope, dict):
        if kwargs:
            raise ValueError(
                "When attempting to re-use a scope by supplying a dictionary, kwargs must be empty."
            )
        scope = list_ops_or_scope.copy()
    elif isinstance(list_ops_or_scope, (list, tuple)):
        scope = _extended(argument_stack.scopes[-1], list_ops_or_scope, kwargs)
    else:
        raise TypeError("list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict)")
    argument_stack.scopes.append(scope)
    try:
        yield scope
    finally:
        argument_stack.scopes.pop()


def _extended(scope: Scope, functions: Any, keywords: dict[str, Any]) -> Scope:
    """A copy of a scope in which the functions have these arguments, too."""
    result = scope.copy()
    for function in functions:
        if not has_arg_scope(function):
            name = getattr(function, "__name__", function)
            raise ValueError(f"{name} is not decorated with @add_arg_scope")
        key = arg_scope_func_key(function)
        result[key] = {**result.get(key, {}), **keywords}
    return result
