"""`numpy_input_fn`: batches of rows of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.estimator.inputs.feeding_queue import check_shuffle, dequeue_rows

__all__ = ["numpy_input_fn"]


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """An input function that gives batches of the rows of arrays.

    Args:
        x: features, an array or a dict of arrays; `y`: labels, likewise, or None.
        batch_size: the rows of a batch; the last one may have fewer.
        num_epochs: how often each row comes; None: without end.
        shuffle: whether rows come in random order; must be given.
        queue_capacity: the rows that wait in the queue; `num_threads`: the threads that fill it.

    The function raises ValueError for lengths that differ, empty dicts and names in both, TypeError for
    features of other types.
    """
    check_shuffle(shuffle)

    def input_fn() -> Any:
        features, feature_names = _columns(x, "x")
        targets, target_names = _columns(y, "y") if y is not None else ([], None)
        if isinstance(x, dict) and isinstance(y, dict) and set(x) & set(y):
            both = set(x) & set(y)
            raise ValueError(f"{len(both)} duplicate keys are found in both x and y: {both}")
        columns = [*features, *targets]
        _check_lengths(columns, x, y)
        batch = dequeue_rows(columns, queue_capacity, shuffle, num_threads, batch_size, num_epochs)
        given = _named(batch[: len(features)], feature_names)
        if y is None:
            return given
        return given, _named(batch[len(features) :], target_names)

    return input_fn


def _check_lengths(columns: list[Any], x: Any, y: Any) -> None:
    if len({column.shape[0] for column in columns}) != 1:
        raise ValueError(
            "Length of tensors in x and y is mismatched. All elements in x and y must have the same length.\n"
            f"Shapes in x: {_shapes(x)}\nShapes in y: {_shapes(y)}\n"
        )


def _columns(data: Any, name: str) -> tuple[list[Any], list[Any] | None]:
    """The arrays and, of a dict, their names in order."""
    if isinstance(data, dict):
        if not data:
            raise ValueError(
                "x cannot be an empty dict" if name == "x" else "y cannot be empty dict, use None instead."
            )
        names = sorted(data)
        return [np.asarray(data[each]) for each in names], names
    if name == "x" and not isinstance(data, np.ndarray):
        raise TypeError(f"x must be a dict or array; got {type(data).__name__}")
    return [np.asarray(data)], None


def _named(tensors: list[Any], names: list[Any] | None) -> Any:
    return tensors[0] if names is None else dict(zip(names, tensors, strict=True))


def _shapes(data: Any) -> Any:
    if data is None:
        return None
    if isinstance(data, dict):
        return {name: np.shape(column) for name, column in data.items()}
    return np.shape(data)
