"""Operators of NumPy's types, which are types of C's, given as functions of Python.

CPython calls an operator of a type of C's by the slots in the type's structure of number methods.
`change_type` puts functions into the type's dictionary, and gives it the slots of a class of Python, which
look there.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["FLOAT", "INT", "change_type", "is_known_layout"]

# Places in CPython's structures: the number methods of a type, and two of these.
_NUMBER_METHODS, INT, FLOAT = 96, 128, 144


class _Both:
    def __int__(self) -> int:
        return 0

    def __float__(self) -> float:
        return 0.0


class _OnlyFloat:
    def __float__(self) -> float:
        return 0.0


def _slot(kind: type, place: int) -> ctypes.c_void_p:
    methods = ctypes.c_void_p.from_address(id(kind) + _NUMBER_METHODS).value
    return ctypes.c_void_p.from_address((methods or 0) + place)


def is_known_layout() -> bool:
    """Whether the slots lie where they are expected: `_OnlyFloat` has one of the two, `_Both` both."""
    wanted = _slot(_Both, FLOAT).value
    return (
        wanted is not None
        and _slot(_Both, INT).value is not None
        and _slot(_OnlyFloat, FLOAT).value == wanted
        and _slot(_OnlyFloat, INT).value is None
    )


def change_type(kind: type, methods: Mapping[str, Any], places: Iterable[int], template: type) -> None:
    """Gives `kind` these methods, and at these places the slots of `template`, a class with such methods.

    Only where `is_known_layout()`.
    """
    (names,) = (each for each in gc.get_referents(kind.__dict__) if isinstance(each, dict))
    names.update(methods)
    for place in places:
        _slot(kind, place).value = _slot(template, place).value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
