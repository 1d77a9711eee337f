"""Reading the records of many files by several readers, which fill a queue together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf

__all__ = ["ParallelReader", "get_data_files", "parallel_read", "single_pass_read"]


class ParallelReader(tf.ReaderBase):  # type: ignore[misc, unused-ignore]
    """Several readers whose records go into one queue.

    Args:
        reader_class: makes a reader, from `reader_kwargs`.
        common_queue: the queue of (key, value), both strings.
        num_readers: how many readers.

    Raises TypeError unless `reader_class` makes readers.
    """

    def __init__(
        self,
        reader_class: Callable[..., Any],
        common_queue: Any,
        num_readers: int = 4,
        reader_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self._readers = [reader_class(**(reader_kwargs or {})) for _ in range(num_readers)]
        if not all(isinstance(reader, tf.ReaderBase) for reader in self._readers):
            raise TypeError("reader_class must make readers")
        self._common_queue = common_queue

    @property
    def num_readers(self) -> int:
        """How many readers there are."""
        return len(self._readers)

    @property
    def common_queue(self) -> Any:
        """The queue of records."""
        return self._common_queue

    def read(self, queue: Any, name: str | None = None) -> Any:
        """The next record, (key, value); a thread a reader enqueues those of the files that `queue` names."""
        self._configure([reader.read(queue) for reader in self._readers], many=False)
        return self._common_queue.dequeue(name=name)

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> Any:
        """As `read`, up to `num_records` records: (keys, values), [records] each."""
        self._configure([reader.read_up_to(queue, num_records) for reader in self._readers], many=True)
        return self._common_queue.dequeue_up_to(num_records, name=name)

    def _configure(self, records: Sequence[Any], many: bool) -> None:
        queue = self._common_queue
        enqueue = queue.enqueue_many if many else queue.enqueue
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue(record) for record in records]))

    def num_records_produced(self, name: str | None = None) -> Any:
        """How many records all readers have given, an int64 scalar."""
        return tf.add_n([reader.num_records_produced() for reader in self._readers], name=name)

    def num_work_units_completed(self, name: str | None = None) -> Any:
        """How many files all readers have read, an int64 scalar."""
        return tf.add_n([reader.num_work_units_completed() for reader in self._readers], name=name)


def parallel_read(
    data_sources: Any,
    reader_class: Callable[..., Any],
    num_epochs: int | None = None,
    num_readers: int = 4,
    reader_kwargs: Mapping[str, Any] | None = None,
    shuffle: bool = True,
    dtypes: Sequence[Any] | None = None,
    capacity: int = 256,
    min_after_dequeue: int = 128,
    seed: int | None = None,
    scope: str | None = None,
) -> Any:
    """The next record, (key, value), of files that several readers read at once.

    Args:
        data_sources: a path, a pattern, or a list of them.
        reader_class, num_readers, reader_kwargs: as of `ParallelReader`.
        num_epochs: how often each file is read; None: for ever.
        shuffle: whether files and records come in random order, with `seed`.
        dtypes: of key and value; strings if None.
        capacity, min_after_dequeue: the most records that wait, and how many remain to be mixed with.

    Raises ValueError if there are no such files.
    """
    data_files = get_data_files(data_sources)
    with tf.name_scope(scope, "parallel_read"):
        filenames = tf.train.string_input_producer(
            data_files, num_epochs=num_epochs, shuffle=shuffle, seed=seed, name="filenames"
        )
        queue = _common_queue(dtypes, shuffle, capacity, min_after_dequeue, seed)
        return ParallelReader(reader_class, queue, num_readers, reader_kwargs).read(filenames)


def _common_queue(
    dtypes: Sequence[Any] | None, shuffle: bool, capacity: int, min_after_dequeue: int, seed: int | None
) -> Any:
    """The queue of records, with a summary of how full it is."""
    dtypes = list(dtypes or [tf.string, tf.string])
    if shuffle:
        queue: Any = tf.RandomShuffleQueue(
            capacity, min_after_dequeue, dtypes, seed=seed, name="common_queue"
        )
    else:
        queue = tf.FIFOQueue(capacity, dtypes, name="common_queue")
    full = tf.cast(queue.size(), tf.float32) * (1.0 / capacity)
    tf.summary.scalar(f"fraction_of_{capacity}_full", full)
    return queue


def single_pass_read(
    data_sources: Any,
    reader_class: Callable[..., Any],
    reader_kwargs: Mapping[str, Any] | None = None,
    scope: str | None = None,
) -> Any:
    """The next record, (key, value), of files that one reader reads once, in their order.

    `data_sources`: a path, a pattern, or a list of them. Raises ValueError if there are no such files.
    """
    data_files = get_data_files(data_sources)
    with tf.name_scope(scope, "single_pass_read"):
        filenames = tf.train.string_input_producer(
            data_files, num_epochs=1, shuffle=False, capacity=1, name="filenames"
        )
        return reader_class(**(reader_kwargs or {})).read(filenames)


def get_data_files(data_sources: Any) -> list[str]:
    """The paths that a path, a pattern, or a list of them names. ValueError if there are none."""
    if isinstance(data_sources, (list, tuple)):
        files = [file for source in data_sources for file in _files(source)]
    else:
        files = _files(data_sources)
    if not files:
        raise ValueError(f"No data files found in {data_sources}")
    return files


def _files(source: Any) -> list[str]:
    """The files of a pattern; a path without wildcards is taken as it is."""
    if any(wildcard in str(source) for wildcard in "*?["):
        return list(tf.gfile.Glob(source))
    return [str(source)]
