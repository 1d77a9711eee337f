"""Attributes of operations: their kinds, allowed values, defaults and canonical form.

An attribute is declared as text, in the notation of the op facts::

    T: type in [float, double] = float ; strides: list(int) >= 4 ; padding: string in ['SAME', 'VALID']

The value of an attribute, wherever it is stored in a graph or a plan, has one canonical Python form:

========  ==============================================================================
kind      canonical form
========  ==============================================================================
type      `DType`
int       `int`
float     `float`
bool      `bool`
string    `str` where the bytes are UTF-8, else `bytes`
shape     tuple of `int` or None (unknown dimension), or None (unknown rank)
tensor    `numpy.ndarray` (strings: object array of `bytes`), or a torch tensor made by folding
func      `str`, the function's name
list(k)   tuple of the canonical forms of k
========  ==============================================================================

>>> spec, = parse_attributes("padding: string in ['SAME', 'VALID'] = 'SAME'")
>>> spec.canonical(b"VALID"), spec.default
('VALID', 'SAME')
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape, as_shape

REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()

_SPEC = re.compile(
    r"(?P<name>\w+):\s*(?P<list>list\()?(?P<kind>type|int|float|bool|string|shape|tensor|func)\)?"
    r"(?:\s+in\s+\[(?P<allowed>[^\]]*)\])?(?:\s*>=\s*(?P<minimum>-?\d+))?(?:\s*=\s*(?P<default>.+?))?\s*$"
)


def _as_int(value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        if hasattr(value, "value") and hasattr(value, "__int__"):  # a Dimension
            return int(value)
        raise TypeError(f"expected int, not {type(value).__name__}")
    return int(value.__index__())


def _as_float(value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"expected float, not {type(value).__name__}")
    return float(value)


def _as_bool(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"expected bool, not {type(value).__name__}")
    return bool(value)


def as_text(value: Any) -> str | bytes:
    """A string attribute's canonical form: `str` where the bytes are UTF-8, else the bytes."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return bytes(value)
    raise TypeError(f"expected string, not {type(value).__name__}")


def _as_dims(value: Any) -> tuple[int | None, ...] | None:
    if type(value) is tuple or value is None:
        return value
    return as_shape(value).dims_tuple


def _as_tensor(value: Any) -> Any:
    return value


def _as_function_name(value: Any) -> str:
    return value if isinstance(value, str) else value.name


_CANONICAL: dict[str, Callable[[Any], Any]] = {
    "type": lambda value: dtypes.as_dtype(value).base_dtype,
    "int": _as_int,
    "float": _as_float,
    "bool": _as_bool,
    "string": as_text,
    "shape": _as_dims,
    "tensor": _as_tensor,
    "func": _as_function_name,
}


class AttributeSpec:
    """One declared attribute.

    Fields: `name`; `kind` (see the module); `is_list`; `allowed` (frozenset or None); `minimum` (of the
    value, or of a list's length; None); `default` (canonical, or REQUIRED).
    """

    __slots__ = ("_convert", "allowed", "default", "is_list", "kind", "minimum", "name")

    def __init__(
        self,
        name: str,
        kind: str,
        is_list: bool = False,
        allowed: frozenset[Any] | None = None,
        minimum: int | None = None,
        default: Any = REQUIRED,
    ) -> None:
        self.name, self.kind, self.is_list = name, kind, is_list
        self.allowed, self.minimum = allowed, minimum
        self._convert = _CANONICAL[kind]
        self.default = default

    def __repr__(self) -> str:
        return f"AttributeSpec({self.name}: {'list(' + self.kind + ')' if self.is_list else self.kind})"

    def canonical(self, value: Any, op_name: str = "") -> Any:
        """`value` in canonical form. Raises TypeError for a wrong kind, ValueError for a value not
        allowed.
        """
        try:
            if self.is_list:
                if not isinstance(value, (list, tuple, np.ndarray, TensorShape)):
                    value = (value,)
                converted: Any = tuple([self._convert(item) for item in value])
            else:
                converted = self._convert(value)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Attribute '{self.name}' of op '{op_name}' cannot be {value!r}: {error}"
            ) from None
        self._check(converted, op_name)
        return converted

    def _check(self, value: Any, op_name: str) -> None:
        if self.allowed is not None:
            for item in value if self.is_list else (value,):
                if item not in self.allowed:
                    raise self._not_allowed(item, op_name)
        if self.minimum is not None:
            size = len(value) if self.is_list else value
            if size < self.minimum:
                what = "length " if self.is_list else ""
                raise ValueError(
                    f"Attribute '{self.name}' of op '{op_name}' must have {what}at least minimum "
                    f"{self.minimum}, but it is {size}"
                )

    def _not_allowed(self, item: Any, op_name: str) -> Exception:
        if self.kind == "type":
            names = ", ".join(sorted(dtype.name for dtype in self.allowed or ()))
            return TypeError(
                f"Value passed to parameter '{self.name}' of op '{op_name}' has DataType {item.name} "
                f"not in list of allowed values: {names}"
            )
        names = ", ".join(repr(text) for text in sorted(self.allowed or ()))
        return ValueError(f"Attribute '{self.name}' of op '{op_name}' passed {item!r} not in: {names}")


def _parse_literal(text: str, kind: str) -> Any:
    if kind == "type":
        return dtypes.as_dtype(text)
    if kind == "shape":
        return None if text == "?" else tuple(None if n in ("?", "-1") else int(n) for n in _items(text))
    if kind == "bool":
        return text == "true"
    if kind == "float":
        return float(text)
    if kind == "int":
        return int(text)
    if kind == "tensor":
        dtype, _, values = text.partition(" ")
        return np.array(ast.literal_eval(values), dtypes.as_dtype(dtype).as_numpy_dtype)
    if text[:1] in "'\"":
        return ast.literal_eval(text)
    raise ValueError(f"cannot read {text!r} as a {kind}")


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.strip("[]").split(",") if item.strip()]


_TYPE_LISTS: dict[str, frozenset[Any]] = {}


def parse_attribute(text: str) -> AttributeSpec:
    """Reads one declaration in the facts' notation; raises ValueError if it is malformed."""
    match = _SPEC.match(text.strip())
    if match is None:
        raise ValueError(f"malformed attribute declaration {text!r}")
    kind, is_list = match["kind"], match["list"] is not None
    allowed = None
    if match["allowed"] is not None:
        key = kind + match["allowed"]
        if key not in _TYPE_LISTS:
            _TYPE_LISTS[key] = frozenset(_parse_literal(item, kind) for item in _items(match["allowed"]))
        allowed = _TYPE_LISTS[key]
    default = REQUIRED
    if match["default"] is not None:
        words = match["default"]
        default = (
            tuple(_parse_literal(word, kind) for word in _items(words))
            if is_list
            else _parse_literal(words, kind)
        )
    minimum = None if match["minimum"] is None else int(match["minimum"])
    return AttributeSpec(match["name"], kind, is_list, allowed, minimum, default)


def parse_attributes(text: str) -> list[AttributeSpec]:
    """Reads declarations separated by semicolons."""
    return [parse_attribute(part) for part in text.split(";") if part.strip()]


def type_attribute(name: str, allowed: tuple[DType, ...] | None, default: Any = REQUIRED) -> AttributeSpec:
    """A type attribute as a keyword of a declaration gives it: ``T=REAL``."""
    return AttributeSpec(
        name, "type", allowed=None if allowed is None else frozenset(allowed), default=default
    )
