"""`tensorflow.python.util.tf_inspect`: Python's inspect, which sees through decorators."""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from flowstone.compat.internals.util_tf_decorator import unwrap

__all__ = [
    "ArgSpec",
    "getargspec",
    "getcallargs",
    "getdoc",
    "getfile",
    "getfullargspec",
    "getmodule",
    "getsource",
]

ArgSpec = namedtuple("ArgSpec", ["args", "varargs", "keywords", "defaults"])


def getfullargspec(obj: Callable[..., Any]) -> inspect.FullArgSpec:
    """The arguments of a function, decorated or not. Flowstone's have no annotations, as TensorFlow's."""
    target = unwrap(obj)[1]
    spec = inspect.getfullargspec(target)
    is_ours = str(getattr(target, "__module__", "")).startswith("flowstone.")
    return spec._replace(annotations={}) if is_ours else spec


def getargspec(obj: Callable[..., Any]) -> Any:
    """The positional arguments of a function, decorated or not: args, varargs, keywords, defaults.

    Raises TypeError for what has no Python signature.
    """
    spec = getfullargspec(obj)
    return ArgSpec(spec.args, spec.varargs, spec.varkw, spec.defaults)


def getcallargs(func: Callable[..., Any], *positional: Any, **named: Any) -> dict[str, Any]:
    """Each argument's name and value in the call `func(*positional, **named)`, defaults included."""
    return inspect.getcallargs(unwrap(func)[1], *positional, **named)


def getdoc(object: Any) -> str | None:
    """The docstring of an object, decorated or not."""
    return inspect.getdoc(object)


def getfile(object: Any) -> str:
    """The file in which an object is defined, decorated or not."""
    return inspect.getfile(unwrap(object)[1])


def getsource(object: Any) -> str:
    """The source text of an object, decorated or not."""
    return inspect.getsource(unwrap(object)[1])


def getmodule(object: Any) -> Any:
    """The module in which an object is defined."""
    return inspect.getmodule(object)
