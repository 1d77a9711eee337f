"""`tf.keras.Sequential`: its shape may be a TensorShape, its first layer what `Input` returns."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from flowstone.keras.published import own

__all__ = ["extend"]


def _changed_build(published: Callable[..., None]) -> Callable[..., None]:
    def build(self: Any, input_shape: Any = None) -> None:
        """Makes the weights for inputs of this shape, batch included: a tuple, list or TensorShape."""
        if input_shape is not None and hasattr(input_shape, "as_list"):
            input_shape = tuple(input_shape.as_list())
        published(self, input_shape)

    return build


def _changed_add(published: Callable[..., None]) -> Callable[..., None]:
    def add(self: Any, layer: Any) -> None:
        """Adds a layer, or what `tf.keras.Input` returned. TypeError for other tensors."""
        origin = getattr(layer, "_keras_history", (None,))[0]
        is_input = isinstance(origin, own("engine.input_layer").InputLayer)
        published(self, origin if is_input else layer)

    return add


def extend(module: ModuleType) -> None:
    """Gives the class `Sequential` of `keras.engine.sequential` what TensorFlow's has."""
    model: Any = vars(module)["Sequential"]
    model.build = _changed_build(model.build)
    model.add = _changed_add(model.add)
