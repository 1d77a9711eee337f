"""The order of examples in epochs over arrays, which NumPy's random numbers choose, as in TensorFlow 1.15.

Each epoch shuffles the examples as they are given (the package's shuffles those of the epoch before), and so
does each validation within `fit`, whether or not training shuffles.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

__all__ = ["extend"]


class _State(threading.local):
    is_validation = False  # of a `fit`


_state = _State()


def _shuffle(order: Any) -> None:
    """Gives `order` a new order of the examples, whatever the order was."""
    order[:] = np.arange(len(order))
    np.random.shuffle(order)


def _arange(count: int) -> Any:
    order = np.arange(count)
    if _state.is_validation:
        np.random.shuffle(order)
    return order


def _changed_test_loop(published: Callable[..., Any], list_of_callbacks: type) -> Callable[..., Any]:
    def test_loop(*arguments: Any, **keywords: Any) -> Any:
        """The loss and the metrics; `fit` calls it with its own list of callbacks."""
        before = _state.is_validation
        _state.is_validation = isinstance(keywords.get("callbacks"), list_of_callbacks)
        try:
            return published(*arguments, **keywords)
        finally:
            _state.is_validation = before

    return test_loop


def extend(module: ModuleType) -> None:
    """Changes how `keras.engine.training_arrays` orders examples."""
    names = vars(module)
    shuffle_batches = names["batch_shuffle"]
    names["batch_shuffle"] = lambda order, size: shuffle_batches(np.arange(len(order)), size)
    ordering = {"arange": _arange, "random": SimpleNamespace(shuffle=_shuffle)}
    names["np"] = SimpleNamespace(**{**vars(np), **ordering})
    if hasattr(names["cbks"], "CallbackList"):
        names["test_loop"] = _changed_test_loop(names["test_loop"], names["cbks"].CallbackList)
