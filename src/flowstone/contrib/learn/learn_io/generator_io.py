"""The dicts that a generator yields as an input function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import FunctionType, GeneratorType
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.estimator.inputs.feeding_queue import enqueue_rows, fill_from

__all__ = ["enqueue_data", "generator_input_fn"]


def generator_input_fn(
    x: Any,
    target_key: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    pad_value: Any = None,
) -> Callable[[], Any]:
    """An input function that gives batches of the dicts of arrays that a generator yields.

    Args:
        x: a generator function without arguments; it is called anew for each epoch.
        target_key: the name of the labels in the dicts, or several for a dict of labels; None: no labels.
        batch_size: the examples of a batch; num_epochs: how often the generator is gone through, or None.
        shuffle: whether examples come in random order.
        queue_capacity: the examples that wait in the queue; num_threads: the threads that fill it.
        pad_value: the number that shorter arrays are padded with. None: all examples have the same shapes.
            What is enqueued at once is padded so; beyond that, zeros are.

    As in TensorFlow, as many examples are enqueued at once as have `batch_size` arrays together; where the
    last epoch ends among them, the first examples fill them up.

    The input function raises TypeError if `x` or what it returns is no generator, KeyError for a target that
    the first dict lacks, NotImplementedError for shuffling with padding.
    """
    if not isinstance(x, FunctionType):
        raise TypeError(f"x must be generator function; got {type(x).__name__}")
    if target_key is not None and not isinstance(target_key, (str, Collection)):
        raise TypeError(f"target_key must be str or Container of str; got {type(target_key).__name__}")

    def input_fn() -> Any:
        names, first = _first_row(x, target_key)
        queue = _generator_queue(
            x,
            names,
            first,
            queue_capacity,
            shuffle,
            num_threads,
            None,
            -(-batch_size // len(names)),
            num_epochs,
            pad_value,
        )
        dequeue = queue.dequeue_many if num_epochs is None else queue.dequeue_up_to
        tensors = dequeue(batch_size)
        batch = dict(zip(names, tensors if isinstance(tensors, list) else [tensors], strict=True))
        if target_key is None:
            return batch
        targets = [target_key] if isinstance(target_key, str) else list(target_key)
        if len(targets) == 1:
            return _without(batch, targets), batch[targets[0]]
        return _without(batch, targets), {name: batch[name] for name in sorted(targets)}

    return input_fn


def _without(batch: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: value for name, value in batch.items() if name not in names}


def _first_row(x: Callable[[], Any], target_key: Any) -> tuple[list[str], list[Any]]:
    """The names of the dicts, sorted, and the arrays of the first of them."""
    generator = x()
    if not isinstance(generator, GeneratorType):
        raise TypeError(f"x() must be generator; got {type(generator).__name__}")
    row = next(generator)
    if not isinstance(row, Mapping):
        raise TypeError(f"x() must yield dict; got {type(row).__name__}")
    names = sorted(row)
    wanted = [target_key] if isinstance(target_key, str) else list(target_key or ())
    for name in wanted:
        if name not in row:
            raise KeyError(f"target_key not in yielded dict. Expected {names} keys; got {name}")
    return names, [np.asarray(row[name]) for name in names]


def _generator_queue(
    x: Callable[[], Any],
    names: list[str],
    first: list[Any],
    capacity: int,
    shuffle: bool,
    num_threads: int,
    seed: int | None,
    size: int,
    num_epochs: int | None,
    pad_value: Any,
    name: str = "enqueue_input",
) -> Any:
    """A queue of the arrays of these names, and the threads that fill it."""
    if shuffle and pad_value is not None:
        raise NotImplementedError("padding and shuffling data at the same time is not implemented")
    dtypes = [tf.string if array.dtype.kind in "OSU" else tf.as_dtype(array.dtype) for array in first]
    shapes: list[Any] = [array.shape if pad_value is None else [None] * array.ndim for array in first]
    behind = capacity // 4 if shuffle else 0
    with tf.name_scope(name):
        queue: Any
        if pad_value is not None:
            queue = tf.PaddingFIFOQueue(capacity, dtypes=dtypes, shapes=shapes)
        elif shuffle:
            queue = tf.RandomShuffleQueue(capacity, behind, dtypes=dtypes, shapes=shapes, seed=seed)
        else:
            queue = tf.FIFOQueue(capacity, dtypes=dtypes, shapes=shapes)
        feeds = [_Yielded(x, names, pad_value, size, num_epochs) for _ in range(num_threads)]
        fill_from(queue, dtypes, feeds, capacity, behind)
    return queue


class _Yielded:
    """The next rows of a generator, one epoch after another; an array of each name."""

    def __init__(
        self, x: Callable[[], Any], names: list[str], pad_value: Any, size: int, num_epochs: int | None
    ) -> None:
        self._generator_fn, self._names, self._pad_value = x, names, pad_value
        self._size, self._num_epochs = size, num_epochs
        self._rows: Iterator[Any] = x()
        self._epoch = 0

    def _ended(self) -> bool:
        return self._num_epochs is not None and self._epoch >= self._num_epochs

    def __call__(self) -> list[Any]:
        if self._ended():
            raise tf.errors.OutOfRangeError(None, None, f"Already emitted {self._epoch} epochs.")
        rows: list[Any] = []
        while len(rows) < self._size:
            try:
                row = next(self._rows)
            except StopIteration:
                self._epoch += 1
                self._rows = self._generator_fn()
                row = next(self._rows)
            missing = [name for name in self._names if name not in row]
            if missing:
                raise KeyError(
                    f"key mismatch between dicts emitted by GenFun Expected {self._names} keys; got "
                    f"{list(row)}"
                )
            rows.append(row)
        return [_stacked([np.asarray(row[name]) for row in rows], self._pad_value) for name in self._names]


def _stacked(arrays: Sequence[Any], pad_value: Any) -> Any:
    """One array of the arrays, padded at the ends to the largest sizes if a value is given for that."""
    if pad_value is None or len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    sizes = np.max([array.shape for array in arrays], axis=0)
    return np.stack(
        [
            np.pad(array, [(0, size - own) for size, own in zip(sizes, array.shape, strict=True)],
                   constant_values=pad_value)
            for array in arrays
        ]
    )  # fmt: skip


def enqueue_data(
    data: Any,
    capacity: int,
    shuffle: bool = False,
    min_after_dequeue: int | None = None,
    num_threads: int = 1,
    seed: int | None = None,
    name: str = "enqueue_input",
    enqueue_size: int = 1,
    num_epochs: int | None = None,
    pad_value: Any = None,
) -> Any:
    """A queue that threads fill with the rows of arrays, a frame or a generator.

    Args:
        data: an array, a dict of arrays, a DataFrame of pandas, or a function that returns a generator of
            dicts. Rows of arrays and frames come with their number first.
        capacity: of the queue; min_after_dequeue: the rows that stay behind when it is shuffled.
        shuffle, num_threads, seed, enqueue_size, num_epochs, name: see `enqueue_rows`.
        pad_value: see `generator_input_fn`; for generators only, else NotImplementedError.

    Raises TypeError for other data.
    """
    if isinstance(data, FunctionType):
        names, first = _first_row(data, None)
        return _generator_queue(
            data,
            names,
            first,
            capacity,
            shuffle,
            num_threads,
            seed,
            enqueue_size,
            num_epochs,
            pad_value,
            name,
        )
    if pad_value is not None:
        raise NotImplementedError("pad_value is for generators: rows of arrays have one shape")
    if isinstance(data, np.ndarray):
        columns = [data]
    elif isinstance(data, Mapping):
        columns = [np.asarray(column) for column in data.values()]
    elif hasattr(data, "columns"):
        columns = [np.asarray(data.index), *(data[column].to_numpy() for column in data.columns)]
    else:
        raise TypeError(
            "data must be either a numpy array or pandas DataFrame if pandas is installed; got "
            f"{type(data).__name__}"
        )
    if num_epochs is not None and not columns[0].shape[0]:
        raise ValueError("data has no rows")
    return enqueue_rows(
        columns, capacity, shuffle, num_threads, seed, enqueue_size, num_epochs, name, min_after_dequeue
    )
