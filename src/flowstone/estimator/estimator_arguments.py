"""Checks of what an Estimator is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flowstone as tf
from flowstone.estimator.function_arguments import argument_names

__all__ = ["check_model_fn", "check_steps", "checked_hooks", "checked_listeners"]

_MODEL_FN_ARGUMENTS = ("features", "labels", "mode", "params", "self", "config")


def check_model_fn(model_fn: Any, params: Any) -> None:
    names = argument_names(model_fn)
    if "features" not in names:
        raise ValueError(f"model_fn ({model_fn}) must include features argument.")
    if params is not None and "params" not in names:
        raise ValueError(
            f"model_fn ({model_fn}) does not include params argument, but params ({params}) is passed to "
            "Estimator."
        )
    if params is None and "params" in names:
        tf.logging.warning(
            "Estimator's model_fn (%s) includes params argument, but params are not passed to Estimator.",
            model_fn,
        )
    other = [name for name in names if name not in _MODEL_FN_ARGUMENTS]
    if other:
        raise ValueError(f"model_fn ({model_fn}) has following not expected args: {other}")


def check_steps(steps: int | None, name: str) -> None:
    if steps is not None and steps <= 0:
        raise ValueError(f"Must specify {name} > 0, given: {steps}")


def checked_hooks(hooks: Iterable[Any] | None) -> list[Any]:
    found = list(hooks or ())
    for hook in found:
        if not isinstance(hook, tf.train.SessionRunHook):
            raise TypeError(f"Hooks must be a SessionRunHook, given: {hook}")
    return found


def checked_listeners(listeners: Iterable[Any] | None) -> list[Any]:
    found = list(listeners or ())
    for listener in found:
        if not isinstance(listener, tf.train.CheckpointSaverListener):
            raise TypeError(f"saving_listeners must be a list of CheckpointSaverListener, given: {listener}")
    return found
