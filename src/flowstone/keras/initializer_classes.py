"""Initialisers of `tf.keras.initializers` that take more than the package's."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import flowstone as tf

__all__ = ["VarianceScaling"]

_published: Any = import_module("keras.initializers").VarianceScaling


class VarianceScaling(_published):  # type: ignore[misc]  # the package's
    """Random numbers whose variance is `scale` divided by the number of inputs, of outputs, or their mean.

    Args:
        scale, mode, seed: as the package's.
        distribution: "uniform", "truncated_normal", which "normal" also means, or "untruncated_normal".

    Raises ValueError for other names, and for a scale that is not positive.
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: Any = None,
    ) -> None:
        kind = distribution.lower()
        is_normal = kind in ("truncated_normal", "untruncated_normal")
        super().__init__(scale=scale, mode=mode, distribution="normal" if is_normal else kind, seed=seed)
        self._is_untruncated = kind == "untruncated_normal"

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """Numbers of this shape."""
        if not self._is_untruncated:
            return super().__call__(shape, dtype)
        initializer = tf.variance_scaling_initializer(self.scale, self.mode, "untruncated_normal", self.seed)
        return initializer(shape, dtype=dtype or tf.keras.backend.floatx())

    def get_config(self) -> dict[str, Any]:
        """What it is made of."""
        kind = "untruncated_normal" if self._is_untruncated else self.distribution
        return {**super().get_config(), "distribution": kind}
