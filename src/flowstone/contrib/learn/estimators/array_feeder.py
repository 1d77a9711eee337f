"""Arrays as inputs: placeholders named `input` and `output`, and the feeds of one step after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import flowstone as tf

__all__ = ["ArrayFeeder"]


class ArrayFeeder:
    """Feeds arrays batch by batch; the last batch of an epoch may be smaller.

    Args:
        x: an array of examples, or a dict of them; whatever NumPy can make an array of.
        y: the labels, or None.
        batch_size: how many examples a step takes; None: all.
        shuffle: whether each epoch has an order of its own, the same ones in every process.
        epochs: how many epochs there are; None: no end.

    Numbers of 64-bit floating point become those of 32 bits. ValueError for labels of another number.
    """

    def __init__(
        self, x: Any, y: Any, batch_size: int | None = None, shuffle: bool = True, epochs: int | None = None
    ) -> None:
        self._x, self._y = _arrays(x), None if y is None else _arrays(y)
        self._count = len(next(iter(self._x.values())) if isinstance(self._x, dict) else self._x)
        for each in _flat(self._x, self._y):
            if len(each) != self._count:
                raise ValueError(f"x and y have other numbers of examples: {self._count} and {len(each)}")
        self._batch_size = batch_size or self._count
        self._shuffle, self._epochs = shuffle, epochs
        self._random = np.random.RandomState(42)
        self._order = self._new_order()
        self._offset = self._epoch = 0

    def _new_order(self) -> Any:
        return self._random.permutation(self._count) if self._shuffle else np.arange(self._count)

    def input_builder(self) -> tuple[Any, Any]:
        """The placeholders of the examples, and of the labels or None."""
        self._inputs = _placeholders(self._x, "input")
        self._outputs = None if self._y is None else _placeholders(self._y, "output")
        return self._inputs, self._outputs

    def get_feed_dict_fn(self) -> Callable[[], dict[Any, Any]]:
        """A function that returns the feeds of the next step; it raises StopIteration after the last
        epoch."""

        def feed_dict_fn() -> dict[Any, Any]:
            if self._epochs is not None and self._epoch >= self._epochs:
                raise StopIteration
            end = min(self._count, self._offset + self._batch_size)
            indices = self._order[self._offset : end]
            feeds = _fed_with(self._inputs, self._x, indices)
            if self._y is not None:
                feeds.update(_fed_with(self._outputs, self._y, indices))
            self._offset = end
            if end >= self._count:
                self._order = self._new_order()
                self._offset, self._epoch = 0, self._epoch + 1
            return feeds

        return feed_dict_fn


def _arrays(values: Any) -> Any:
    """The values as an array, or a dict of arrays."""
    if isinstance(values, Mapping):
        return {name: _arrays(value) for name, value in values.items()}
    array = np.asarray(values)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _flat(*values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            found += value.values()
        elif value is not None:
            found.append(value)
    return found


def _placeholders(arrays: Any, name: str) -> Any:
    if isinstance(arrays, dict):
        return {key: _placeholders(array, str(key)) for key, array in arrays.items()}
    dtype = tf.string if arrays.dtype.kind in "OSU" else tf.as_dtype(arrays.dtype)
    return tf.placeholder(dtype, [None, *arrays.shape[1:]], name=name)


def _fed_with(placeholders: Any, arrays: Any, indices: Any) -> dict[Any, Any]:
    if isinstance(arrays, dict):
        return {placeholders[key]: array[indices] for key, array in arrays.items()}
    return {placeholders: arrays[indices]}
