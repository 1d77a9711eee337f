"""Shapes that the package's layers are asked with: tuples, also where a program gives a TensorShape."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import flowstone as tf

__all__ = ["as_tuples", "extend"]

_ASKED = ("build", "compute_output_shape")


def as_tuples(shape: Any) -> Any:
    """A shape, or a list of shapes, as tuples of int or None."""
    if isinstance(shape, tf.TensorShape):
        return None if shape.ndims is None else tuple(shape.as_list())
    if isinstance(shape, (list, tuple)):
        items = [item.value if isinstance(item, tf.Dimension) else as_tuples(item) for item in shape]
        return items if isinstance(shape, list) else tuple(items)
    return shape


def _of_tuples(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def converted(self: Any, input_shape: Any = None, *arguments: Any, **keywords: Any) -> Any:
        return method(self, as_tuples(input_shape), *arguments, **keywords)

    return converted


def extend(module: ModuleType) -> None:
    """Has the layers that `module` defines take a TensorShape wherever they take a shape."""
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            for name in _ASKED:
                if name in vars(value):
                    setattr(value, name, _of_tuples(vars(value)[name]))
