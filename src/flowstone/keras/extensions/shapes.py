"""Shapes that the package's layers are asked with: tuples, also where a program gives a TensorShape.

What a program asks `compute_output_shape` for is a TensorShape, or a list of them, as in TensorFlow 1.15; the
package's own layers, which ask each other, get tuples. A layer that gives back the shape it got gives it as
it is.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import flowstone as tf

__all__ = ["as_tuples", "extend", "of_program"]


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


def _as_shapes(found: Any) -> Any:
    """The shape, or each of a list, as a TensorShape."""
    if isinstance(found, list):
        return [_as_shapes(each) for each in found]
    return tf.TensorShape(found)


def of_program(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method `compute_output_shape` as programs ask it; see the module."""

    @functools.wraps(method)
    def converted(self: Any, input_shape: Any = None, *arguments: Any, **keywords: Any) -> Any:
        shape = as_tuples(input_shape)
        found = method(self, shape, *arguments, **keywords)
        if sys._getframe(1).f_globals.get("__name__", "").startswith("flowstone."):
            return found
        return input_shape if found is shape else _as_shapes(found)

    return converted


_ASKED = {"build": _of_tuples, "compute_output_shape": of_program}


def extend(module: ModuleType) -> None:
    """Has the layers that `module` defines take a TensorShape wherever they take a shape."""
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            for name, change in _ASKED.items():
                if name in vars(value):
                    setattr(value, name, change(vars(value)[name]))
