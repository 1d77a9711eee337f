"""`tensorflow.python.util.keyword_args`: functions that take keywords only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["keyword_args_only"]


def keyword_args_only(func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`, which raises ValueError where it is given an argument by position."""

    @functools.wraps(func)
    def called(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError(f"Must use keyword args to call {func.__name__}.")
        return func(**kwargs)

    return called
