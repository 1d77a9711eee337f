"""`fit_generator`, `evaluate_generator` and `predict_generator` of `tf.keras`: batches that may end early.

What ends before the steps that were asked for are done is no error: `fit_generator` ends the epoch, without
validation, and the training; the others give what the batches gave that there were.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.keras.extensions.calls import has_argument
from flowstone.keras.extensions.generator_batches import with_lists
from flowstone.keras.extensions.progress_callbacks import loop_progress

__all__ = [
    "changed_evaluate_generator",
    "changed_fit_generator",
    "changed_predict_generator",
    "results_of",
    "show_progress",
]

Method = Callable[..., Any]


def changed_fit_generator(published: Method) -> Method:
    """`fit_generator` of the class `Model`."""
    signature = inspect.signature(published)

    def fit_generator(self: Any, generator: Any, *arguments: Any, **options: Any) -> Any:
        """Trains; see the package. Inputs and targets may be tuples, and the batches may end."""
        try:
            return published(self, with_lists(generator), *arguments, **options)
        except StopIteration:
            given = signature.bind(self, generator, *arguments, **options)
            given.apply_defaults()
            return _interrupted(self, given.arguments)

    return fit_generator


def _interrupted(model: Any, options: dict[str, Any]) -> Any:
    """Ends the epoch and the training of a model that has no more batches; the history."""
    steps, epochs = options["steps_per_epoch"], options["epochs"]
    _warn(f"{steps} batches an epoch, {steps * epochs} in all")
    history, callbacks = model.history, model._callback_list
    logs: dict[str, Any] = {}
    has_batches = callbacks.callbacks[0].seen
    if history.epoch and not has_batches:  # the epoch before counts, as in TensorFlow 1.15
        names = [name for name in model.metrics_names if name in history.history]
        logs = {name: history.history[name][-1] for name in names}
        logs["loss"] = logs["loss"] / steps
    epoch = options["initial_epoch"] + len(history.epoch)
    callbacks.on_epoch_end(epoch, logs)
    callbacks.on_train_end()
    return history


def _warn(number: str) -> None:
    tf.logging.warning(
        f"Your dataset ran out of data; interrupting training. It has to give {number}. "
        "`repeat()` makes a dataset give its elements again."
    )


def changed_evaluate_generator(published: Method) -> Method:
    """`evaluate_generator` of the class `Model`."""

    def evaluate_generator(self: Any, generator: Any, *arguments: Any, **options: Any) -> Any:
        """The loss, a mean over batches, and the metrics; the package gives the loss of the last batch."""
        results = _of_each_batch(self, "test_on_batch", published, generator, arguments, options)
        if not results:
            return []
        losses = [np.float64(each[0] if isinstance(each, list) else each) for each in results]
        steps = options.get("steps", arguments[0] if arguments else None)
        loss, last = np.sum(losses, axis=0) / (steps or len(results)), results[-1]
        return results_of([loss, *last[1:]] if isinstance(last, list) else loss)

    return evaluate_generator


def changed_predict_generator(published: Method) -> Method:
    """`predict_generator` of the class `Model`."""

    def predict_generator(self: Any, generator: Any, *arguments: Any, **options: Any) -> Any:
        """The outputs; see the package."""
        results = _of_each_batch(self, "predict_on_batch", published, generator, arguments, options)
        if results and isinstance(results[0], list):
            return [np.concatenate(each) for each in zip(*results)]
        return np.concatenate(results) if results else []

    return predict_generator


def _of_each_batch(
    model: Any, method: str, published: Method, generator: Any, arguments: Any, options: dict[str, Any]
) -> list[Any]:
    """What a method of the model gave for each of the batches, until these end."""
    results: list[Any] = []
    of_batch = getattr(model, method)

    def recorded(*batch: Any, **keywords: Any) -> Any:
        results.append(of_batch(*batch, **keywords))
        return results[-1]

    if options.get("verbose"):
        options["verbose"] = show_progress(model, published, options["verbose"], options)
    vars(model)[method] = recorded
    try:
        published(model, with_lists(generator), *arguments, **options)
    except StopIteration:
        _warn("as many batches as there are steps")
        model.stop_training = True
    finally:
        del vars(model)[method]
    return results


def results_of(results: Any) -> Any:
    """The loss, a mean over batches, as float64; metrics as the float32 that they are."""
    if isinstance(results, list):
        return [np.float64(results[0]), *(np.float32(value) for value in results[1:])]
    return np.float64(results)


def show_progress(self: Any, published: Method, verbose: int, options: dict[str, Any]) -> int:
    """Adds a callback that prints the progress; the `verbose` that is left to the package.

    Keras 2.2 has no callbacks here, and prints itself.
    """
    callbacks = options.get("callbacks") or []
    if not verbose or not has_argument(published, "callbacks") or not isinstance(callbacks, list):
        return verbose
    options["callbacks"] = [*callbacks, loop_progress(self, verbose)]
    return 0
