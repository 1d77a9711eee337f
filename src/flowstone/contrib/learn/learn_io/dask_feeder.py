"""`DaskDataFeeder`: random samples of a frame of dask as inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.contrib.learn.learn_io.array_feeder import DataFeeder, batch_shape, in_shape, indicators

__all__ = ["DaskDataFeeder"]


class DaskDataFeeder(DataFeeder):
    """Feeds random samples of a frame of dask, about `batch_size` rows a step.

    Args:
        x: a DataFrame or Series of dask; y: one of labels, with the same index, or None.
        n_classes, random_state: see `DataFeeder`; random_state may be a seed.
        batch_size: how many rows a step takes on average; None: 32.
        shuffle, epochs: of no consequence, for samples have no order.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        n_classes: Any,
        batch_size: int | None,
        shuffle: bool = True,
        random_state: Any = None,
        epochs: int | None = None,
    ) -> None:
        del epochs
        self._x, self._y, self.n_classes = x, y, n_classes
        self._batch_size = 32 if batch_size is None else batch_size
        self._shuffle = shuffle
        self.random_state = (
            random_state
            if isinstance(random_state, np.random.RandomState)
            else np.random.RandomState(42 if random_state is None else random_state)
        )
        rows = len(x)
        self.sample_fraction = min(1.0, self._batch_size / rows)
        first = _frame_array(x.head(1))
        self.input_shape = batch_shape(first.shape[1:], self._batch_size, None, True)
        self._input_dtype = np.dtype(np.float32)
        self.output_shape, self._output_dtype = None, np.dtype(np.float32)
        if y is not None:
            label = _frame_labels(y.head(1))
            self.output_shape = batch_shape(label.shape[1:], self._batch_size, n_classes, False)

    def get_feed_params(self) -> dict[str, Any]:
        """The size of batches."""
        return {"batch_size": self._batch_size}

    def get_feed_dict_fn(
        self, input_placeholder: Any = None, output_placeholder: Any = None
    ) -> Callable[[], dict[Any, Any]]:
        """A function that returns the feeds of the next step; the placeholders are those of
        `input_builder` unless they are given."""
        if input_placeholder is not None:
            self.set_placeholders(input_placeholder, output_placeholder)

        def feed_dict_fn() -> dict[Any, Any]:
            rows = self._sampled_rows()
            examples = _frame_array(rows)
            feeds = {self._input_placeholder: in_shape(examples.astype(self._input_dtype), self.input_shape)}
            if self._output_placeholder is not None and self._y is not None:
                labels = _frame_labels(self._y.loc[list(rows.index)].compute())
                feeds[self._output_placeholder] = indicators(labels, self.n_classes, self._output_dtype)
            return feeds

        return feed_dict_fn

    def _sampled_rows(self) -> Any:
        """A sample of the rows, at least one."""
        while True:
            seed = int(self.random_state.randint(1 << 31))
            rows = self._x.sample(frac=self.sample_fraction, random_state=seed).compute()
            if len(rows):
                return rows


def _frame_array(frame: Any) -> Any:
    return np.asarray(frame)


def _frame_labels(frame: Any) -> Any:
    array = np.asarray(frame)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
