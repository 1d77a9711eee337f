"""Callbacks that print how far training, testing and prediction are, as `tf.keras` does.

Before the first epoch of arrays stands how many samples there are; an epoch's number only if there are
several. The line of an epoch comes after what other callbacks print.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from flowstone.keras.extensions.progress_bars import Progbar
from flowstone.keras.published import own

__all__ = ["extend", "loop_progress"]


def _on_train_begin(self: Any, logs: Any = None) -> None:
    """Says what is trained on, unless the package did."""
    self.verbose = self.params["verbose"]
    self.epochs = self.params["epochs"]
    samples = self.params.get("samples")
    validation = self.params.get("validation_steps")
    if self.verbose and samples and (validation or not self.params.get("do_validation")):
        print(f"Train on {samples} samples" + (f", validate on {validation} samples" if validation else ""))


def _on_epoch_begin(self: Any, epoch: int, logs: Any = None) -> None:
    """Begins an epoch's bar."""
    self.seen = 0
    self.target = self.params["steps" if self.use_steps else "samples"]
    if self.verbose:
        if self.epochs > 1:
            print(f"Epoch {epoch + 1}/{self.epochs}")
        unit = "step" if self.use_steps else "sample"
        self.progbar = Progbar(
            self.target, verbose=self.verbose, stateful_metrics=self.stateful_metrics, unit_name=unit
        )


def _changed_list(published: Callable[..., None], logger: type) -> Callable[..., None]:
    def __init__(self: Any, callbacks: Any = None, *arguments: Any, **options: Any) -> None:
        """The progress of training is printed last."""
        published(self, callbacks, *arguments, **options)
        self.callbacks.sort(key=lambda callback: isinstance(callback, logger))

    return __init__


def loop_progress(model: Any, verbose: int) -> Any:
    """A callback that prints how far `evaluate` or `predict` is, and what was measured so far."""
    names = list(getattr(model, "metrics_names", None) or ())
    callback_class: Any = own("callbacks").Callback

    class LoopProgress(callback_class):  # type: ignore[misc]
        """Counts samples where their number is known, otherwise steps."""

        def on_test_begin(self, logs: Any = None) -> None:
            """Begins the bar."""
            samples = self.params.get("samples")
            target, unit = (self.params["steps"], "step") if samples is None else (samples, "sample")
            self.counts_samples = samples is not None
            self.bar = Progbar(target, verbose=verbose, stateful_metrics=names[1:], unit_name=unit)

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            """Goes on by a batch."""
            logs = logs or {}
            values = [(name, logs[name]) for name in names if name in logs]
            self.bar.add(logs.get("size", 1) if self.counts_samples else 1, values)

        on_predict_begin = on_test_begin
        on_predict_batch_end = on_test_batch_end

    return LoopProgress()


def extend(module: ModuleType) -> None:
    """Changes the classes `ProgbarLogger` and `CallbackList`, in the module that defines them."""
    logger: Any = vars(module).get("ProgbarLogger")
    if logger is None or logger.__module__ != module.__name__:
        return
    logger.on_train_begin = _on_train_begin
    logger.on_epoch_begin = _on_epoch_begin
    listed: Any = vars(module)["CallbackList"]
    listed.__init__ = _changed_list(listed.__init__, logger)
