"""`pandas_input_fn`: batches of rows of a data frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.estimator.inputs.feeding_queue import check_shuffle, dequeue_rows

__all__ = ["pandas_input_fn"]


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """An input function that gives batches of the rows of a DataFrame, a feature for each column.

    Args:
        x: a DataFrame; `y`: labels, a Series or a DataFrame with the same index, or None.
        target_column: a name for the labels of a Series that no column has.

    Other arguments: see `numpy_input_fn`. Raises ValueError for a column of that name and for other indices.
    """
    check_shuffle(shuffle)
    if not isinstance(target_column, str):
        raise TypeError("target_column must be a string type")
    frame = x.copy()
    _check_labels(frame, y, target_column)
    targets = None if y is None else y.copy()

    def input_fn() -> Any:
        names = list(frame.columns)
        columns = [frame[name].to_numpy() for name in names]
        target_names = None
        if targets is not None and hasattr(targets, "columns"):
            target_names = list(targets.columns)
            columns += [targets[name].to_numpy() for name in target_names]
        elif targets is not None:
            columns.append(targets.to_numpy())
        batch = dequeue_rows(columns, queue_capacity, shuffle, num_threads, batch_size, num_epochs)
        features = dict(zip(names, batch, strict=False))
        if targets is None:
            return features
        if target_names is None:
            return features, batch[-1]
        return features, dict(zip(target_names, batch[len(names) :], strict=True))

    return input_fn


def _check_labels(frame: Any, y: Any, target_column: str) -> None:
    """ValueError for labels of a name that is taken, or of another index."""
    if y is None:
        return
    if target_column in frame:
        raise ValueError(
            f"Cannot use name {target_column} for target column: DataFrame already has a column with "
            "that "
            f"name: {frame.columns}"
        )
    if not np.array_equal(frame.index, y.index):
        raise ValueError(
            f"Index for x and y are mismatched.\nIndex for x: {frame.index}\nIndex for y: {y.index}\n"
        )
