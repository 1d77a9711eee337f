"""Readers of one time series: arrays, lines of CSV files or records of `tf.Example`.

`read` gives chunks of consecutive records, over and over; `read_full` gives the series once, whole. Both give
a dictionary of tensors whose first dimension is time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.timeseries.feature_keys import TrainEvalFeatures

__all__ = [
    "CSVReader",
    "NumpyReader",
    "ReaderBaseTimeSeriesParser",
    "TFExampleReader",
    "TimeSeriesReader",
    "canonical_arrays",
]

TIMES, VALUES = TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES


def canonical_arrays(data: Mapping[str, Any], require_single_batch: bool) -> dict[str, np.ndarray]:
    """Arrays [batch, window, …] of `data`, whose times may lack the window and the batch dimension.

    Raises ValueError for features that do not fit the times, or if several series are given where
    `require_single_batch` asks for one.
    """
    arrays = {name: np.array(value) for name, value in data.items()}
    if TIMES not in arrays or VALUES not in arrays:
        raise ValueError(f"the features {TIMES!r} and {VALUES!r} are both needed, got {sorted(arrays)}")
    shape = arrays[TIMES].shape
    if len(shape) > 2:
        raise ValueError(f"the times have at most a batch and a window dimension, got the shape {shape}")
    for name, value in arrays.items():
        if value.shape[: len(shape)] != shape:
            raise ValueError(
                f"the shape {value.shape} of the feature {name!r} does not begin as {shape} of the times"
            )
    if len(shape) < 2:
        rank = arrays[VALUES].ndim
        if rank == len(shape):
            arrays[VALUES] = arrays[VALUES][..., np.newaxis]
        elif rank > len(shape) + 1:
            raise ValueError(
                f"{VALUES!r} has at most one dimension more than the times, of the shape {shape}: got"
                f" {arrays[VALUES].shape}"
            )
        missing = (np.newaxis,) * (2 - len(shape))
        arrays = {name: value[missing] for name, value in arrays.items()}
    if require_single_batch and arrays[TIMES].shape[0] != 1:
        raise ValueError(f"one series is needed, but the times {arrays[TIMES].shape} are of several")
    return arrays


class TimeSeriesReader:
    """What reads a time series."""

    def check_dataset_size(self, minimum_dataset_size: int) -> None:
        """Raises ValueError if the series is known to be shorter than that."""

    @abstractmethod
    def read(self) -> dict[str, Any]:
        """Tensors [records, …] of some consecutive records."""

    @abstractmethod
    def read_full(self) -> dict[str, Any]:
        """Tensors [series length, …] of the whole series."""


class NumpyReader(TimeSeriesReader):
    """Reads arrays.

    Args:
        data: the arrays by name, with "times" [length] and "values" [length] or [length, features].
        read_num_records_hint: the number of records read at once.
    """

    def __init__(self, data: Mapping[str, Any], read_num_records_hint: int = 4096) -> None:
        self._features = canonical_arrays(data, require_single_batch=True)
        self._read_num_records_hint = read_num_records_hint

    def check_dataset_size(self, minimum_dataset_size: int) -> None:
        """Raises ValueError if the series is shorter than that."""
        length = self._features[TIMES].shape[1]
        if length < minimum_dataset_size:
            raise ValueError(
                f"windows of {minimum_dataset_size} records are asked for, but the series has {length}:"
                " take a smaller window or more records"
            )

    def read(self) -> dict[str, Any]:
        """Tensors [records, …] of some consecutive records, over and over."""
        records = {name: value[0] for name, value in self._features.items()}
        read = tf.estimator.inputs.numpy_input_fn(
            records, batch_size=self._read_num_records_hint, num_epochs=None, shuffle=False
        )
        features: dict[str, Any] = read()
        return features

    def read_full(self) -> dict[str, Any]:
        """Tensors [series length, …]."""
        read = tf.estimator.inputs.numpy_input_fn(
            self._features, batch_size=1, num_epochs=None, queue_capacity=2, shuffle=False
        )
        return {name: tf.squeeze(value, axis=0) for name, value in read().items()}


class ReaderBaseTimeSeriesParser(TimeSeriesReader):
    """Reads records of files: a subclass says which reader makes records, and how they are parsed.

    Args:
        filenames: one or more paths.
        read_num_records_hint: the most records read at once.
    """

    def __init__(self, filenames: Any, read_num_records_hint: int = 4096) -> None:
        self._filenames = filenames
        self._read_num_records_hint = read_num_records_hint

    @abstractmethod
    def _get_reader(self) -> Any:
        """A `tf.ReaderBase`."""

    @abstractmethod
    def _process_records(self, lines: Any) -> dict[str, Any]:
        """The features of records [records]."""

    def _files(self, most_rounds: int) -> tuple[Any, Any]:
        """A queue of the paths, round after round, and the op that says that a record was found.

        Rounds without a record are counted: after `most_rounds` the queue ends, so that reading files without
        a record fails and does not go on for ever.
        """
        rounds = tf.Variable(
            tf.constant(0, tf.int64),
            name="epoch_limiter",
            trainable=False,
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
        )
        paths = tf.reshape(tf.convert_to_tensor(self._filenames), [-1])
        count = tf.cond(
            tf.is_variable_initialized(rounds),
            lambda: rounds.count_up_to(most_rounds),
            lambda: tf.constant(0, tf.int64),
        )
        with tf.control_dependencies([count]):
            paths = tf.identity(paths)
        queue = tf.train.string_input_producer(paths, shuffle=False, capacity=1)
        return queue, tf.assign(rounds, 0)

    def read(self) -> dict[str, Any]:
        """Tensors [records, …] of some consecutive records, over and over."""
        queue, found = self._files(self._read_num_records_hint)
        reader = self._get_reader()
        with tf.control_dependencies([found]):
            records = reader.read_up_to(queue, self._read_num_records_hint)[1]
        return self._process_records(records)

    def read_full(self) -> dict[str, Any]:
        """Tensors [series length, …]: records from the first one until its key comes again."""
        reader = self._get_reader()
        queue, found = self._files(2)
        with tf.control_dependencies([found]):
            first_key, first_record = reader.read_up_to(queue, 1)

        def is_new(key: Any, *_: Any) -> Any:
            return tf.not_equal(tf.squeeze(key, axis=0), tf.squeeze(first_key, axis=0))

        def take_next(_: Any, record: Any, index: Any, records: Any) -> Any:
            next_key, next_record = reader.read_up_to(queue, 1)
            next_key.set_shape([1])
            next_record.set_shape([1])
            return next_key, next_record, index + 1, records.write(index, record)

        none_yet = tf.TensorArray(tf.string, size=0, dynamic_size=True)
        found_records = tf.while_loop(is_new, take_next, [tf.constant([""]), first_record, 0, none_yet])[3]
        whole = found_records.concat()
        with tf.control_dependencies([whole]):
            reset = reader.reset()
        with tf.control_dependencies([reset]):
            return self._process_records(tf.identity(whole))


def _check_columns(names: Any) -> None:
    for name in (TIMES, VALUES):
        if name not in names:
            raise ValueError(f"the column {name!r} is needed, got {sorted(set(names))}")


class CSVReader(ReaderBaseTimeSeriesParser):
    """Reads lines of CSV files.

    Args:
        filenames: one or more paths.
        column_names: the columns, in order; one is "times", and columns "values" are stacked, as are
            others of one name.
        column_dtypes: the columns' types: the times are int64 and others float32 where None.
        skip_header_lines: of each file.
        read_num_records_hint: the most lines read at once.

    Raises ValueError if a column is missing, the times come twice or the types are not as many as the names.
    """

    def __init__(
        self,
        filenames: Any,
        column_names: Sequence[str] = (TIMES, VALUES),
        column_dtypes: Sequence[Any] | None = None,
        skip_header_lines: int | None = None,
        read_num_records_hint: int = 4096,
    ) -> None:
        _check_columns(column_names)
        if column_dtypes is not None and len(column_dtypes) != len(column_names):
            raise ValueError(
                f"{len(column_dtypes)} types are given for the {len(column_names)} columns {column_names}"
            )
        if list(column_names).count(TIMES) != 1:
            raise ValueError(f"the column {TIMES!r} comes more than once in {column_names}")
        self._column_names = column_names
        self._column_dtypes = column_dtypes
        self._skip_header_lines = skip_header_lines
        super().__init__(filenames, read_num_records_hint)

    def _get_reader(self) -> Any:
        return tf.TextLineReader(skip_header_lines=self._skip_header_lines)

    def _process_records(self, lines: Any) -> dict[str, Any]:
        dtypes = self._column_dtypes
        if dtypes is None:
            defaults = [(tf.zeros([], tf.int64),) if name == TIMES else () for name in self._column_names]
        else:
            defaults = [(tf.zeros([], dtype),) for dtype in dtypes]
        columns: dict[str, list[Any]] = {}
        for name, column in zip(self._column_names, tf.decode_csv(lines, defaults), strict=True):
            columns.setdefault(name, []).append(column)
        return {
            name: found[0] if name == TIMES else tf.stack(found, axis=1) for name, found in columns.items()
        }


class TFExampleReader(ReaderBaseTimeSeriesParser):
    """Reads records of serialized `tf.Example`.

    Args:
        filenames: one or more paths of TFRecord files.
        features: how they are parsed, as of `tf.parse_example`.

    Raises ValueError if the times or the values are missing.
    """

    def __init__(self, filenames: Any, features: Mapping[str, Any]) -> None:
        _check_columns(features)
        self._features = features
        super().__init__(filenames)

    def _get_reader(self) -> Any:
        return tf.TFRecordReader()

    def _process_records(self, lines: Any) -> dict[str, Any]:
        features: dict[str, Any] = tf.parse_example(serialized=lines, features=self._features)
        return features
