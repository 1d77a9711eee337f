"""Transformations that bring elements to a device. A step brings what it needs itself, in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.data.dataset import Dataset

__all__ = ["copy_to_device", "prefetch_to_device"]


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Callable[[Dataset], Dataset]:
    """The same elements, of which a thread fetches up to `buffer_size` ahead; a step that runs on `device`
    copies them there."""
    return lambda dataset: dataset.prefetch(-1 if buffer_size is None else buffer_size)


def copy_to_device(target_device: Any, source_device: str = "/cpu:0") -> Callable[[Dataset], Dataset]:
    """The same elements; a step that runs on `target_device` copies them there."""
    return lambda dataset: dataset.take(-1)
