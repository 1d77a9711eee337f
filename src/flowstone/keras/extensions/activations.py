"""`tf.keras.activations`: objects that are called, besides functions, and their configurations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

__all__ = ["extend", "serialize"]


def serialize(activation: Any) -> Any:
    """The name of a function; of an object with a configuration its class and that.

    ValueError for another object.
    """
    name = getattr(activation, "__name__", None)
    if name is not None:
        return name
    if not hasattr(activation, "get_config"):
        raise ValueError("Cannot serialize", activation)
    return {"class_name": type(activation).__name__, "config": activation.get_config()}


def _changed_deserialize(published: Callable[..., Any]) -> Callable[..., Any]:
    def deserialize(name: Any, custom_objects: Any = None) -> Any:
        """The function of a name, or the object of a configuration; of a class's name an object of it."""
        found = published(name, custom_objects)
        return found() if inspect.isclass(found) else found

    return deserialize


def extend(module: ModuleType) -> None:
    """Puts the functions into `keras.activations`."""
    names = vars(module)
    deserialize = names["deserialize"] = _changed_deserialize(names["deserialize"])
    published = names["get"]

    def get(identifier: Any) -> Any:
        """The activation of a name, a configuration or a function; `linear` for None."""
        return deserialize(identifier) if isinstance(identifier, (str, Mapping)) else published(identifier)

    names["serialize"], names["get"] = serialize, get
