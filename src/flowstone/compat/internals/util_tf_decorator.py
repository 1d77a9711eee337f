"""`tensorflow.python.util.tf_decorator`: decorators that can be taken off again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["TFDecorator", "make_decorator", "unwrap"]


def make_decorator(
    target: Callable[..., Any],
    decorator_func: Callable[..., Any],
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> Callable[..., Any]:
    """`decorator_func`, made to look like the `target` that it wraps."""
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        if hasattr(target, attribute):
            setattr(decorator_func, attribute, getattr(target, attribute))
    decorator_func.__dict__["__wrapped__"] = target
    decorator_func.__dict__["_tf_decorator"] = TFDecorator(
        decorator_name or "make_decorator", target, decorator_doc, decorator_argspec
    )
    return decorator_func


def unwrap(decorated: Any) -> tuple[list[Any], Any]:
    """The decorators around a function, outermost first, and the function within."""
    decorators = []
    while hasattr(decorated, "__wrapped__"):
        decorators.append(decorated)
        decorated = decorated.__wrapped__
    return decorators, decorated


class TFDecorator:
    """A decorated function: it is called through to its target.

    Args:
        decorator_name: the decorator's name.
        target: the function that it decorates.
        decorator_doc: what the decorator says of itself.
        decorator_argspec: the arguments that the decorated function takes; None for the target's.
    """

    def __init__(
        self,
        decorator_name: str,
        target: Callable[..., Any],
        decorator_doc: str = "",
        decorator_argspec: Any = None,
    ) -> None:
        self._target = target
        self.decorator_name = decorator_name
        self.decorator_doc = decorator_doc
        self.decorator_argspec = decorator_argspec
        functools.update_wrapper(self, target)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._target(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self._target.__get__(instance, owner)

    @property
    def decorated_target(self) -> Callable[..., Any]:
        """The function that is decorated."""
        return self._target

    @decorated_target.setter
    def decorated_target(self, target: Callable[..., Any]) -> None:
        self._target = target
