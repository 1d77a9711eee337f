"""`Reducer`, and what applies one: to a whole dataset, to the elements of each key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.data.dataset import Dataset
from flowstone.data.experimental import group_by_window
from flowstone.data.functions import as_arguments
from flowstone.framework.tensors.tensor import convert_to_tensor
from flowstone.framework.types import dtypes

__all__ = ["Reducer", "group_by_reducer", "reduce_dataset"]


class Reducer:
    """How elements become one value: ``init_func(key)`` is the first state, ``reduce_func(state, element)``
    the next, ``finalize_func(state)`` the value of the last."""

    def __init__(
        self,
        init_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        finalize_func: Callable[..., Any],
    ) -> None:
        self._init_func, self._reduce_func, self._finalize_func = init_func, reduce_func, finalize_func

    @property
    def init_func(self) -> Callable[..., Any]:
        """The first state, of a key."""
        return self._init_func

    @property
    def reduce_func(self) -> Callable[..., Any]:
        """The next state, of a state and an element."""
        return self._reduce_func

    @property
    def finalize_func(self) -> Callable[..., Any]:
        """The value, of the last state."""
        return self._finalize_func


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Callable[[Dataset], Dataset]:
    """One element for each key: the value that `reducer` makes of the elements for which
    ``key_func(element)``, an int64 scalar, is that key. TypeError or ValueError as for `Dataset.reduce`."""

    def reduced(key: Any, window: Dataset) -> Dataset:
        return Dataset.from_tensors(_value_of(window, reducer, key))

    return group_by_window(key_func, reduced, window_size=dtypes.int64.max)


def reduce_dataset(dataset: Dataset, reducer: Reducer) -> Any:
    """The value that `reducer` makes of all elements, as tensors; its key is 0. TypeError for another
    reducer."""
    if not isinstance(reducer, Reducer):
        raise TypeError(f"`reducer` must be a Reducer, not a {type(reducer).__name__}")
    return _value_of(dataset, reducer, convert_to_tensor(0, dtypes.int64))


def _value_of(dataset: Dataset, reducer: Reducer, key: Any) -> Any:
    state = dataset.reduce(reducer.init_func(key), reducer.reduce_func)
    return reducer.finalize_func(*as_arguments(state))
