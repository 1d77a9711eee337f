"""Public names that need what a graph does not have: eager values, some forms of ragged ones, another format.

    check_pinned = refused_function("tf.check_pinned", "nothing: sessions pin memory where it helps")

The name exists, so that programs can be imported and `isinstance` asked; to call it says what to use instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["NotInGraphModeError", "refuse", "refused_class", "refused_function"]


class NotInGraphModeError(NotImplementedError):
    """A name of later TensorFlows was called whose meaning needs more than graphs and sessions have."""


def refuse(name: str, instead: str) -> NoReturn:
    """Raises NotInGraphModeError: `name` is not there, use `instead`."""
    raise NotInGraphModeError(f"flowstone builds graphs and has no {name}: use {instead}")


def refused_function(name: str, instead: str) -> Callable[..., NoReturn]:
    """A function of this name that refuses."""

    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        refuse(name, instead)

    refused.__name__ = refused.__qualname__ = name.rpartition(".")[2]
    refused.__dict__["instead"] = instead
    refused.__doc__ = f"Raises NotInGraphModeError: use {instead}."
    return refused


def refused_class(name: str, instead: str) -> type:
    """A class of this name that has no instances: to make one is refused, `isinstance` is False."""

    def refused(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(name, instead)

    return type(
        name.rpartition(".")[2],
        (),
        {
            "__new__": refused,
            "instead": instead,
            "__doc__": f"Has no instances (NotInGraphModeError): use {instead}.",
        },
    )
