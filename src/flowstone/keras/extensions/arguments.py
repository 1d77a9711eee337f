"""Arguments in the order of the constructors: `tf.keras` never took those of Keras 1."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["extend"]


def _unchanged(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a decorator for Keras 1 was to wrap."""
    return function


def extend(module: ModuleType) -> None:
    """Has the decorators of `keras.legacy.interfaces` leave functions as they are."""
    for name in dir(module):
        if name.startswith("legacy_") and name.endswith("_support"):
            setattr(module, name, _unchanged)
