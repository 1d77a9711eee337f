"""`StreamingDataFeeder`: the examples that iterators yield as inputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from flowstone.contrib.learn.learn_io.array_feeder import (
    DataFeeder,
    batch_shape,
    each,
    in_shape,
    indicators,
    named,
)

__all__ = ["StreamingDataFeeder"]


def _labels_dtype(values: Any, n_classes: Any) -> Any:
    """The type of labels: their own, int64 for classes of a single y, float32 for those of a dict."""
    if n_classes is None:
        return values.dtype
    return np.dtype(np.float32)


class StreamingDataFeeder(DataFeeder):
    """Feeds the examples that iterators yield, in their order, until the first of them ends.

    Args:
        x: an iterator of arrays, each an example, or of dicts of arrays.
        y: one of labels, or None.
        n_classes: see `DataFeeder`; labels by class are fed as float32.
        batch_size: how many examples a step takes; None: one.

    Raises ValueError if there are no examples.
    """

    def __init__(self, x: Any, y: Any, n_classes: Any, batch_size: int | None) -> None:
        first, self._x = _peeked(x)
        self._y = None
        self.n_classes = n_classes
        self._batch_size = 1 if batch_size is None else batch_size
        self._shuffle, self._stopped = False, False
        self.input_shape = each(lambda value: batch_shape(value.shape, batch_size, None, True), first)
        self._input_dtype = each(lambda value: value.dtype, first)
        self.output_shape = self._output_dtype = None
        if y is not None:
            label, self._y = _peeked(y)
            label = each(lambda value: value[0] if value.shape == (1,) else value, label)
            self.output_shape = each(
                lambda value, classes: batch_shape(value.shape, batch_size, classes, False), label, n_classes
            )
            self._output_dtype = each(_labels_dtype, label, n_classes)

    def get_feed_params(self) -> dict[str, Any]:
        """The size of batches."""
        return {"batch_size": self._batch_size}

    def get_feed_dict_fn(self) -> Callable[[], dict[Any, Any]]:
        """A function that returns the feeds of the next step; StopIteration when the examples end."""

        def feed_dict_fn() -> dict[Any, Any]:
            examples = list(itertools.islice(self._x, self._batch_size))
            if not examples:
                raise StopIteration
            labels = None if self._y is None else list(itertools.islice(self._y, len(examples)))
            if labels is not None:
                examples = examples[: len(labels)]
                if not labels:
                    raise StopIteration
            feeds = named(self._input_placeholder, each(in_shape, _stacked(examples), self.input_shape))
            if labels is not None and self._output_placeholder is not None:
                feeds.update(named(self._output_placeholder, self._encoded(_stacked(labels))))
            return feeds

        return feed_dict_fn

    def _encoded(self, labels: Any) -> Any:
        """Labels [batch, ...] as they are fed."""

        def encode(values: Any, n_classes: Any, dtype: Any, shape: list[Any]) -> Any:
            is_classes = n_classes is not None and n_classes > 1
            each = shape[1:-1] if is_classes else shape[1:]
            return indicators(values.reshape([len(values), *each]), n_classes, dtype)

        return each(encode, labels, self.n_classes, self._output_dtype, self.output_shape)


def _peeked(values: Iterator[Any]) -> tuple[Any, Iterator[Any]]:
    """The first value, as arrays, and an iterator of all; ValueError if there is none."""
    try:
        first = next(values)
    except StopIteration:
        raise ValueError("the iterator of examples or labels yields nothing") from None
    return each(np.asarray, first), itertools.chain([first], values)


def _stacked(values: list[Any]) -> Any:
    """One array of all values, or a dict of arrays."""
    if isinstance(values[0], Mapping):
        return {name: np.stack([np.asarray(value[name]) for value in values]) for name in values[0]}
    return np.stack([np.asarray(value) for value in values])
