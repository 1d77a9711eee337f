"""An array of one element as a number, whatever its rank: NumPy 2.4 takes only arrays without dimensions.

`float(session.run(loss))` of a loss of the shape [1], `"%f" % array`, `math.sqrt(array)` and
`row[0] = array` are in many programs of the years of TensorFlow 1.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np

__all__ = ["install"]

# Places in CPython's structures: the number methods of a type, and two of these.
_NUMBER_METHODS, _INT, _FLOAT = 96, 128, 144


def _element(array: Any) -> Any:
    if array.size != 1:
        raise TypeError("only size-1 arrays can be converted to Python scalars")
    return array.item()


class _Number:
    """Any class with these methods: its slots call what the type's dictionary has by their names."""

    def __int__(self) -> int:
        return int(_element(self))

    def __float__(self) -> float:
        return float(_element(self))

    def __complex__(self) -> complex:
        return complex(_element(self))


class _OnlyFloat:
    def __float__(self) -> float:
        return 0.0


def _slot(kind: type, place: int) -> ctypes.c_void_p:
    methods = ctypes.c_void_p.from_address(id(kind) + _NUMBER_METHODS).value
    return ctypes.c_void_p.from_address((methods or 0) + place)


def _is_known_layout() -> bool:
    """Whether the slots lie where they are expected: `_OnlyFloat` has one of the two, `_Number` both."""
    wanted = _slot(_Number, _FLOAT).value
    return (
        wanted is not None
        and _slot(_Number, _INT).value is not None
        and _slot(_OnlyFloat, _FLOAT).value == wanted
        and _slot(_OnlyFloat, _INT).value is None
    )


def install() -> None:
    """Has `int`, `float` and `complex` take arrays of one element, if this NumPy refuses them.

    An array of more elements raises TypeError, as before.
    """
    try:
        float(np.ones(1))  # deprecated before NumPy 2.4
        return
    except TypeError:
        if not _is_known_layout():
            return
    (names,) = (each for each in gc.get_referents(np.ndarray.__dict__) if isinstance(each, dict))
    for name in ("__int__", "__float__", "__complex__"):
        names[name] = vars(_Number)[name]
    for place in (_INT, _FLOAT):
        _slot(np.ndarray, place).value = _slot(_Number, place).value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(np.ndarray))
