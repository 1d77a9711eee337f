"""Means of an epoch in float64, as sums of NumPy 1's scalars were."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["extend"]


def _changed_batch_end(published: Callable[..., None]) -> Callable[..., None]:
    def on_batch_end(self: Any, batch: Any, logs: Any = None) -> None:
        """Adds the results of a batch to the epoch's; a stateful metric's stays as it is."""
        given = {
            name: value
            if name in self.stateful_metrics or not isinstance(value, np.floating)
            else np.float64(value)
            for name, value in (logs or {}).items()
        }
        published(self, batch, given)

    return on_batch_end


def extend(module: ModuleType) -> None:
    """Changes the class `BaseLogger`, in the module that defines it."""
    logger: Any = vars(module).get("BaseLogger")
    if logger is not None and logger.__module__ == module.__name__:
        logger.on_batch_end = _changed_batch_end(logger.on_batch_end)
