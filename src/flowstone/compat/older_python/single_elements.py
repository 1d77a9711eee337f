"""An array of one element as a number, whatever its rank: NumPy 2.4 takes only arrays without dimensions.

`float(session.run(loss))` of a loss of the shape [1], `"%f" % array`, `math.sqrt(array)` and
`row[0] = array` are in many programs of the years of TensorFlow 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.compat.older_python.number_slots import FLOAT, INT, change_type, is_known_layout

__all__ = ["install"]


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


def install() -> None:
    """Has `int`, `float` and `complex` take arrays of one element, if this NumPy refuses them.

    An array of more elements raises TypeError, as before.
    """
    try:
        float(np.ones(1))  # deprecated before NumPy 2.4
        return
    except TypeError:
        if not is_known_layout():
            return
    methods = {name: vars(_Number)[name] for name in ("__int__", "__float__", "__complex__")}
    change_type(np.ndarray, methods, [INT, FLOAT], _Number)
