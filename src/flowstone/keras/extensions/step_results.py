"""What steps give in loops over batches: numbers, or the losses of examples where these are not reduced."""

from __future__ import annotations

from types import ModuleType

import numpy as np

__all__ = ["extend"]


def extend(module: ModuleType) -> None:
    """Has the loops of `keras.engine.training_arrays` and `training_generator` add up arrays as well."""
    vars(module)["float"] = np.float64  # by this name the package makes a step's results numbers
