"""Datasets, iterators and tensors as what a model is trained with: batch after batch, as arrays.

A dataset is read from its beginning in each epoch; where the number of steps is given, training goes on where
the epoch before ended, as with an iterator or a tensor, and ends with the data. The
elements are what `fit` takes: (inputs, targets) or (inputs, targets, weights), each an array, or a tuple,
list or dict, or inputs alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import flowstone as tf
from flowstone.keras.published import own

__all__ = ["Batches", "batches_of", "is_symbolic"]


def is_symbolic(x: Any) -> bool:
    """Whether `x` is a dataset, an iterator, a tensor or a list or dict of tensors."""
    if isinstance(x, (tf.data.Dataset, tf.data.Iterator, tf.Tensor)):
        return True
    items = list(x.values()) if isinstance(x, dict) else x
    return isinstance(items, (list, tuple)) and any(isinstance(item, tf.Tensor) for item in items)


def batches_of(x: Any, y: Any = None, weights: Any = None, steps: int | None = None) -> Batches:
    """The batches of a dataset or iterator `x`, or of tensors `x`, `y` and `weights`.

    `steps`: the number of an epoch; None, for a finite dataset, all. Raises ValueError for targets or weights
    beside a dataset or iterator, and without `steps` where the number is not known.
    """
    whole = isinstance(x, (tf.data.Dataset, tf.data.Iterator))
    if whole and (y is not None or weights is not None):
        kind = "dataset" if isinstance(x, tf.data.Dataset) else "iterator"
        raise ValueError(
            f"You passed a {kind} as `x`: it has the targets and weights; leave `y` and weights out."
        )
    if isinstance(x, tf.data.Dataset):
        iterator = tf.data.make_initializable_iterator(x)
        made = Batches(iterator.get_next(), steps or _length(x), iterator.initializer)
        made.is_whole = steps is None
        return made
    if steps is None:
        raise ValueError(
            "With an iterator or tensors, give the number of steps: `steps_per_epoch` or `steps`."
        )
    if whole:
        return Batches(x.get_next(), steps)
    if y is None:
        return Batches(_as_lists(x), steps)
    parts = [part for part in (x, y, weights) if part is not None]
    return Batches(tuple(parts), steps)


def _length(dataset: Any) -> int:
    """How many elements a dataset has, which is read to its end once; ValueError for one without an end."""
    count = dataset.reduce(tf.constant(0, tf.int64), lambda number, *_: number + 1)
    if _is_endless(dataset._as_variant_tensor().op):
        raise ValueError(
            "When passing an infinitely repeating dataset, you must specify the number of steps: "
            "`steps_per_epoch`, `validation_steps` or `steps`."
        )
    return int(own("backend").get_session().run(count))


def _is_endless(op: Any) -> bool:
    """Whether the operation that makes a dataset repeats it, or one that it takes all of, without end."""
    sources = [_is_endless(source.op) for source in op.inputs if source.dtype == tf.variant]
    if op.type == "ZipDataset":
        return all(sources)
    if op.type in ("RepeatDataset", "TakeDataset"):
        count = tf.get_static_value(op.inputs[1])
        if count is not None and (count >= 0) == (op.type == "TakeDataset"):
            return bool(op.type == "RepeatDataset")
    return any(sources)


class Batches:
    """Batches of a fixed number an epoch: `len(batches)` of them, then again from the beginning."""

    is_whole = False  # an epoch has all of a dataset

    def __init__(self, tensors: Any, steps: int, initializer: Any = None) -> None:
        self._tensors = tensors
        self._steps = steps
        self._initializer = initializer
        self._graph = tf.get_default_graph()

    def __len__(self) -> int:
        return self._steps

    def parts(self) -> tuple[Any, ...]:
        """The tensors of inputs, targets and weights, as far as there are any."""
        return self._tensors if isinstance(self._tensors, tuple) else (self._tensors,)

    def read(self, inputs_only: bool = False, in_training: bool = False) -> Iterator[Any]:
        """Epoch after epoch, until the data end; with `inputs_only` of each element its first part.

        `in_training`: whether it is as training reads it, where the number of steps is given.
        """
        with self._graph.as_default():
            session = own("backend").get_session()
        for epoch in count():
            if self._initializer is not None and (epoch == 0 or self.is_whole or not in_training):
                session.run(self._initializer)
            for _ in range(self._steps):
                try:
                    element = session.run(self._tensors)
                except tf.errors.OutOfRangeError:
                    return
                if not isinstance(element, tuple):
                    element = (element, None)
                parts = [_as_lists(part) for part in element]
                yield parts[0] if inputs_only else tuple(parts)


def _as_lists(part: Any) -> Any:
    return list(part) if isinstance(part, tuple) else part
