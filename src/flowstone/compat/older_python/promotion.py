"""Types of results as NumPy 1 chose them, where a scalar meets an array or a number of Python.

    float32_array * np.sqrt(2.0)     float32: a scalar of the array's kind takes the array's type, if it fits
    np.float32(0.5) + 1.0            float64: beside a scalar, a number of Python is one of 64 bits
    uint8_array + 300                uint16, where NumPy 2 raises OverflowError

NumPy 2 gives float64, float32 and an error (NEP 50), so that a variable's initial value has another type,
sums of losses lose digits, and counts overflow. Operators of arrays and scalars are changed, functions like
`np.add` are not. An operator costs 0.2 to 0.4 microseconds more, one of an array and a scalar 1.2.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.compat.older_python.number_slots import change_type, is_known_layout

__all__ = ["install"]

Operator = Callable[[Any, Any], Any]

# The operators: of any values, NumPy's function, and the places in CPython's structure of number methods of
# the plain one and of the one in place.
_OPERATORS: dict[str, tuple[Operator, Any, int, int]] = {
    "add": (operator.add, np.add, 0, 152),
    "sub": (operator.sub, np.subtract, 8, 160),
    "mul": (operator.mul, np.multiply, 16, 168),
    "mod": (operator.mod, np.remainder, 24, 176),
    "pow": (operator.pow, np.power, 40, 184),
    "lshift": (operator.lshift, np.left_shift, 88, 192),
    "rshift": (operator.rshift, np.right_shift, 96, 200),
    "and": (operator.and_, np.bitwise_and, 104, 208),
    "xor": (operator.xor, np.bitwise_xor, 112, 216),
    "or": (operator.or_, np.bitwise_or, 120, 224),
    "floordiv": (operator.floordiv, np.floor_divide, 232, 248),
    "truediv": (operator.truediv, np.true_divide, 240, 256),
}
_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
_SIGNED, _UNSIGNED = ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
_LIMITS = {np.dtype(name): (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in _SIGNED + _UNSIGNED}
# The integers that a type of floats takes without becoming a larger one.
_LIMITS |= {np.dtype("float16"): (-128, 255)}
_LIMITS |= {np.dtype(name): (-(2**15), 2**16 - 1) for name in ("float32", "complex64")}
_LONG = _LIMITS[np.dtype("int64")]
_LARGEST_HALF = 65504.0
_PRIORITY = -1000000.0  # `__array_priority__` of scalars


def _beside_array(value: Any, dtype: Any) -> Any:
    """The scalar `value` as what NumPy 2 takes beside an array of `dtype` as NumPy 1 took `value`."""
    rank, of_array = _RANK.get(value.dtype.kind, 0), _RANK.get(dtype.kind, 0)
    if rank == 0 or rank > of_array:
        return value
    if rank == 1:
        return _integer_beside(int(value), dtype)
    return _float_beside(value.item(), dtype)


def _integer_beside(number: int, dtype: Any) -> Any:
    """An integer beside an array: without a type if it fits, else of the smallest type that it fits."""
    limits = _LIMITS.get(dtype)
    if limits is None or limits[0] <= number <= limits[1] or not _LONG[0] <= number < 2**64:
        return number
    kind: Any = np.min_scalar_type(number)
    if dtype.kind == "i" and number <= _LONG[1]:
        kind = next(np.dtype(n) for n in _SIGNED if _LIMITS[np.dtype(n)][1] >= number)
    return kind.type(number)


def _float_beside(number: Any, dtype: Any) -> Any:
    """A float beside an array: without a type, unless it is too large for the array's."""
    if dtype.kind in "fc" and _LARGEST_HALF < abs(number) < np.inf:
        kind = np.min_scalar_type(number)
        if np.promote_types(kind, dtype) != dtype:
            return kind.type(number)
    return number


def _with_type(value: Any) -> Any:
    """A number of Python as the scalar that NumPy 1 took it for beside a scalar; others as they are."""
    kind = type(value)
    if kind is float:
        return np.float64(value)
    if kind is int and _LONG[0] <= value <= _LONG[1]:
        return np.int64(value)
    return np.complex128(value) if kind is complex else value


def _of_array(original: Operator, apply: Operator, is_reflected: bool) -> Operator:
    """The operator of arrays; `apply` is the operator of any values."""

    def method(self: Any, other: Any) -> Any:
        kind = type(other)
        if kind is np.ndarray:
            if self.ndim and other.ndim:
                return original(self, other)
            if self.ndim:
                other = _beside_array(other[()], self.dtype)
            elif other.ndim:
                value = _beside_array(self[()], other.dtype)
                return apply(other, value) if is_reflected else apply(value, other)
        elif not self.ndim:
            other = _with_type(other)
        elif kind is int:
            other = _integer_beside(other, self.dtype)
        elif kind is float:
            other = _float_beside(other, self.dtype)
        elif isinstance(other, np.number):
            other = _beside_array(other, self.dtype)
        return original(self, other)

    return method


def _in_place(original: Operator) -> Operator:
    """The operator that changes an array."""

    def method(self: Any, other: Any) -> Any:
        kind = type(other)
        if kind is int:
            other = _integer_beside(other, self.dtype)
        elif isinstance(other, np.number):
            other = _beside_array(other, self.dtype)
        elif kind is np.ndarray and self.ndim and not other.ndim:
            other = _beside_array(other[()], self.dtype)
        return original(self, other)

    return method


def _of_scalar(kind: Any, key: str, function: Any, apply: Operator) -> Operator:
    """The operator of scalars of the type `kind` that is its method `key`."""
    original, is_reflected = getattr(kind, key), key.startswith("__r") and key != "__rshift__"
    wider = {of_other: (wide, getattr(wide, key)) for of_other, wide in _wider(kind, key)}
    in_c = {of_other for of_other, (wide, _) in wider.items() if wide is kind}
    in_c |= {kind} if kind in _COMPUTED else set()
    repeats = apply is operator.mul and issubclass(kind, np.integer)

    def method(self: Any, other: Any) -> Any:
        of_other = type(other)
        if of_other in in_c:
            return original(self, other)
        if of_other in wider:
            wide, operate = wider[of_other]
            return operate(wide(self), other)
        if of_other is np.ndarray and other.ndim:
            self = _beside_array(self, other.dtype)
        elif not isinstance(other, (np.generic, np.ndarray, float, int, complex)) and (
            _defers(other) or (repeats and isinstance(other, (list, tuple, str, bytes)))
        ):
            return NotImplemented
        other = _with_type(other)
        return function(other, self) if is_reflected else function(self, other)

    return method


def _wider(kind: Any, key: str) -> list[tuple[type, Any]]:
    """For numbers of Python, the type that scalars of `kind` take beside them, as far as C computes in it."""
    if not issubclass(kind, (np.integer, np.floating)) or np.dtype(kind).itemsize > 8:
        return []
    of_int = np.int64 if issubclass(kind, np.integer) and kind is not np.uint64 else np.float64
    return [(of, wide) for of, wide in ((float, np.float64), (int, of_int)) if hasattr(wide, key)]


_COMPUTED = (
    *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
    *(np.dtype(name).type for name in _SIGNED + _UNSIGNED),
)
"""The types whose operators of two scalars do not go through those of arrays."""


def _defers(other: Any) -> bool:
    """Whether a scalar leaves the operator to `other`, which is none of NumPy's and no number."""
    if hasattr(type(other), "__array_ufunc__"):
        return type(other).__array_ufunc__ is None
    return bool(getattr(other, "__array_priority__", _PRIORITY) > _PRIORITY)


def _scalar_types() -> list[Any]:
    """The types of scalars whose operators are NumPy's."""
    found, open_types = [], [np.generic]
    while open_types:
        kind: Any = open_types.pop()
        below = [each for each in kind.__subclasses__() if each.__module__ == "numpy"]
        open_types += below
        if not below and not issubclass(kind, (str, bytes)):
            found.append(kind)
    return found


def install() -> None:
    """Changes the operators, if this NumPy has the rules of NumPy 2."""
    is_new = (np.float32(0.5) + 1.0).dtype == np.float32
    if not is_new or not is_known_layout():
        return
    names = [f"__{prefix}{name}__" for name in _OPERATORS for prefix in ("", "r", "i")]
    template = type("Template", (), dict.fromkeys(names, lambda self, other: NotImplemented))
    made = [(kind, _methods(kind)) for kind in (np.ndarray, *_scalar_types())]
    for kind, methods in made:
        places = {
            place
            for name, (_, _, plain, in_place) in _OPERATORS.items()
            for key, place in ((f"__{name}__", plain), (f"__i{name}__", in_place))
            if key in methods
        }
        change_type(kind, methods, places, template)


def _methods(kind: Any) -> dict[str, Operator]:
    """The new operators of a type."""
    methods: dict[str, Operator] = {}
    for name, (apply, function, _, _) in _OPERATORS.items():
        for key, is_reflected in ((f"__{name}__", False), (f"__r{name}__", True)):
            if not hasattr(kind, key):
                continue
            if kind is np.ndarray:
                methods[key] = _of_array(getattr(kind, key), apply, is_reflected)
            else:
                methods[key] = _of_scalar(kind, key, function, apply)
        if kind is np.ndarray:
            methods[f"__i{name}__"] = _in_place(getattr(kind, f"__i{name}__"))
    return methods
