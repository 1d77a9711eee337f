"""Random Fourier features: their products approximate a Gaussian kernel.

    exp(-‖x - y‖² / (2 σ²))  ≈  φ(x) · φ(y),    φ(x) = sqrt(2 / D) cos(x Ω + b)

where Ω is normal with the deviation 1 / σ and b uniform in [0, 2π). A. Rahimi and B. Recht, "Random features
for large-scale kernel machines", 2007.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import flowstone as tf

__all__ = ["DenseKernelMapper", "InvalidShapeError", "RandomFourierFeatureMapper"]


class InvalidShapeError(Exception):
    """The shape of a tensor does not fit the mapper."""


class DenseKernelMapper:
    """The base of mappers, which have `name`, `input_dim` and `output_dim`."""

    def map(self, input_tensor: Any) -> Any:
        """From [batch, input_dim] to [batch, output_dim]; for subclasses."""
        raise NotImplementedError


class RandomFourierFeatureMapper(DenseKernelMapper):
    """The mapping; see the module.

    Args:
        input_dim, output_dim: the numbers of features, before and after.
        stddev: σ.
        seed: of NumPy's generator, which draws Ω and b; the same seed gives the same mapping.
        name: by default a number of its own.
    """

    def __init__(
        self, input_dim: int, output_dim: int, stddev: float = 1.0, seed: int = 1, name: str | None = None
    ) -> None:
        self._input_dim, self._output_dim = input_dim, output_dim
        self._stddev, self._seed, self._name = stddev, seed, name

    name = property(lambda self: self._name or str(id(self)), doc="Its name.")
    input_dim = property(lambda self: self._input_dim, doc="The number of features before.")
    output_dim = property(lambda self: self._output_dim, doc="The number of features after.")

    def map(self, input_tensor: Any) -> Any:
        """From float32 [batch, input_dim] to [batch, output_dim]; InvalidShapeError for other shapes."""
        shape = input_tensor.get_shape()
        if len(shape) != 2:
            raise InvalidShapeError(f"The shape of the tensor should be 2. Got {len(shape)} instead.")
        if shape[1] != self._input_dim:
            raise InvalidShapeError(
                f"Invalid dimension: expected {self._input_dim} input features, got {shape[1]} instead."
            )
        random = np.random.RandomState(self._seed)
        omega = random.normal(scale=1.0 / self._stddev, size=[self._input_dim, self._output_dim])
        bias = random.uniform(low=0.0, high=2 * np.pi, size=[self._output_dim])
        angles = tf.matmul(input_tensor, tf.constant(omega, tf.float32)) + tf.constant(bias, tf.float32)
        return math.sqrt(2.0 / self._output_dim) * tf.cos(angles)
