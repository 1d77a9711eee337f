"""Arrays as an input function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.estimator.inputs.numpy_io import numpy_input_fn as core_numpy_input_fn

__all__ = ["numpy_input_fn"]


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """`tf.estimator.inputs.numpy_input_fn`, which shuffles unless it is told not to."""
    return core_numpy_input_fn(x, y, batch_size, num_epochs, shuffle, queue_capacity, num_threads)
