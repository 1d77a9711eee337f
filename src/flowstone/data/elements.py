"""What TensorFlow 1.14 and 1.15 added to datasets: specs of elements, names for older kinds of functions."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["Described"]


class Described:
    """The part of `Dataset` that says what an element is."""

    map: Callable[..., Any]
    filter: Callable[..., Any]

    @property
    def element_spec(self) -> Any:
        """The nested specs of an element: a TensorSpec, SparseTensorSpec or DatasetSpec a component."""
        return import_module("flowstone.data.specs").element_spec_of(self)

    def map_with_legacy_function(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Any:
        """The same as `map`."""
        return self.map(map_func, num_parallel_calls)

    def filter_with_legacy_function(self, predicate: Callable[..., Any]) -> Any:
        """The same as `filter`."""
        return self.filter(predicate)
