"""`Dimension`: one entry of a `TensorShape`, an int or unknown, with TensorFlow 1's arithmetic.

A comparison with an unknown Dimension is None, neither true nor false.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

__all__: list[str] = []


def as_size(value: Any) -> int | None:
    """A dimension's size from an int, None, a Dimension, a whole float or anything with `__index__`."""
    if value is None or (type(value) is int and value >= 0):
        return value
    if isinstance(value, Dimension):
        return value._value
    try:
        size = int(operator.index(value))
    except TypeError:
        if isinstance(value, (float, np.floating)):
            return as_size(_whole(float(value)))
        if isinstance(value, (str, bytes)):
            return as_size(int(value))
        raise TypeError(
            "Dimension value must be integer or None or have an __index__ method, "
            f"got value '{value!r}' with type '{type(value)!r}'"
        ) from None
    if size < 0:
        raise ValueError(f"Dimension {size} must be >= 0")
    return size


def _whole(value: float) -> int:
    """A size that division has made a float, as TensorFlow 1 takes it."""
    if not value.is_integer():
        raise ValueError(f"Ambiguous dimension: {value}")
    return int(value)


def _arithmetic(function: Callable[[int, int], int]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The operator method of `function` on two sizes, and its reflected twin."""

    def compute(self: Dimension, other: Any) -> Any:
        try:
            x, y = self._value, as_size(other)
        except (TypeError, ValueError):
            return NotImplemented  # a Tensor or a list may know the answer
        return Dimension(None if x is None or y is None else function(x, y))

    def compute_reflected(self: Dimension, other: Any) -> Any:
        try:
            x, y = as_size(other), self._value
        except (TypeError, ValueError):
            return NotImplemented
        return Dimension(None if x is None or y is None else function(x, y))

    return compute, compute_reflected


def _comparison(function: Callable[[int, int], bool]) -> Callable[..., Any]:
    """The comparison method of `function` on two sizes: None if either is unknown."""

    def compare(self: Dimension, other: Any) -> bool | None:
        x, y = self._value, as_size(other)
        return None if x is None or y is None else function(x, y)

    return compare


def _equality(function: Callable[[int, int], bool]) -> Callable[..., Any]:
    """As `_comparison`, but anything may be asked whether it equals a size."""
    compare = _comparison(function)

    def compare_any(self: Dimension, other: object) -> Any:
        try:
            return compare(self, other)
        except (TypeError, ValueError):
            return NotImplemented

    return compare_any


class Dimension:
    """The size of one dimension, possibly unknown.

    Arithmetic with an unknown size gives an unknown size; a comparison with one gives None.

    Args:
        value: an int of at least 0, None, a Dimension, a whole float, or anything with `__index__`.

    Raises:
        TypeError: `value` is none of these.
        ValueError: `value` is negative, a float that is not whole, or text that is no integer.
    """

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self._value = as_size(value)

    @property
    def value(self) -> int | None:
        """The size, or None."""
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both may be the same size."""
        size = as_size(other)
        return self._value is None or size is None or self._value == size

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless both may be the same size."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {as_dimension(other)} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """What both know together. ValueError if they contradict each other."""
        self.assert_is_compatible_with(other)
        return Dimension(other if self._value is None else self._value)

    __add__, __radd__ = _arithmetic(operator.add)
    __sub__, __rsub__ = _arithmetic(operator.sub)
    __mul__, __rmul__ = _arithmetic(operator.mul)
    __floordiv__, __rfloordiv__ = _arithmetic(operator.floordiv)
    __mod__, __rmod__ = _arithmetic(operator.mod)
    __div__ = __floordiv__

    def __truediv__(self, other: Any) -> NoReturn:
        self._refuse_division(self, other)

    def __rtruediv__(self, other: Any) -> NoReturn:
        self._refuse_division(other, self)

    @staticmethod
    def _refuse_division(left: Any, right: Any) -> NoReturn:
        kinds = f"'{type(left).__name__}' and '{type(right).__name__}'"
        raise TypeError(f"unsupported operand type(s) for /: {kinds}, please use // instead")

    __eq__ = _equality(operator.eq)
    __ne__ = _equality(operator.ne)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __int__(self) -> int:
        return self.__index__()

    def __index__(self) -> int:
        if self._value is None:
            raise TypeError("An unknown Dimension has no integer value")
        return self._value

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"

    def __reduce__(self) -> tuple[type[Dimension], tuple[int | None]]:
        return Dimension, (self._value,)


def as_dimension(value: Any) -> Dimension:
    """`value` itself if it is a Dimension, otherwise `Dimension(value)`."""
    return value if isinstance(value, Dimension) else Dimension(value)


def dimension_value(dimension: Any) -> Any:
    """The int or None inside a Dimension; anything else as it is."""
    return dimension.value if isinstance(dimension, Dimension) else dimension
