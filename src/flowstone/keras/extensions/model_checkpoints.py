"""`tf.keras.callbacks.ModelCheckpoint`, which also saves after a number of examples, and goes on from what
was saved before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import flowstone as tf

__all__ = ["extend"]


def _changed_init(published: Callable[..., None]) -> Callable[..., None]:
    def __init__(
        self: Any,
        filepath: str,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
        **kwargs: Any,
    ) -> None:
        """Saves the model, or its weights, while it trains.

        `filepath` may name `{epoch}` and the results of an epoch or batch. `save_freq` is "epoch", or after
        how many examples to save; with `period`, every so many epochs. With `load_weights_on_restart`
        training begins with the weights that were saved last, if there are any. ValueError for another
        `save_freq`.
        """
        period = kwargs.get("period", 1)
        published(self, filepath, monitor, verbose, save_best_only, save_weights_only, mode, period)
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(f"Unrecognized save_freq: {save_freq}")
        self.save_freq = save_freq
        self.load_weights_on_restart = kwargs.get("load_weights_on_restart", False)
        self._examples_since_last_save, self._epoch = 0, 0

    return __init__


def set_model(self: Any, model: Any) -> None:
    """Notes the model; of one of a program's class only the weights can be saved."""
    self.model = model
    if not model._is_graph_network and type(model).__name__ != "Sequential":
        self.save_weights_only = True


def on_train_begin(self: Any, logs: Any = None) -> None:
    """Loads the weights that were saved last, if it shall."""
    path = _last_saved(self.filepath) if self.load_weights_on_restart else None
    if path is not None:
        self.model.load_weights(path)


def on_epoch_begin(self: Any, epoch: int, logs: Any = None) -> None:
    """Notes the epoch."""
    self._epoch = epoch


def on_batch_end(self: Any, batch: int, logs: Any = None) -> None:
    """Saves after so many examples."""
    if self.save_freq == "epoch":
        return
    self._examples_since_last_save += (logs or {}).get("size", 1)
    if self._examples_since_last_save >= self.save_freq:
        self._examples_since_last_save = 0
        self.epochs_since_last_save = self.period - 1
        self._save_after_epoch(self._epoch, logs)


def on_epoch_end(self: Any, epoch: int, logs: Any = None) -> None:
    """Saves after so many epochs."""
    if self.save_freq == "epoch":
        self._save_after_epoch(epoch, logs)


def _last_saved(filepath: str) -> str | None:
    """The last file, or checkpoint, whose name is that of `filepath`, whatever stands for what it names."""
    folder, name = os.path.split(filepath)
    pattern = re.compile(r".*".join(re.escape(part) for part in re.split(r"{.*}", name)))
    latest = tf.train.latest_checkpoint(folder)
    if latest is not None and pattern.fullmatch(os.path.basename(latest)):
        return str(latest)
    if not tf.gfile.IsDirectory(folder or "."):
        return None
    paths = [os.path.join(folder, each) for each in tf.gfile.ListDirectory(folder or ".")]
    found = [path for path in paths if pattern.fullmatch(os.path.basename(path))]
    return max(found, key=lambda path: tf.gfile.Stat(path).mtime_nsec, default=None)


def extend(module: ModuleType) -> None:
    """Changes the class `ModelCheckpoint`, in the module that defines it."""
    kind: Any = vars(module).get("ModelCheckpoint")
    if kind is None or kind.__module__ != module.__name__:
        return
    kind.__init__, kind._save_after_epoch = _changed_init(kind.__init__), kind.on_epoch_end
    for method in (set_model, on_train_begin, on_epoch_begin, on_batch_end, on_epoch_end):
        setattr(kind, method.__name__, method)
