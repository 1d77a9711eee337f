"""Datasets of what Python generators yield."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.data.structure import Structure, flatten_like
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.control.script import py_func


class _Generators:
    """The generators of passes that have begun, by number."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._running: dict[int, Any] = {}
        self._next, self._lock = 0, threading.Lock()

    def begin(self, *arguments: Any) -> np.ndarray[Any, Any]:
        """Starts a generator with these arguments; its number."""
        values = iter(self._function(*arguments))
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._running[number] = values
        return np.array(number, np.int64)

    def next(self, number: Any) -> Any:
        """What the generator yields next. StopIteration at its end, and ever after."""
        try:
            return next(self._running.get(int(number), iter(())))
        except StopIteration:
            with self._lock:
                self._running.pop(int(number), None)
            raise


def generated(generator: Callable[..., Any], structure: Structure, args: Any) -> Callable[[Any], Any]:
    """The dataset of `Dataset.from_generator`, made with what makes a dataset of tensors."""
    if not callable(generator):
        raise TypeError("`generator` must be a callable.")
    tensors = [convert_to_tensor(each) for each in args] if args is not None else []
    generators = _Generators(generator)

    def next_element(number: Tensor) -> Any:
        def arrays(value: Any) -> list[Any]:
            return _as_arrays(generators.next(value), structure)

        found = py_func(arrays, [number], structure.flat_types)
        return structure.unpacked(found)

    def made(from_tensors: Callable[[Any], Any]) -> Any:
        def elements(*given: Tensor) -> Any:
            number = py_func(generators.begin, list(given) if tensors else [], dtypes.int64)
            number.set_shape([])
            return from_tensors(number).repeat().map(next_element)

        return from_tensors(tuple(tensors) if tensors else 0).flat_map(elements)

    return made


def _as_arrays(element: Any, structure: Structure) -> list[Any]:
    """The components of what a generator yielded. TypeError or ValueError if they do not fit."""
    try:
        parts = flatten_like(structure.form, element, "the generator's element")
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`generator` yielded an element that did not match the expected structure. The expected "
            f"structure was {structure.types}, but the yielded element was {element!r}. ({error})"
        ) from None
    return [_as_array(part, leaf) for part, leaf in zip(parts, structure.leaves)]


def _as_array(value: Any, leaf: Any) -> Any:
    try:
        array = np.asarray(value, None if leaf.dtype is dtypes.string else leaf.dtype.as_numpy_dtype)
    except (TypeError, ValueError):
        raise TypeError(
            "`generator` yielded an element that could not be converted to the expected type. The expected "
            f"type was {leaf.dtype.name}, but the yielded element was {value!r}."
        ) from None
    if not leaf.shape.is_compatible_with(array.shape):
        raise ValueError(
            f"`generator` yielded an element of shape {array.shape} where an element of shape {leaf.shape} "
            "was expected."
        )
    return array.astype(object) if leaf.dtype is dtypes.string else array
