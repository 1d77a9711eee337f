"""Functions whose arguments have stood in two orders: that of TensorFlow 1.4, and that of later ones.

The signature has the older order. A call by position whose values say that it means the later one is read
so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

__all__ = ["dilations_before_name", "or_in_order"]

P = ParamSpec("P")
R = TypeVar("R")


def or_in_order(
    place: int, later: str, is_later: Callable[[tuple[Any, ...]], bool]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator for a function that takes the positional arguments from `place` on as the parameters `later`,
    names with spaces between, if ``is_later(those arguments)``.

    TypeError for a parameter that is given twice.
    """
    names = later.split()

    def decorator(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            tail = args[place:]
            if tail and is_later(tail) and len(tail) <= len(names):
                for name, value in zip(names, tail):
                    if name in kwargs:
                        raise TypeError(f"{function.__name__}() got multiple values for argument {name!r}")
                    kwargs[name] = value
                return function(*args[:place], **kwargs)  # type: ignore[arg-type]
            return function(*args, **kwargs)

        return called

    return decorator


def dilations_before_name(tail: tuple[Any, ...]) -> bool:
    """Whether of two arguments, a name and dilations, the latter come first: a name is a text or None."""
    return not isinstance(tail[0], (str, type(None))) or (len(tail) > 1 and isinstance(tail[1], str))
