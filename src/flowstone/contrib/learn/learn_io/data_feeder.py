"""Feeders: placeholders named `input` and `output`, and the feeds of one step after another.

A feeder takes arrays (`DataFeeder`), iterators of examples (`StreamingDataFeeder`) or frames of dask
(`DaskDataFeeder`). Examples of one number each become rows of one column; labels may be turned into rows of
0 and 1, one column for each class.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from flowstone.contrib.learn.learn_io.array_feeder import DataFeeder, check_array, each
from flowstone.contrib.learn.learn_io.dask_feeder import DaskDataFeeder
from flowstone.contrib.learn.learn_io.dask_io import HAS_DASK, extract_dask_data, extract_dask_labels
from flowstone.contrib.learn.learn_io.frames import is_frame, is_series
from flowstone.contrib.learn.learn_io.pandas_io import (
    HAS_PANDAS,
    extract_pandas_data,
    extract_pandas_labels,
    extract_pandas_matrix,
)
from flowstone.contrib.learn.learn_io.stream_feeder import StreamingDataFeeder

__all__ = [
    "HAS_DASK",
    "HAS_PANDAS",
    "DaskDataFeeder",
    "DataFeeder",
    "StreamingDataFeeder",
    "check_array",
    "extract_dask_data",
    "extract_dask_labels",
    "extract_pandas_data",
    "extract_pandas_labels",
    "extract_pandas_matrix",
    "setup_predict_data_feeder",
    "setup_processor_data_feeder",
    "setup_train_data_feeder",
]


def _is_iterator(value: Any) -> bool:
    return isinstance(value, Iterator)


def setup_train_data_feeder(
    x: Any,
    y: Any,
    n_classes: Any,
    batch_size: int | None = None,
    shuffle: bool = True,
    epochs: int | None = None,
) -> DataFeeder:
    """The feeder for these examples and labels.

    Args:
        x, y: arrays or dicts of them, iterators of both, or frames; y may be None.
        n_classes, batch_size, shuffle, epochs: see `DataFeeder`.

    Raises ValueError for an iterator beside what is none.
    """
    if is_frame(x, "dask") or is_series(x, "dask"):
        if y is not None:
            y = extract_dask_labels(y)
        return DaskDataFeeder(extract_dask_data(x), y, n_classes, batch_size, shuffle, epochs=epochs)
    x, y = each(extract_pandas_data, x), None if y is None else each(extract_pandas_labels, y)
    if _is_iterator(x):
        if y is not None and not _is_iterator(y):
            raise ValueError("Both x and y should be iterators for streaming learning to work.")
        return StreamingDataFeeder(x, y, n_classes, batch_size)
    return DataFeeder(x, y, n_classes, batch_size, shuffle, epochs=epochs)


def setup_predict_data_feeder(x: Any, batch_size: int | None = None) -> Iterable[Any]:
    """Batches of the rows of an array or of an iterator's examples; the last may have fewer."""
    if _is_iterator(x):
        return _batches(x, batch_size)
    array = np.asarray(extract_pandas_data(x))
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    size = len(array) if batch_size is None else batch_size
    return [array[start : start + size] for start in range(0, len(array), size)]


def _batches(examples: Iterator[Any], batch_size: int | None) -> Iterator[Any]:
    while chunk := list(itertools.islice(examples, batch_size)):
        yield np.asarray(chunk)


def setup_processor_data_feeder(x: Any) -> Any:
    """The examples for a processor: a frame as an array, anything else as it is."""
    return extract_pandas_matrix(x)
