"""Classes of `tf.compat.v2.keras.layers` whose arguments mean something else where a program says nothing.

They derive from those of `tf.keras.layers`, as in TensorFlow 1.15. `BatchNormalization` is the same as there:
one that does not train has the moments of its batches in training.
"""

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any

from flowstone.keras.extensions.recurrent_layers import set_defaults
from flowstone.keras.published import own

__all__: list[str] = []

_RECURRENT = {"recurrent_activation": "sigmoid", "implementation": 2}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "DenseFeatures": {},
    "GRU": {**_RECURRENT, "reset_after": True},
    "GRUCell": {**_RECURRENT, "reset_after": True},
    "LSTM": _RECURRENT,
    "LSTMCell": _RECURRENT,
}


@cache
def _derived(name: str) -> Any:
    base = getattr(own("layers"), name)
    init = base.__init__
    copied = FunctionType(init.__code__, init.__globals__, init.__name__, init.__defaults__, init.__closure__)
    set_defaults(copied, _DEFAULTS[name])
    members = {"__init__": copied, "__doc__": base.__doc__, "__module__": base.__module__}
    return type(base)(name, (base,), members)


def __getattr__(name: str) -> Any:
    if name not in _DEFAULTS:
        raise AttributeError(f"flowstone does not have the name tf.compat.v2.keras.layers.{name}")
    return _derived(name)


def __dir__() -> list[str]:
    return sorted(_DEFAULTS)
