"""What Keras computes with unless told otherwise: the float type, the small number, the order of axes.

floatx()              'float32'          set_floatx('float16')
epsilon()             1e-07              set_epsilon(1e-05)
image_data_format()   'channels_last'    set_image_data_format('channels_first')
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "cast_to_floatx",
    "epsilon",
    "floatx",
    "image_data_format",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
]

_FLOATS = ("float16", "float32", "float64")
_FORMATS = ("channels_last", "channels_first")

_settings: dict[str, Any] = {"floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last"}


def floatx() -> str:
    """The name of the float type of new variables and placeholders."""
    text: str = _settings["floatx"]
    return text


def set_floatx(value: str) -> None:
    """Sets the float type: 'float16', 'float32' or 'float64'; ValueError for another."""
    if value not in _FLOATS:
        raise ValueError(f"Unknown floatx type: {value}")
    _settings["floatx"] = str(value)


def epsilon() -> float:
    """The number that keeps divisors and arguments of logarithms from 0."""
    value: float = _settings["epsilon"]
    return value


def set_epsilon(value: float) -> None:
    """Sets the number that `epsilon` returns."""
    _settings["epsilon"] = value


def image_data_format() -> str:
    """Where images have their channels: 'channels_last' or 'channels_first'."""
    text: str = _settings["image_data_format"]
    return text


def set_image_data_format(data_format: str) -> None:
    """Sets where images have their channels; ValueError for a name that is neither."""
    if data_format not in _FORMATS:
        raise ValueError(f"Unknown data_format: {data_format}")
    _settings["image_data_format"] = str(data_format)


def cast_to_floatx(x: Any) -> Any:
    """`x`, a value for NumPy, as an array of the float type."""
    return np.asarray(x, dtype=floatx())
