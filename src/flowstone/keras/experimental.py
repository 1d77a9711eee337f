"""`tf.keras.experimental`: schedules with cosines, models and layers that are ready made, exported models."""

from __future__ import annotations

from typing import Any

from flowstone.keras.exported_models import export_saved_model, load_from_saved_model
from flowstone.keras.extensions.learning_rate_schedules import (
    CosineDecay,
    CosineDecayRestarts,
    LinearCosineDecay,
    NoisyLinearCosineDecay,
)
from flowstone.keras.published import own

__all__ = [
    "CosineDecay",
    "CosineDecayRestarts",
    "LinearCosineDecay",
    "NoisyLinearCosineDecay",
    "export_saved_model",
    "load_from_saved_model",
    "terminate_keras_multiprocessing_pools",
]

# Classes that derive from the package's, and its modules that have them.
_CLASSES = {
    "LinearModel": "models",
    "PeepholeLSTMCell": "layers.recurrent",
    "SequenceFeatures": "layers",
    "WideDeepModel": "models",
}


def terminate_keras_multiprocessing_pools(grace_period: float = 0.1, use_sigkill: bool = False) -> Any:
    """Ends worker processes of generators; those here end with their generator, so that none is left.

    Returns two empty lists: the processes that could not be ended, and the descriptions of errors.
    """
    return [], []


def __getattr__(name: str) -> Any:
    if name not in _CLASSES:
        raise AttributeError(f"flowstone does not have the name tf.keras.experimental.{name}")
    return getattr(own(_CLASSES[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_CLASSES})
