"""`tf.keras.backend`: what the package's backend takes from the ground below it only in part."""

from __future__ import annotations

from types import ModuleType

from flowstone.keras import foundation, sessions

__all__ = ["extend"]


def extend(module: ModuleType) -> None:
    """Gives `keras.backend` the functions that layers here ask it for."""
    names = vars(module)
    names["track_variable"] = sessions.track_variable
    names["learning_phase"] = foundation.learning_phase
