"""Python functions as operations, with structures of arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.framework.tensors import nest

__all__ = ["py_func"]


def py_func(
    func: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None,
    output_types: Any = None, output_shapes: Any = None, stateful: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """`func(*args, **kwargs)` on NumPy arrays in each step.

    Args:
        func: is called with the structures of `args` and `kwargs`, arrays in place of tensors.
        output_types: the types of its results, in the structure in which it returns them.
        output_shapes: their shapes in the same structure, as far as they are known.
        stateful: whether two calls may give different results.
        name: of the operation.

    Raises:
        TypeError: `func` cannot be called, `args` is no list or tuple, `kwargs` no dict, or types are
            missing.
    """
    _check(func, args, kwargs, output_types)
    given = (tuple(args), dict(kwargs or {}))
    tensors = [tf.convert_to_tensor(value) for value in nest.flatten(given)]

    def flat(*values: Any) -> list[Any]:
        positional, keywords = nest.pack_sequence_as(given, list(values))
        found = func(*positional, **keywords)
        nest.assert_same_structure(output_types, found)
        return list(nest.flatten(found))

    types = nest.flatten(output_types)
    results = tf.py_func(flat, tensors, types, stateful=stateful, name=name)
    if output_shapes is not None:
        shapes = _shapes_like(output_types, output_shapes)
        for result, shape in zip(results, shapes):
            result.set_shape(shape)
    return nest.pack_sequence_as(output_types, list(results))


def _check(func: Any, args: Any, kwargs: Any, output_types: Any) -> None:
    if not callable(func):
        raise TypeError(f"func must be callable, but is {func!r}")
    if not isinstance(args, (list, tuple)):
        raise TypeError(f"args must be list and not {type(args)}. args: {args}")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise TypeError(f"kwargs must be dict and not {type(kwargs)}. args: {kwargs}")
    if output_types is None:
        raise TypeError("output_types must be given")


def _shapes_like(types: Any, shapes: Any) -> list[Any]:
    """The shapes in the order of the types, whose structure they have; lists of sizes are shapes."""
    if isinstance(types, Mapping):
        return [shape for key in sorted(types) for shape in _shapes_like(types[key], shapes[key])]
    if isinstance(types, (list, tuple)):
        return [shape for each, given in zip(types, shapes) for shape in _shapes_like(each, given)]
    return [shapes]
