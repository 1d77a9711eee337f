"""`tf.keras.Sequential`, built for a shape that may be a TensorShape."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["extend"]


def _changed_build(published: Callable[..., None]) -> Callable[..., None]:
    def build(self: Any, input_shape: Any = None) -> None:
        """Makes the weights for inputs of this shape, batch included: a tuple, list or TensorShape."""
        if input_shape is not None and hasattr(input_shape, "as_list"):
            input_shape = tuple(input_shape.as_list())
        published(self, input_shape)

    return build


def extend(module: ModuleType) -> None:
    """Gives the class `Sequential` of `keras.engine.sequential` what TensorFlow's has."""
    model: Any = vars(module)["Sequential"]
    model.build = _changed_build(model.build)
