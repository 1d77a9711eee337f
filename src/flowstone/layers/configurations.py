"""What layers are made of, as dicts: `Layer.get_config` and `from_config`.

The configuration of a layer here is what its constructor takes, each argument as the layer keeps it, with
initialisers as their class and configuration and functions by their names:

    Dense(3).get_config()     {'name': 'dense_1', 'trainable': True, 'dtype': None, 'units': 3, …}

A class of a program whose constructor takes more than the base class has to override `get_config`.
"""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["Configured"]

_BASE = ("name", "trainable", "dtype")
_BASES = (
    "Layer",
    "RNNCell",
    "LayerRNNCell",
    "LayerOfUnits",
    "CellWrapper",
)  # of which programs derive classes
_LEFT_OUT = frozenset({"self", "kwargs", "args", *_BASE})
_ONLY_IF_SET = {"renorm": False, "virtual_batch_size": None}  # of batch normalisation
_NEVER = frozenset({"renorm_clipping", "renorm_momentum", "fused", "adjustment"})


class Configured:
    """The part of `Layer` that says what a layer is made of."""

    # What TensorFlow's configurations of a class have besides, because of the classes it is derived from.
    _FURTHER_CONFIG: dict[str, Any] = {}

    def get_config(self) -> dict[str, Any]:
        """The arguments that make a layer like this one; see the module.

        Raises NotImplementedError for a class of a program whose constructor takes further arguments.
        """
        config = {name: getattr(self, f"_{name}" if name == "dtype" else name, None) for name in _BASE}
        made = _class_of_ours(type(self))
        names = [] if made is None else [name for name in _parameters(made) if name not in _LEFT_OUT]
        is_default = type(self).get_config is Configured.get_config
        if made is None and is_default and set(_parameters(type(self))) - _LEFT_OUT:
            raise NotImplementedError("Layers with arguments in `__init__` must override `get_config`.")
        for name in names:
            value = getattr(self, name, getattr(self, f"_{name}", None))
            if name in _NEVER or (name in _ONLY_IF_SET and value == _ONLY_IF_SET[name]):
                continue
            config[name] = _serialized(value)
        config.update(self._FURTHER_CONFIG)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A layer of this configuration; ValueError for a function that its name alone does not say."""
        if _class_of_ours(cls) is cls:
            config = {name: value for name, value in config.items() if name not in cls._FURTHER_CONFIG}
        for name, value in config.items():
            if name.endswith(("_regularizer", "_constraint")) and isinstance(value, str):
                raise ValueError(f"The name {value!r} of the {name} does not say which function it is.")
        return cls(**config)


def _parameters(made: type) -> list[str]:
    return list(inspect.signature(made.__init__).parameters)  # type: ignore[misc]


def _class_of_ours(made: type) -> type | None:
    """The nearest class that is a layer of this library's own, not a base of layers."""
    for each in made.__mro__:
        if each.__module__.startswith("flowstone."):
            return None if each.__name__ in _BASES else each
    return None


def _serialized(value: Any) -> Any:
    """An initialiser as its class and configuration, a function as its name, others as they are."""
    if hasattr(value, "get_config"):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return value
