"""`tf.keras.layers.InputLayer` with the configuration that TensorFlow's has."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["extend"]


def _changed_init(published: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, *arguments: Any, **keywords: Any) -> None:
        """An entry to a model; see the package. `ragged` must be False."""
        if keywords.pop("ragged", False):
            raise ValueError("Graphs of TensorFlow 1 have no ragged tensors; an input is dense or sparse.")
        published(self, *arguments, **keywords)

    return __init__


def _changed_config(published: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def get_config(self: Any) -> dict[str, Any]:
        """What it is made of."""
        config = published(self)
        return {
            **{name: value for name, value in config.items() if name != "name"},
            "ragged": False,
            "name": self.name,
        }

    return get_config


def extend(module: ModuleType) -> None:
    """Gives the class `InputLayer` of `keras.engine.input_layer` what TensorFlow's has."""
    layer: Any = vars(module)["InputLayer"]
    layer.__init__ = _changed_init(layer.__init__)
    layer.input_shape = property(lambda self: [self.get_input_shape_at(0)])
    layer.output_shape = property(lambda self: [self.get_output_shape_at(0)])
    layer.get_config = _changed_config(layer.get_config)
