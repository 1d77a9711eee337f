"""Batches of the examples in files, read by queues: as strings, parsed by a function, or as features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.input_pipeline import input_pipeline_ops
from flowstone.training.input.queue_runner import QueueRunner, add_queue_runner

__all__ = [
    "KEY_FEATURE_NAME",
    "input_pipeline_ops",
    "queue_parsed_features",
    "read_batch_examples",
    "read_batch_features",
    "read_batch_record_features",
    "read_keyed_batch_examples",
    "read_keyed_batch_examples_shared_queue",
    "read_keyed_batch_features",
    "read_keyed_batch_features_shared_queue",
]

# The name under which keys travel beside features.
KEY_FEATURE_NAME = "__key__"

_SHARED_QUEUE = "file_name_queue"


def read_batch_examples(
    file_pattern: Any,
    batch_size: int,
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """Batches [batch] of the strings that a reader finds in files, or of what `parse_fn` makes of them.

    Args:
        file_pattern: the files' pattern, or a list of files.
        batch_size: the examples of a batch; where epochs are counted, the last may have fewer.
        reader: a function that makes a reader, such as `tf.TFRecordReader`.
        randomize_input: whether files and examples come in random order.
        num_epochs: how often each file is read, counted by a local variable; None: without end.
        queue_capacity: the examples that wait in the queue.
        num_threads: how many readers read at once.
        read_batch_size: the examples that a reader reads at once.
        parse_fn: a function from strings to a tensor or a dict of tensors.
        name: of the operations; seed: of the orders.

    Raises ValueError for numbers below 1, a queue that holds no batch, and without files.
    """
    _, examples = read_keyed_batch_examples(
        file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity, num_threads,
        read_batch_size, parse_fn, name, seed,
    )  # fmt: skip
    return examples


def read_keyed_batch_examples(
    file_pattern: Any,
    batch_size: int,
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """Keys [batch] and examples, as `read_batch_examples` has them; a key says file and place."""
    return _read_keyed(
        file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity, num_threads,
        read_batch_size, parse_fn, name, seed, is_shared=False,
    )  # fmt: skip


def read_keyed_batch_examples_shared_queue(
    file_pattern: Any,
    batch_size: int,
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """`read_keyed_batch_examples` of files that all workers of a cluster go through together: their queue is
    on a parameter server, and epochs are counted by global variables."""
    return _read_keyed(
        file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity, num_threads,
        read_batch_size, parse_fn, name, seed, is_shared=True,
    )  # fmt: skip


def _read_keyed(
    file_pattern: Any, batch_size: int, reader: Callable[[], Any], randomize_input: bool,
    num_epochs: int | None, queue_capacity: int, num_threads: int, read_batch_size: int, parse_fn: Any,
    name: str | None, seed: int | None, is_shared: bool,
) -> Any:  # fmt: skip
    files = _file_names(file_pattern)
    _check_numbers(batch_size, queue_capacity, num_threads, read_batch_size, num_epochs)
    with tf.name_scope(name, "read_batch_examples", [file_pattern]) as scope:
        with tf.name_scope("file_name_queue") as queue_scope:
            file_queue = (
                _shared_file_queue(files, randomize_input, num_epochs, seed)
                if is_shared
                else tf.train.string_input_producer(
                    tf.constant(files, name="input"), num_epochs, randomize_input, seed, name=queue_scope
                )
            )
        with tf.name_scope("read"):
            read = [_read(reader(), file_queue, read_batch_size, parse_fn) for _ in range(num_threads)]
        options = {
            "batch_size": batch_size,
            "capacity": queue_capacity,
            "enqueue_many": read_batch_size > 1,
            "allow_smaller_final_batch": num_epochs is not None,
            "name": scope,
        }
        if not randomize_input:
            found = tf.train.batch_join(read, **options)
        else:
            behind = max(queue_capacity - 3 * batch_size, batch_size)
            found = tf.train.shuffle_batch_join(read, min_after_dequeue=behind, seed=seed, **options)
        if parse_fn is None or isinstance(found, (list, tuple)):
            return found
        keys = found.pop(KEY_FEATURE_NAME)
        return keys, found


def _read(reader: Any, file_queue: Any, count: int, parse_fn: Callable[[Any], Any] | None) -> Any:
    """The next keys and examples of a reader; one dict of both, if examples are parsed into a dict."""
    keys, examples = reader.read_up_to(file_queue, count) if count > 1 else reader.read(file_queue)
    if parse_fn is None:
        return keys, examples
    parsed = parse_fn(examples)
    return {**parsed, KEY_FEATURE_NAME: keys} if isinstance(parsed, Mapping) else (keys, parsed)


def _shared_file_queue(files: list[str], shuffle: bool, num_epochs: int | None, seed: int | None) -> Any:
    """A queue of one name at a time, which workers share."""
    queue = tf.FIFOQueue(capacity=1, dtypes=[tf.string], shapes=[[]], shared_name=_SHARED_QUEUE)
    following = input_pipeline_ops.seek_next(files, shuffle=shuffle, seed=seed, num_epochs=num_epochs)
    add_queue_runner(QueueRunner(queue, [queue.enqueue(following)]))
    return queue


def _file_names(file_pattern: Any) -> list[str]:
    """The files of a pattern, in order; ValueError if there are none."""
    if isinstance(file_pattern, (list, tuple)):
        if not file_pattern:
            raise ValueError("No files given to dequeue_examples.")
        return list(file_pattern)
    found = sorted(tf.gfile.Glob(file_pattern)) if file_pattern else []
    if not found:
        raise ValueError(f"No files match {file_pattern}.")
    return found


def _check_numbers(
    batch_size: int, capacity: int, num_threads: int, read_batch_size: int, num_epochs: int | None
) -> None:
    if not batch_size or batch_size <= 0 or not capacity or batch_size > capacity:
        raise ValueError(f"Invalid batch_size {batch_size}, with queue_capacity {capacity}.")
    if not read_batch_size or read_batch_size <= 0:
        raise ValueError(f"Invalid read_batch_size {read_batch_size}.")
    if not num_threads or num_threads <= 0:
        raise ValueError(f"Invalid num_threads {num_threads}.")
    if num_epochs is not None and num_epochs <= 0:
        raise ValueError(f"Invalid num_epochs {num_epochs}.")


# ---- features


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    feature_queue_capacity: int = 100,
    reader_num_threads: int = 1,
    num_enqueue_threads: int = 2,
    parse_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
    read_batch_size: int | None = None,
) -> dict[str, Any]:
    """Batches of the features of tf.train.Examples in files, a dict of tensors by name.

    Args:
        features: what to parse, FixedLenFeature and VarLenFeature by name.
        feature_queue_capacity: the parsed batches that wait; num_enqueue_threads: the threads that parse.
        reader_num_threads: how many readers read at once; read_batch_size: what each reads at once, by
            default a batch.
        parse_fn: from the reader's strings to serialized examples.

    Other arguments and errors: see `read_batch_examples`.
    """
    _, found = read_keyed_batch_features(
        file_pattern, batch_size, features, reader, randomize_input, num_epochs, queue_capacity,
        reader_num_threads, feature_queue_capacity, num_enqueue_threads, parse_fn, name, read_batch_size,
    )  # fmt: skip
    return found


def read_keyed_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    feature_queue_capacity: int = 100,
    num_enqueue_threads: int = 2,
    parse_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
    read_batch_size: int | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Keys [batch] and features; see `read_batch_features`."""
    with tf.name_scope(name, "read_batch_features", [file_pattern]) as scope:
        keys, examples = read_keyed_batch_examples(
            file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity, reader_num_threads,
            batch_size if read_batch_size is None else read_batch_size, parse_fn, scope,
        )  # fmt: skip
        return _parsed(keys, examples, features, feature_queue_capacity, num_enqueue_threads, scope)


def read_keyed_batch_features_shared_queue(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    feature_queue_capacity: int = 100,
    num_queue_runners: int = 2,
    parse_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
) -> tuple[Any, dict[str, Any]]:
    """`read_keyed_batch_features` of files that all workers of a cluster go through together."""
    with tf.name_scope(name, "read_batch_features", [file_pattern]) as scope:
        keys, examples = read_keyed_batch_examples_shared_queue(
            file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity, reader_num_threads,
            batch_size, parse_fn, scope,
        )  # fmt: skip
        return _parsed(keys, examples, features, feature_queue_capacity, num_queue_runners, scope)


def _parsed(
    keys: Any, examples: Any, features: Mapping[str, Any], capacity: int, num_threads: int, name: str
) -> tuple[Any, dict[str, Any]]:
    """Keys and features of serialized examples, from a queue."""
    parsed = tf.parse_example(examples, dict(features))
    return queue_parsed_features(parsed, keys, capacity, num_threads, name)


def queue_parsed_features(
    parsed_features: Mapping[str, Any],
    keys: Any = None,
    feature_queue_capacity: int = 100,
    num_enqueue_threads: int = 2,
    name: str | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Keys and features from a queue of parsed batches.

    Args:
        parsed_features: tensors and sparse tensors by name; keys: a tensor, or None.
        feature_queue_capacity: the batches that wait; num_enqueue_threads: the threads that fill it.

    Returns the keys, or None, and a dict of the same names.
    """
    args = [*parsed_features.values(), *([] if keys is None else [keys])]
    with tf.name_scope(name, "queue_parsed_features", args):
        names = sorted(parsed_features)
        values: dict[str, Any] = {each: parsed_features[each] for each in names}
        if keys is not None:
            values[KEY_FEATURE_NAME] = keys
        parts = [part for value in values.values() for part in _parts(value)]
        queue = tf.FIFOQueue(feature_queue_capacity, [part.dtype.base_dtype for part in parts])
        tf.summary.scalar(
            f"queue/parsed_features/{queue.name}/fraction_of_{feature_queue_capacity}_full",
            tf.cast(queue.size(), tf.float32) * (1.0 / feature_queue_capacity),
        )
        enqueue_ops = [queue.enqueue(parts) for _ in range(num_enqueue_threads)]
        add_queue_runner(
            QueueRunner(
                queue, enqueue_ops,
                queue_closed_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError),
            )
        )  # fmt: skip
        dequeued = queue.dequeue()
        found = _rebuilt(values, parts, dequeued if isinstance(dequeued, list) else [dequeued])
    return found.pop(KEY_FEATURE_NAME, None), found


def _parts(value: Any) -> Sequence[Any]:
    """The tensors that a feature travels as."""
    if isinstance(value, tf.SparseTensor):
        return value.indices, value.values, value.dense_shape
    return (value,)


def _rebuilt(values: Mapping[str, Any], parts: list[Any], dequeued: list[Any]) -> dict[str, Any]:
    """The features, of the static shapes that they had, of dequeued tensors."""
    for old, new in zip(parts, dequeued, strict=True):
        new.set_shape(old.shape)
    remaining = iter(dequeued)
    return {
        name: tf.SparseTensor(next(remaining), next(remaining), next(remaining))
        if isinstance(value, tf.SparseTensor)
        else next(remaining)
        for name, value in values.items()
    }


def read_batch_record_features(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    name: str = "dequeue_record_examples",
) -> dict[str, Any]:
    """`read_batch_features` of TFRecord files."""
    return read_batch_features(
        file_pattern, batch_size, features, tf.TFRecordReader, randomize_input, num_epochs, queue_capacity,
        reader_num_threads=reader_num_threads, name=name,
    )  # fmt: skip
