"""`tf.keras.Sequential`: its shape may be a TensorShape, its first layer what `Input` returns.

`layers` leaves an `InputLayer` out; in the configuration, the first layer has its shape.
"""

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


def _changed_config(published: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def get_config(self: Any) -> dict[str, Any]:
        """What `from_config` makes an equal model of, as far as that goes: its layers' configurations."""
        config = published(self)
        entry = self._layers[0] if self._layers else None
        if isinstance(entry, own("engine.input_layer").InputLayer) and config["layers"]:
            config["layers"][0]["config"].setdefault("batch_input_shape", entry.batch_input_shape)
        return config

    return get_config


def extend(module: ModuleType) -> None:
    """Gives the class `Sequential` of `keras.engine.sequential` what TensorFlow's has."""
    model: Any = vars(module)["Sequential"]
    model.build = _changed_build(model.build)
    model.add = _changed_add(model.add)
    model.get_config = _changed_config(model.get_config)
