"""`tensorflow.python.tf2`: whether the behaviour is TensorFlow 2's."""

from __future__ import annotations

__all__ = ["disable", "enabled"]


def enabled() -> bool:
    """False: the behaviour is TensorFlow 1's."""
    return False


def disable() -> None:
    """Does nothing: the behaviour is TensorFlow 1's."""
