"""Data frames of pandas as inputs: as arrays, and as an input function."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from flowstone.contrib.learn.learn_io.frames import is_frame
from flowstone.estimator.inputs.pandas_io import pandas_input_fn as core_pandas_input_fn

__all__ = [
    "HAS_PANDAS",
    "extract_pandas_data",
    "extract_pandas_labels",
    "extract_pandas_matrix",
    "pandas_input_fn",
]

HAS_PANDAS = find_spec("pandas") is not None


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """`tf.estimator.inputs.pandas_input_fn`, which shuffles unless it is told not to."""
    return core_pandas_input_fn(
        x, y, batch_size, num_epochs, shuffle, queue_capacity, num_threads, target_column
    )


def extract_pandas_data(data: Any) -> Any:
    """A frame as a float64 array [rows, columns]; anything else as it is.

    Raises ValueError for a column that is neither numbers nor booleans.
    """
    if not is_frame(data, "pandas"):
        return data
    bad = _others_than_numbers(data)
    if bad:
        found = ", ".join(f"'{column}' type='{dtype}'" for column, dtype in bad)
        raise ValueError(f"Data types for extracting pandas data must be int, float, or bool. Found: {found}")
    return data.to_numpy().astype(np.float64)


def extract_pandas_matrix(data: Any) -> Any:
    """A frame as an array [rows, columns]; anything else as it is."""
    return data.to_numpy() if is_frame(data, "pandas") else data


def extract_pandas_labels(labels: Any) -> Any:
    """A frame of one column as an array [rows, 1]; anything else as it is.

    Raises ValueError for several columns, and for one that is neither numbers nor booleans.
    """
    if not is_frame(labels, "pandas"):
        return labels
    if len(labels.columns) > 1:
        raise ValueError("Only one column for labels is allowed.")
    bad = _others_than_numbers(labels)
    if bad:
        found = ", ".join(f"'{column}' type={dtype}" for column, dtype in bad)
        raise ValueError(f"Data types for extracting labels must be int, float, or bool. Found: {found}")
    return labels.to_numpy()


def _others_than_numbers(frame: Any) -> list[tuple[Any, Any]]:
    """The columns, with their types, that are neither numbers nor booleans."""
    return [(name, dtype) for name, dtype in frame.dtypes.items() if np.dtype(dtype.type).kind not in "iufb"]
