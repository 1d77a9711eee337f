"""Public functions that do something else where an argument is a ragged tensor.

A function is marked by `dispatched`, under a name; whoever defines ragged tensors says what is called instead
(`handle`). Arguments are looked at, also in lists, once there are ragged tensors at all.

>>> class Rows(Ragged): pass
>>> @dispatched("doubled")
... def doubled(x): return 2 * x
>>> handle("doubled", lambda function, x: "rows")
>>> Rows.exist = Ragged.exist = True
>>> doubled(3), doubled(Rows())
(6, 'rows')
>>> Ragged.exist = False
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

__all__ = ["Ragged", "dispatched", "handle"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_handlers: dict[str, Callable[..., Any]] = {}


class Ragged:
    """The base of ragged tensors; `exist`: whether one was made in this process."""

    exist: ClassVar[bool] = False

    _type_spec: Any  # its TypeSpec

    def _components(self) -> list[Any]:
        """Its tensors; for subclasses."""
        raise NotImplementedError

    def _rebuilt(self, parts: Any) -> Any:
        """One of the same form of other tensors; for subclasses."""
        raise NotImplementedError

    def _fetched(self, *parts: Any) -> Any:
        """The value of these values of the tensors; for subclasses."""
        raise NotImplementedError

    def _fed(self, value: Any) -> list[tuple[Any, Any]]:
        """The tensors, each with its part of a value; for subclasses."""
        raise NotImplementedError


def dispatched(name: str) -> Callable[[_Function], _Function]:
    """Marks a function, for which the handler of `name` is called where an argument is ragged."""

    def mark(function: _Function) -> _Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if Ragged.exist and (any(map(_is_ragged, args)) or any(map(_is_ragged, kwargs.values()))):
                return _handlers[name](function, *args, **kwargs)
            return function(*args, **kwargs)

        return cast(_Function, call)

    return mark


def _is_ragged(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any([isinstance(item, Ragged) for item in value])
    return isinstance(value, Ragged)


def handle(name: str, handler: Callable[..., Any]) -> None:
    """What the functions of this name do with ragged arguments: `handler(function, *args, **kwargs)`."""
    _handlers[name] = handler
