"""`tf.keras.constraints.RadialConstraint`, which the package does not have."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.keras.published import own

__all__ = ["extend"]


def _class_of(base: Any) -> Any:
    class RadialConstraint(base):  # type: ignore[misc]
        """Kernels [size, size, inputs, outputs] whose weights at one distance from the centre are equal.

        The square ring number r around the centre c gets the weight at [c - 1 + r, c - 1 + r]. Raises
        ValueError for weights of another rank, and for kernels whose height is not their width.
        """

        def __call__(self, w: Any) -> Any:
            """The constrained weights."""
            sizes = w.shape.as_list()
            if len(sizes) != 4:
                shape = tuple(sizes)
                raise ValueError(f"The weight tensor must be of rank 4, but is of shape: {shape}")
            height, width, channels, kernels = sizes
            if height != width:
                raise ValueError(f"The kernels must be square, but are of shape: {(height, width)}")
            inner = own("backend").reshape(w, (height, width, channels * kernels))
            places = [[_place(i, j, height)] * 2 for i in range(height) for j in range(width)]
            return tf.reshape(tf.gather_nd(inner, places), sizes)

    return RadialConstraint


def _place(i: int, j: int, size: int) -> int:
    """The place on the diagonal of the weight that the kernels' weight at [i, j] is equal to."""
    low, high = (size - 1) // 2, size // 2  # the centre: one weight, or two by two
    ring = max(low - i, i - high, low - j, j - high)
    return max(size // 2 - 1 + ring, 0)


def extend(module: ModuleType) -> None:
    """Puts the class into `keras.constraints`, where names and configurations are looked up."""
    names = vars(module)
    made = _class_of(names["Constraint"])
    made.__module__, made.__qualname__ = module.__name__, made.__name__
    names["RadialConstraint"] = names["radial_constraint"] = made
