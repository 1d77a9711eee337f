"""Switches of `tf.debugging` about tracebacks and NaNs, which only later TensorFlows need."""

from __future__ import annotations

__all__ = [
    "disable_check_numerics", "disable_traceback_filtering", "enable_traceback_filtering",
    "is_traceback_filtering_enabled",
]  # fmt: skip

_filters = [True]


def enable_traceback_filtering() -> None:
    """Does nothing but what `is_traceback_filtering_enabled` says: errors name the program's line anyway."""
    _filters[0] = True


def disable_traceback_filtering() -> None:
    """Does nothing but what `is_traceback_filtering_enabled` says: tracebacks are always whole."""
    _filters[0] = False


def is_traceback_filtering_enabled() -> bool:
    """What was asked for last; True at first."""
    return _filters[0]


def disable_check_numerics() -> None:
    """Does nothing: tensors are checked only where the graph says so."""
