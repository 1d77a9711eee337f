"""Results of an epoch, and messages, as callbacks of `tf.keras` have them.

Means are float64, as sums of NumPy 1's scalars were; the results of an epoch's training come before those of
its validation, whose metrics are float32.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["extend"]

_MESSAGES = {  # words of the package, and of `tf.keras`
    "LearningRateScheduler setting learning rate": "LearningRateScheduler reducing learning rate",
    "Restoring model weights from the end of the best epoch": (
        "Restoring model weights from the end of the best epoch."
    ),
}


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


def _changed_epoch_end(published: Callable[..., None]) -> Callable[..., None]:
    def on_epoch_end(self: Any, epoch: int, logs: Any = None) -> None:
        """Puts the epoch's means before what is there, which are results of validation."""
        validation = dict(logs or {})
        if logs:
            logs.clear()
        published(self, epoch, logs)
        for name, value in validation.items():
            if name.startswith("val_") and isinstance(value, float):
                value = np.float64(value) if name == "val_loss" else np.float32(value)
            logs.setdefault(name, value)

    return on_epoch_end


def _changed_set_model(published: Callable[..., None]) -> Callable[..., None]:
    def set_model(self: Any, model: Any) -> None:
        """Gives all callbacks the model, which knows those of its training; loggers know what is no mean."""
        published(self, model)
        for each in self.callbacks:
            if hasattr(each, "stateful_metrics"):
                each.stateful_metrics = set(getattr(model, "metrics_names", ())[1:])
        if any(each is getattr(model, "history", None) for each in self.callbacks):
            model._callback_list = self

    return set_model


def _print(*values: Any, **options: Any) -> None:
    """Prints a message in the words of `tf.keras`."""
    for words, others in _MESSAGES.items():
        values = tuple(value.replace(words, others) if isinstance(value, str) else value for value in values)
    builtins.print(*values, **options)


def extend(module: ModuleType) -> None:
    """Changes the class `BaseLogger`, in the module that defines it, and what that module prints."""
    logger: Any = vars(module).get("BaseLogger")
    if logger is not None and logger.__module__ == module.__name__:
        logger.on_batch_end = _changed_batch_end(logger.on_batch_end)
        logger.on_epoch_end = _changed_epoch_end(logger.on_epoch_end)
        callbacks: Any = vars(module)["CallbackList"]
        callbacks.set_model = _changed_set_model(callbacks.set_model)
        module.print = _print  # type: ignore[attr-defined]
