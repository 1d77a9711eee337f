"""Data frames of dask as inputs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from flowstone.contrib.learn.learn_io.frames import is_frame, is_series

__all__ = ["HAS_DASK", "extract_dask_data", "extract_dask_labels"]

HAS_DASK = find_spec("dask") is not None


def _renumbered(rows: Any, first: int) -> Any:
    """The rows of a partition, numbered from `first`."""
    found = rows.copy()
    found.index = range(first, first + len(rows))
    return found


def _with_divisions(frame: Any) -> Any:
    """The frame with rows numbered from 0 through all partitions, so that partitions have known bounds."""
    from dask import delayed
    from dask.dataframe import from_delayed

    sizes = [int(size) for size in frame.map_partitions(len).compute()]
    starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    parts = [
        delayed(_renumbered)(part, first) for part, first in zip(frame.to_delayed(), starts[:-1], strict=True)
    ]
    return from_delayed(parts, meta=_renumbered(frame._meta, 0), divisions=(*starts[:-1], starts[-1] - 1))


def extract_dask_data(data: Any) -> Any:
    """A DataFrame or Series of dask with rows numbered from 0; anything else as it is."""
    return _with_divisions(data) if is_frame(data, "dask") or is_series(data, "dask") else data


def extract_dask_labels(labels: Any) -> Any:
    """A DataFrame of one column, or a Series, of dask with rows numbered from 0; anything else as it is.

    Raises ValueError for several columns.
    """
    if is_frame(labels, "dask") and len(labels.columns) > 1:
        raise ValueError("Only one column for labels is allowed.")
    return extract_dask_data(labels)
