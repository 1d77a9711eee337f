"""Data sets in CSV files, and fetching files.

A file with a header has, in its first line, the numbers of examples and of features:

    150,4,setosa,versicolor,virginica
    6.4,2.8,5.6,2.2,2
"""

from __future__ import annotations

import csv
import random
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import wraps
from os import path
from typing import Any, NamedTuple

import numpy as np

import flowstone as tf

__all__ = [
    "Dataset",
    "Datasets",
    "load_boston",
    "load_csv_with_header",
    "load_csv_without_header",
    "load_iris",
    "maybe_download",
    "retry",
    "shrink_csv",
    "urlretrieve_with_retry",
]


class Dataset(NamedTuple):
    """Examples [n, features] and their targets [n]."""

    data: Any
    target: Any


class Datasets(NamedTuple):
    """Data sets for training, validation and test, any of which may be None."""

    train: Any
    validation: Any
    test: Any


def _rows(filename: Any) -> Iterator[list[str]]:
    with tf.gfile.GFile(filename) as file:
        yield from (row for row in csv.reader(file) if row)


def _parted(rows: Any, target_dtype: Any, features_dtype: Any, target_column: int) -> tuple[Any, Any]:
    """The features of the rows, and the column of targets, which is left out of them."""
    data, target = [], []
    for row in rows:
        target.append(row.pop(target_column))
        data.append(np.asarray(row, dtype=features_dtype))
    return np.array(data), np.array(target, dtype=target_dtype)


def load_csv_with_header(
    filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """The data of a CSV file whose first line begins with the numbers of examples and of features.

    Args:
        target_dtype, features_dtype: NumPy's types of targets and features.
        target_column: the column of the targets.

    Raises ValueError for rows of another number than the header says.
    """
    rows = _rows(filename)
    count, features = (int(value) for value in next(rows)[:2])
    data, target = _parted(rows, target_dtype, features_dtype, target_column)
    if data.shape != (count, features):
        raise ValueError(
            f"{filename} has data of shape {data.shape}, but its header says {count} examples of {features} "
            "features"
        )
    return Dataset(data=data, target=target)


def load_csv_without_header(
    filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """The data of a CSV file without a header; see `load_csv_with_header`."""
    data, target = _parted(_rows(filename), target_dtype, features_dtype, target_column)
    return Dataset(data=data, target=target)


def shrink_csv(filename: Any, ratio: int) -> None:
    """Writes each `ratio`-th line of ``NAME.csv`` to ``NAME_small.csv``."""
    with tf.gfile.GFile(filename) as whole:
        lines = whole.read().splitlines(keepends=True)
    with tf.gfile.GFile(str(filename).replace(".", "_small."), "w") as small:
        small.write("".join(lines[::ratio]))


def _path_of(name: str, given: Any) -> Any:
    if given is None:
        raise ValueError(
            f"the data of {name} do not come with flowstone: load_{name}(data_path=…) reads them from a CSV "
            "file, whose first line has the numbers of examples and of features"
        )
    return given


def load_iris(data_path: Any = None) -> Dataset:
    """The 150 irises of Fisher (1936): four measures each, and the species, 0 to 2.

    `data_path`: a CSV file with a header, the species last; ValueError without one.
    """
    return load_csv_with_header(_path_of("iris", data_path), target_dtype=int, features_dtype=float)


def load_boston(data_path: Any = None) -> Dataset:
    """The prices of houses in 506 districts of Boston, with thirteen features each.

    `data_path`: a CSV file with a header and a line of names, the price last; ValueError without one.
    """
    rows = _rows(_path_of("boston", data_path))
    count, features = (int(value) for value in next(rows)[:2])
    kept = (row for row in rows if _is_number(row[0]))
    data, target = _parted(kept, float, float, -1)
    if data.shape != (count, features):
        raise ValueError(
            f"{data_path} has data of shape {data.shape}, but its header says {count}, {features}"
        )
    return Dataset(data=data, target=target)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ---- fetching


def retry(
    initial_delay: float,
    max_delay: float,
    factor: float = 2.0,
    jitter: float = 0.25,
    is_retriable: Callable[[Exception], bool] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that calls a function again when it raises.

    Args:
        initial_delay: seconds to wait before the second call; they grow by `factor`, and the function is
            given up when they exceed `max_delay`.
        jitter: the share of the delay by which it varies at random.
        is_retriable: from an exception to whether the function is called again; None: always.

    Raises ValueError for a factor below 1 and a jitter of 1 or more.
    """
    if factor < 1:
        raise ValueError(f"factor must be >= 1; was {factor}")
    if jitter >= 1:
        raise ValueError(f"jitter must be < 1; was {jitter}")

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            delay = initial_delay
            while delay <= max_delay:
                try:
                    return function(*args, **kwargs)
                except Exception as error:
                    if is_retriable is not None and not is_retriable(error):
                        raise
                    time.sleep(delay * (1 + random.uniform(-jitter, jitter)))
                    delay *= factor
            return function(*args, **kwargs)

        return call

    return wrapped


_RETRIABLE_ERRNOS = {110}  # connection timed out


def _is_retriable(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in _RETRIABLE_ERRNOS


@retry(initial_delay=1.0, max_delay=16.0, is_retriable=_is_retriable)
def urlretrieve_with_retry(url: str, filename: str | None = None) -> Any:
    """`urllib.request.urlretrieve`, called again when the connection times out."""
    return urllib.request.urlretrieve(url, filename)


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """The path of a file in a folder; it is fetched from `source_url` if it is not there yet."""
    tf.gfile.MakeDirs(work_directory)
    found = path.join(work_directory, filename)
    if not tf.gfile.Exists(found):
        fetched, _ = urlretrieve_with_retry(source_url)
        tf.gfile.Copy(fetched, found)
        tf.logging.info("Successfully downloaded %s %d bytes.", filename, tf.gfile.Stat(found).length)
    return found
