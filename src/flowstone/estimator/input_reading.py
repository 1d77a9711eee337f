"""What an input function returns, as features and labels for the model function."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import get_strategy
from flowstone.training.hooks.session_run_hook import SessionRunHook

__all__ = ["DatasetInitializerHook", "parse_input_fn_result", "parse_iterator_result"]


class DatasetInitializerHook(SessionRunHook):
    """Begins a dataset in every new session.

    `iterator`: an initialisable iterator.
    """

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def begin(self) -> None:
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        session.run(self._initializer)


def parse_input_fn_result(result: Any) -> tuple[Any, Any, list[Any]]:
    """Features, labels (None if there are none), and the hooks that the input needs.

    `result`: a Dataset, whose elements are taken one a step, or one a replica in the scope of a strategy of
    several replicas; a pair; or features alone. ValueError for replicas and what is no Dataset.
    """
    hooks: list[Any] = []
    strategy = get_strategy()
    if len(strategy.extended.worker_devices) > 1:
        if not isinstance(result, tf.data.Dataset):
            raise ValueError("input_fn must return a tf.data.Dataset when using a DistributionStrategy.")
        iterator = strategy.make_input_fn_iterator(lambda _: result)
        return *parse_iterator_result(iterator.get_next()), [DatasetInitializerHook(iterator)]
    if isinstance(result, tf.data.Dataset):
        iterator = tf.data.make_initializable_iterator(result)
        hooks.append(DatasetInitializerHook(iterator))
        result = iterator.get_next()
    features, labels = parse_iterator_result(result)
    return features, labels, hooks


def parse_iterator_result(result: Any) -> tuple[Any, Any]:
    """Features and labels; ValueError for a list or tuple of another length than 2."""
    if isinstance(result, (list, tuple)):
        if len(result) != 2:
            raise ValueError("input_fn should return (features, labels) as a len 2 tuple.")
        return result[0], result[1]
    return result, None
