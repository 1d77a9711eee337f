"""Arrays as what a model of several replicas is trained with: batches of all replicas together.

A batch size is of all replicas together, or with strategies that do not split batches, as those of
`tf.contrib.distribute`, of each. The last batch of an epoch has the rest; a rest of fewer examples than
there are replicas belongs to the batch before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from flowstone.keras.extensions import replicated_models
from flowstone.keras.training_data import Batches, batches_of, is_symbolic

__all__ = ["ArrayBatches", "JoinedBatches", "batches_for", "split_batches_for"]


def batches_for(
    model: Any, x: Any, y: Any = None, weights: Any = None, steps: int | None = None, **options: Any
) -> Any:
    """The batches of a model of several replicas: of a Dataset or tensors those of `training_data`, else of
    arrays, for which `options` are `class_weight` and those of `ArrayBatches`."""
    strategy = replicated_models.strategy_of(model)
    if not is_symbolic(x):
        arrays = _arrays_of(model, x, y, weights, options.pop("class_weight", None))
        return ArrayBatches(model, arrays, steps=steps, **options)
    if strategy.splits_batches:
        return batches_of(x, y, weights, steps)
    count = strategy.num_replicas_in_sync
    return JoinedBatches(batches_of(x, y, weights, None if steps is None else steps * count), count)


def split_batches_for(
    model: Any, x: Any, y: Any, weights: Any, steps: int | None, share: float, **options: Any
) -> tuple[ArrayBatches, ArrayBatches]:
    """The batches of arrays for training, and those of the last `share` of the examples for validation; see
    `batches_for`."""
    arrays = _arrays_of(model, x, y, weights, options.pop("class_weight", None))
    first = int(len(arrays[0][0]) * (1.0 - share))
    trained = [[array[:first] for array in part] for part in arrays]
    rest = [[array[first:] for array in part] for part in arrays]
    validation = ArrayBatches(model, rest, options.get("batch_size"))
    return ArrayBatches(model, trained, steps=steps, **options), validation


def _arrays_of(model: Any, x: Any, y: Any, weights: Any, class_weight: Any = None) -> list[list[Any]]:
    """The lists of arrays of inputs, targets and weights that the model is fed for `x` and `y`."""
    if y is None:
        return [list(model._standardize_user_data(x)[0]), [], []]
    found = model._standardize_user_data(x, y, sample_weight=weights, class_weight=class_weight)
    return [list(part) for part in found]


class ArrayBatches:
    """Batches of arrays: `len(batches)` of them an epoch.

    Args:
        model: a model of several replicas.
        arrays: what the model is fed: lists of inputs, of targets and of weights.
        batch_size: the number of examples of a batch; by default 32 of all replicas together.
        steps: the number of batches an epoch; by default those that have all examples.
        shuffle: whether the examples have another order in each epoch.

    Raises ValueError for fewer examples than the steps need, and for a number of examples that `steps` does
    not divide if there is no `batch_size`.
    """

    def __init__(
        self,
        model: Any,
        arrays: list[list[Any]],
        batch_size: int | None = None,
        steps: int | None = None,
        shuffle: bool = False,
    ) -> None:
        self._arrays, self._shuffle = arrays, shuffle
        self._samples = arrays[0][0].shape[0]
        strategy = replicated_models.strategy_of(model)
        count = strategy.num_replicas_in_sync
        if batch_size is not None and not strategy.splits_batches:
            batch_size *= count
        if batch_size is None and steps is not None:
            if self._samples % steps:
                raise ValueError(
                    f"The number of samples {self._samples} is not divisible by steps {steps}. Please change "
                    "the number of steps to a value that can consume all the samples"
                )
            batch_size = self._samples // steps
        size = batch_size or 32
        starts = list(range(0, self._samples, size))
        if len(starts) > 1 and self._samples - starts[-1] < count:
            del starts[-1]
        self._bounds = list(zip(starts, [*starts[1:], self._samples]))
        if steps is not None:
            if steps > len(self._bounds):
                raise ValueError(
                    f"Number of samples {self._samples} is less than samples required for specified "
                    f"batch_size {size} and steps {steps}"
                )
            del self._bounds[steps:]

    def __len__(self) -> int:
        return len(self._bounds)

    def read(self, inputs_only: bool = False) -> Iterator[Any]:
        """Epoch after epoch, without end; with `inputs_only` of each batch its inputs."""
        order = np.arange(self._samples)
        while True:
            if self._shuffle:
                np.random.shuffle(order)
            for begin, end in self._bounds:
                chosen = order[begin:end] if self._shuffle else slice(begin, end)
                batch = tuple([array[chosen] for array in part] for part in self._arrays)
                if inputs_only:
                    yield batch[0]
                else:
                    yield batch if batch[1] else (batch[0], None)


class JoinedBatches:
    """Batches of a Dataset of which each replica gets one of its own: `count` of them are one."""

    def __init__(self, batches: Batches, count: int) -> None:
        self._batches, self._count = batches, count

    def __len__(self) -> int:
        return len(self._batches) // self._count

    def read(self, inputs_only: bool = False) -> Iterator[Any]:
        """Epoch after epoch, without end; with `inputs_only` of each batch its inputs."""
        elements = self._batches.read(inputs_only)
        rest = len(self._batches) % self._count
        while True:
            for _ in range(len(self)):
                yield _joined([next(elements) for _ in range(self._count)])
            for _ in range(rest):
                next(elements)


def _joined(parts: list[Any]) -> Any:
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, dict):
        return {key: _joined([part[key] for part in parts]) for key in first}
    if isinstance(first, (list, tuple)):
        return type(first)(_joined(list(each)) for each in zip(*parts))
    return np.concatenate(parts)
