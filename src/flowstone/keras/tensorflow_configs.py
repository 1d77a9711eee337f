"""Models that `tf.keras` of TensorFlow 1 saved: their configurations, read as the package's.

`readers()` are objects for `custom_objects`. Each reads the configuration of a class, and leaves out what
only TensorFlow's class has, provided that it has its default value; otherwise that raises ValueError.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["readers"]

# Keys that only TensorFlow's classes have, and the values that change nothing.
_LAYER_KEYS: dict[str, tuple[Any, ...]] = {"ragged": (False,), "time_major": (False,)}
_INITIALIZER_KEYS: dict[str, tuple[Any, ...]] = {"dtype": ("float32", None)}
_OPTIMIZER_KEYS: dict[str, tuple[Any, ...]] = {"centered": (False,), "momentum": (0.0,)}
_ANY_NAME = frozenset({"name"})

_GLOROT = {"scale": 1.0, "mode": "fan_avg"}


class _Reader:
    """Has `from_config`, as a class has: what Keras makes an object of a configuration with."""

    def __init__(
        self,
        name: str,
        make: Callable[[dict[str, Any], Any], Any],
        keys: Mapping[str, tuple[Any, ...]],
        dropped: frozenset[str] = frozenset(),
    ) -> None:
        self.__name__ = name
        self._make, self._keys, self._dropped = make, keys, dropped

    def from_config(self, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """The object of this configuration."""
        kept = {}
        for key, value in config.items():
            if key in self._keys and value not in self._keys[key]:
                raise ValueError(
                    f"{self.__name__} cannot have {key}={value!r} here, as it has in TensorFlow."
                )
            if key not in self._keys and key not in self._dropped:
                kept[key] = value
        return self._make(kept, custom_objects)


def _maker(made: Any) -> Callable[[dict[str, Any], Any], Any]:
    """How an object of a class of the package is made of its configuration."""

    def make(config: dict[str, Any], custom_objects: Any) -> Any:
        axis = config.get("axis")
        if isinstance(axis, list) and len(axis) == 1:  # of a BatchNormalization
            config["axis"] = axis[0]
        scope = import_module("keras.utils").CustomObjectScope
        with scope(custom_objects or {}):
            return made.from_config(config)

    return make


def _optimizer_maker(made: Any) -> Callable[[dict[str, Any], Any], Any]:
    """How an optimiser is made, whose rate Keras 2.2 calls lr."""
    make, names = _maker(made), inspect.signature(made).parameters

    def make_optimizer(config: dict[str, Any], custom_objects: Any) -> Any:
        if "learning_rate" in config and "learning_rate" not in names:
            config["lr"] = config.pop("learning_rate")
        return make(config, custom_objects)

    return make_optimizer


def _classes(module: str) -> dict[str, type]:
    return {name: value for name, value in vars(import_module(module)).items() if isinstance(value, type)}


def readers() -> dict[str, Any]:
    """What reads the configuration of each class, by the class's name in a model that TensorFlow saved."""
    found: dict[str, Any] = {}
    layer = import_module("keras.layers").Layer
    for name, made in _classes("keras.layers").items():
        if issubclass(made, layer):
            found[name] = _Reader(name, _maker(made), _LAYER_KEYS)
    for version in ("BatchNormalizationV1", "BatchNormalizationV2"):
        found[version] = found["BatchNormalization"]
    initializers = import_module("keras.initializers")
    for name, made in _classes("keras.initializers").items():
        if issubclass(made, initializers.Initializer):
            found[name] = _Reader(name, _maker(made), _INITIALIZER_KEYS)
    for name, distribution in (("GlorotUniform", "uniform"), ("GlorotNormal", "normal")):
        found[name] = _Reader(name, _glorot(initializers.VarianceScaling, distribution), _INITIALIZER_KEYS)
    optimizers = import_module("keras.optimizers")
    for name in ("SGD", "RMSprop", "Adagrad", "Adadelta", "Adam", "Adamax", "Nadam"):
        made = getattr(optimizers, name)
        keys = {key: value for key, value in _OPTIMIZER_KEYS.items() if name == "RMSprop"}
        found[name.lower()] = _Reader(name, _optimizer_maker(made), keys, _ANY_NAME)
    return found


def _glorot(made: Any, distribution: str) -> Callable[[dict[str, Any], Any], Any]:
    return lambda config, _: made(distribution=distribution, seed=config.get("seed"), **_GLOROT)
