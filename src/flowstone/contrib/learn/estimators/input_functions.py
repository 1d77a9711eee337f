"""The inputs of an Estimator: arrays, fed batch by batch, or a function that returns tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.learn.learn_io.data_feeder import setup_train_data_feeder

__all__ = ["fed", "input_fn_of", "joined", "verify_input_args"]


def _is_tensor(value: Any) -> bool:
    values = value.values() if isinstance(value, Mapping) else [value]
    return any(isinstance(each, (tf.Tensor, tf.SparseTensor)) for each in values)


def verify_input_args(x: Any, y: Any, input_fn: Any, feed_fn: Any, batch_size: Any) -> None:
    """Raises ValueError unless either arrays or an input function is given."""
    if input_fn is None:
        if x is None:
            raise ValueError("Either x or input_fn must be provided.")
        if _is_tensor(x) or (y is not None and _is_tensor(y)):
            raise ValueError("Inputs cannot be tensors. Please provide input_fn.")
        if feed_fn is not None:
            raise ValueError("Can not provide both feed_fn and x or y.")
        return
    if x is not None or y is not None:
        raise ValueError("Can not provide both input_fn and x or y.")
    if batch_size is not None:
        raise ValueError("Can not provide both input_fn and batch_size.")


def input_fn_of(
    x: Any,
    y: Any,
    input_fn: Any,
    feed_fn: Any,
    batch_size: int | None,
    shuffle: bool = False,
    epochs: int | None = 1,
) -> tuple[Callable[[], Any], Callable[[], Any] | None]:
    """The input function, and the function that feeds its placeholders with the next batch of arrays.

    Args:
        x, y: arrays, dicts of them, iterators or frames (see `tf.contrib.learn.io`); y may be None.
        input_fn, feed_fn: in their place; they are returned.
        batch_size: how many examples a step takes; None: all.
        shuffle: whether the order is drawn; `epochs`: how often the examples come; None: for ever.

    Raises ValueError as `verify_input_args` does.
    """
    verify_input_args(x, y, input_fn, feed_fn, batch_size)
    if input_fn is not None:
        return input_fn, feed_fn
    feeder = setup_train_data_feeder(x, y, None, batch_size, shuffle, epochs)
    return feeder.input_builder, feeder.get_feed_dict_fn()


def fed(x: Any, y: Any, batch_size: Any, shuffle: bool, epochs: int | None) -> tuple[list[Any], Any]:
    """The hook that feeds the arrays, and the input function of the placeholders."""
    input_fn, feed_fn = input_fn_of(x, y, None, None, batch_size, shuffle, epochs)
    return [tf.train.FeedFnHook(feed_fn)], input_fn


def joined(batches: list[Any]) -> Any:
    """The arrays of all batches one after the other."""
    if not batches:
        return []
    if isinstance(batches[0], dict):
        return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    return np.concatenate(batches)
