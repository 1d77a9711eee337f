"""What AutoGraph's functions were called, and took, in TensorFlow 1.8 to 1.13."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone import conversion

__all__ = [
    "AutoGraphError", "RunMode", "convert", "converted_call", "set_element_type", "stack", "tensor_list",
    "to_code", "to_graph",
]  # fmt: skip


class AutoGraphError(Exception):
    """Kept for programs that name it: errors of converted code are the user's own."""


class RunMode(enum.Enum):
    """How a function that is not converted is run; here always in the graph."""

    GRAPH = 1
    PY_FUNC = 2


def to_graph(e: Any, recursive: bool = True, verbose: Any = False, *later: Any, **options: Any) -> Any:
    """`tf.autograph.to_graph`; the other arguments say nothing."""
    return conversion.to_graph(e, recursive)


def to_code(e: Any, recursive: bool = True, *later: Any, **options: Any) -> str:
    """`tf.autograph.to_code`; the other arguments say nothing."""
    return str(conversion.to_code(e, recursive))


def convert(recursive: bool = False, verbose: Any = False, *later: Any, **options: Any) -> Any:
    """A decorator that has each call of a function run the converted one.

    Args:
        recursive: whether what it calls is converted too.
    """

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        converted: list[Any] = []  # with the first call, when what the function refers to is there

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not converted:
                converted.append(conversion.to_graph(function, recursive))
            return converted[0](*args, **kwargs)

        return tf.autograph.do_not_convert(call)  # type: ignore[no-any-return]

    return decorated


def converted_call(f: Any, *arguments: Any) -> Any:
    """A call of a converted function: the last two arguments are those of the call, as a tuple and a dict."""
    args, kwargs = arguments[-2:]
    return conversion.convert(f)(*args, **(kwargs or {}))


def set_element_type(entity: Any, dtype: Any, shape: Any = None) -> None:
    """Says nothing: lists of Python stay such lists."""


def stack(list_or_tensor: Any, element_dtype: Any = None, strict: bool = True) -> Any:
    """A list as one tensor, a tensor as it is. ValueError for something else if `strict`."""
    if isinstance(list_or_tensor, (list, tuple)):
        return tf.stack([tf.convert_to_tensor(x, element_dtype) for x in list_or_tensor])
    if strict and not isinstance(list_or_tensor, tf.Tensor):
        raise ValueError(f"{list_or_tensor!r} is neither a list nor a tensor")
    return list_or_tensor


def tensor_list(elements: Any, *later: Any, **options: Any) -> list[Any]:
    """The elements as a list."""
    return list(elements)
