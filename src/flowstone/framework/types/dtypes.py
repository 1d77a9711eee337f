"""The element types of tensors.

Every type is one `DType` object, so types compare by identity. A type carries what the layers above ask
for, worked out once: its number in `types.proto`, its NumPy and torch types, and the predicates of
TensorFlow 1. Each type has a *reference* twin (number + 100, name + `_ref`): the type of an edge that hands
on a variable's buffer itself (White paper 2, "Variables").

    >>> as_dtype("float").name, as_dtype(np.int64) is int64, float32.as_ref.base_dtype is float32
    ('float32', True, True)
    >>> float32 == "float32", complex64.real_dtype, float16.torch
    (True, tf.float32, torch.float16)

Strings are arbitrary bytes, held in NumPy object arrays; they, resources and variants have no torch type.
bfloat16 enters and leaves NumPy as `ml_dtypes.bfloat16`. The quantised types are opaque to NumPy (one-field
structures, as in TensorFlow) and stored in torch as the integers behind them.

The tuples at the end (`NUMBERS`, `REAL`, ...) are the lists of allowed types that op declarations share.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import torch

_REF_OFFSET = 100
_float_info: Callable[[Any], Any] = ml_dtypes.finfo  # NumPy's, extended to bfloat16

# number in types.proto: (name, NumPy type or None, torch type or None)
_DESCRIPTIONS: dict[int, tuple[str, Any, torch.dtype | None]] = {
    1: ("float32", np.float32, torch.float32),
    2: ("float64", np.float64, torch.float64),
    3: ("int32", np.int32, torch.int32),
    4: ("uint8", np.uint8, torch.uint8),
    5: ("int16", np.int16, torch.int16),
    6: ("int8", np.int8, torch.int8),
    7: ("string", np.object_, None),
    8: ("complex64", np.complex64, torch.complex64),
    9: ("int64", np.int64, torch.int64),
    10: ("bool", np.bool_, torch.bool),
    11: ("qint8", np.dtype([("qint8", np.int8)]), torch.int8),
    12: ("quint8", np.dtype([("quint8", np.uint8)]), torch.uint8),
    13: ("qint32", np.dtype([("qint32", np.int32)]), torch.int32),
    14: ("bfloat16", ml_dtypes.bfloat16, torch.bfloat16),
    15: ("qint16", np.dtype([("qint16", np.int16)]), torch.int16),
    16: ("quint16", np.dtype([("quint16", np.uint16)]), torch.uint16),
    17: ("uint16", np.uint16, torch.uint16),
    18: ("complex128", np.complex128, torch.complex128),
    19: ("float16", np.float16, torch.float16),
    20: ("resource", None, None),
    21: ("variant", None, None),
    22: ("uint32", np.uint32, torch.uint32),
    23: ("uint64", np.uint64, torch.uint64),
}

_FLOATING = frozenset({"float16", "bfloat16", "float32", "float64"})
_COMPLEX_PARTS = {"complex64": "float32", "complex128": "float64"}
_INTEGER = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
_QUANTIZED = frozenset({"qint8", "quint8", "qint16", "quint16", "qint32"})

_BY_ENUM: dict[int, DType] = {}


class DType:
    """An element type; `DType(type_enum)` gives the one object of that number in `types.proto`.

    Attributes (fixed when the type is made):
        as_datatype_enum: the number in `types.proto`; 101 and more for reference types.
        name: TensorFlow's name, "float32" or "float32_ref".
        base_dtype: the type without the reference.
        as_ref: the reference type of this base type.
        real_dtype: the type of a complex type's parts; any other type itself.
        is_ref: whether this is a reference type.
        torch: the torch.dtype that stores it, or None.
        size: bytes an element takes; of strings, those of a pointer, and 1 of resources and variants.
        is_bool, is_complex, is_floating, is_integer, is_quantized, is_unsigned, is_numpy_compatible: of the
            base type. Quantised types are neither integer nor unsigned.

    Raises:
        TypeError: no type has this number.
        ValueError: the argument is a text that is no number.
    """

    __slots__ = (
        "_numpy",
        "as_datatype_enum",
        "as_ref",
        "base_dtype",
        "is_bool",
        "is_complex",
        "is_floating",
        "is_integer",
        "is_numpy_compatible",
        "is_quantized",
        "is_ref",
        "is_unsigned",
        "name",
        "real_dtype",
        "size",
        "torch",
    )

    _numpy: Any
    as_datatype_enum: int
    as_ref: DType
    base_dtype: DType
    is_bool: builtins.bool
    is_complex: builtins.bool
    is_floating: builtins.bool
    is_integer: builtins.bool
    is_numpy_compatible: builtins.bool
    is_quantized: builtins.bool
    is_ref: builtins.bool
    is_unsigned: builtins.bool
    name: str
    real_dtype: DType
    size: int
    torch: torch.dtype | None

    def __new__(cls, type_enum: int | DType) -> DType:
        number = int(type_enum)
        try:
            return _BY_ENUM[number]
        except KeyError:
            raise TypeError(f"{number} does not correspond to a valid DataType") from None

    def __init__(self, type_enum: int | DType) -> None:
        """Nothing is made: the type is the one that there is of this number."""

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy scalar type (a one-field structure dtype for quantised types, `np.object_` for string).

        Raises:
            KeyError: resource and variant have none.
        """
        if self._numpy is None:
            raise KeyError(f"{self.name} has no NumPy type")
        return self._numpy

    @property
    def _is_ref_dtype(self) -> builtins.bool:
        return self.is_ref

    @property
    def _as_ref(self) -> DType:
        return self.as_ref

    @property
    def min(self) -> Any:
        """The smallest value: an int, or a NumPy scalar of this floating type. TypeError if undefined."""
        return self._extreme("minimum", "min")

    @property
    def max(self) -> Any:
        """The largest value: an int, or a NumPy scalar of this floating type. TypeError if undefined."""
        return self._extreme("maximum", "max")

    def _extreme(self, noun: str, attribute: str) -> Any:
        if self.is_integer:
            return int(getattr(np.iinfo(self._numpy), attribute))
        if self.is_floating:
            return self._numpy(getattr(_float_info(self._numpy), attribute))
        raise TypeError(f"Cannot find {noun} value of {self}.")

    @property
    def limits(self) -> tuple[Any, Any]:
        """The range that an image of this type uses: (0, largest integer), (0, True) or (0, 1) for floats.

        Raises:
            ValueError: no range is defined for this type.
        """
        if self.is_integer:
            return 0, self.max
        if self.is_bool:
            return 0, True
        if self.base_dtype.name in ("float32", "float64"):
            return 0, 1
        raise ValueError(f"{self} does not have defined limits.")

    def is_compatible_with(self, other: Any) -> builtins.bool:
        """Whether a tensor of type `other` may be given where this type is asked: a base type takes its
        reference, a reference type takes itself only. TypeError if `other` is no type.
        """
        other = as_dtype(other)
        return self is other or self is other.base_dtype

    def __eq__(self, other: object) -> builtins.bool:
        if self is other:
            return True
        if other is None or type(other) is DType:
            return False
        try:
            return self is as_dtype(other)
        except TypeError:
            return False

    def __ne__(self, other: object) -> builtins.bool:
        return self is not other and not self == other

    def __hash__(self) -> int:
        return self.as_datatype_enum

    def __int__(self) -> int:
        return self.as_datatype_enum

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __reduce__(self) -> tuple[Callable[[Any], DType], tuple[str]]:
        return as_dtype, (self.name,)


def _make(number: int, name: str, numpy_type: Any, torch_type: torch.dtype | None) -> DType:
    dtype = object.__new__(DType)
    dtype.as_datatype_enum = number
    dtype.name = name
    dtype.is_ref = number > _REF_OFFSET
    dtype._numpy = numpy_type
    dtype.torch = torch_type
    base_name = name.removesuffix("_ref")
    dtype.is_bool = base_name == "bool"
    dtype.is_complex = base_name in _COMPLEX_PARTS
    dtype.is_floating = base_name in _FLOATING
    dtype.is_integer = base_name in _INTEGER
    dtype.is_unsigned = dtype.is_integer and base_name.startswith("u")
    dtype.is_quantized = base_name in _QUANTIZED
    dtype.is_numpy_compatible = numpy_type is not None
    dtype.size = 1 if numpy_type is None else np.dtype(numpy_type).itemsize
    return dtype


def _make_all() -> Iterator[DType]:
    """All base and reference types, linked with each other."""
    by_name: dict[str, DType] = {}
    for number, (name, numpy_type, torch_type) in _DESCRIPTIONS.items():
        base = _make(number, name, numpy_type, torch_type)
        ref = _make(number + _REF_OFFSET, f"{name}_ref", numpy_type, torch_type)
        by_name[name] = base
        base.base_dtype = ref.base_dtype = base
        base.as_ref = ref.as_ref = ref
        base.real_dtype, ref.real_dtype = base, ref
        yield base
        yield ref
    for name, part in _COMPLEX_PARTS.items():
        by_name[name].real_dtype = by_name[name].as_ref.real_dtype = by_name[part]


_BY_ENUM.update((dtype.as_datatype_enum, dtype) for dtype in _make_all())

float32 = DType(1)
float64 = DType(2)
int32 = DType(3)
uint8 = DType(4)
int16 = DType(5)
int8 = DType(6)
string = DType(7)
complex64 = DType(8)
int64 = DType(9)
bool = DType(10)
qint8 = DType(11)
quint8 = DType(12)
qint32 = DType(13)
bfloat16 = DType(14)
qint16 = DType(15)
quint16 = DType(16)
uint16 = DType(17)
complex128 = DType(18)
float16 = DType(19)
resource = DType(20)
variant = DType(21)
uint32 = DType(22)
uint64 = DType(23)
half = float16
double = float64

float32_ref = float32.as_ref
float64_ref = float64.as_ref
int32_ref = int32.as_ref
uint8_ref = uint8.as_ref
int16_ref = int16.as_ref
int8_ref = int8.as_ref
string_ref = string.as_ref
complex64_ref = complex64.as_ref
int64_ref = int64.as_ref
bool_ref = bool.as_ref
qint8_ref = qint8.as_ref
quint8_ref = quint8.as_ref
qint32_ref = qint32.as_ref
bfloat16_ref = bfloat16.as_ref
qint16_ref = qint16.as_ref
quint16_ref = quint16.as_ref
uint16_ref = uint16.as_ref
complex128_ref = complex128.as_ref
float16_ref = float16.as_ref
half_ref = float16_ref
resource_ref = resource.as_ref
variant_ref = variant.as_ref
uint32_ref = uint32.as_ref
uint64_ref = uint64.as_ref
double_ref = float64_ref

ALL_DTYPES: tuple[DType, ...] = tuple(dtype for dtype in _BY_ENUM.values() if not dtype.is_ref)
QUANTIZED_DTYPES: frozenset[DType] = frozenset(dtype for dtype in _BY_ENUM.values() if dtype.is_quantized)

# The lists of allowed types that many op declarations share.
NUMBERS = (
    float32, float64, int64, int32, uint8, uint16, int16, int8, complex64, complex128, qint8, quint8, qint32,
    float16, uint32, uint64,
)  # fmt: skip
REAL = (float32, float64, int32, int64, uint8, int16, int8, uint16, float16, uint32, uint64)
INTEGERS = (int8, int16, int32, int64, uint8, uint16, uint32, uint64)
INDICES = (int32, int64)
FLOATS = (float16, float32, float64)
FLOATS_WITH_BFLOAT16 = (bfloat16, float16, float32, float64)
COMPLEX = (complex64, complex128)
FLOATS_AND_COMPLEX = (float16, float32, float64, complex64, complex128)
QUANTIZED = (qint8, quint8, qint16, quint16, qint32)

_FROM_TORCH: dict[torch.dtype, DType] = {
    dtype.torch: dtype for dtype in ALL_DTYPES if dtype.torch is not None and not dtype.is_quantized
}

from_torch: Callable[[torch.dtype], DType] = _FROM_TORCH.__getitem__
"""The type that a torch.dtype stores (never a quantised one). KeyError where TensorFlow has no such type."""


_C_NAMES = {"float16": "half", "float32": "float", "float64": "double"}


def wire_name(dtype: DType) -> str:
    """What messages of TensorFlow's kernels call the type: its name, but `half`, `float` and `double`."""
    return _C_NAMES.get(dtype.name, dtype.name)


def _table_of_spellings() -> dict[Any, DType]:
    table: dict[Any, DType] = dict(_BY_ENUM)
    table.update((dtype.name, dtype) for dtype in _BY_ENUM.values())
    for dtype in (float16, float32, float64):
        alias = wire_name(dtype)
        table[alias] = dtype
        table[f"{alias}_ref"] = dtype.as_ref
    for dtype in ALL_DTYPES:
        if dtype.is_numpy_compatible:
            table[dtype.as_numpy_dtype] = dtype
            table[np.dtype(dtype.as_numpy_dtype)] = dtype
    table.update(_FROM_TORCH)
    table.update({builtins.float: float32, builtins.bool: bool, builtins.object: string})
    table.update({np.bytes_: string, np.str_: string})
    return table


_SPELLINGS = _table_of_spellings()


def as_dtype(type_value: Any) -> DType:
    """The type that `type_value` spells.

    Accepts a DType, its number in `types.proto`, its name ("float", "half", "double" and "..._ref" too), a
    NumPy dtype (any byte order) or scalar type, a torch.dtype, Python's `float` (float32), `bool` and
    `object` (string), or anything with such a `dtype`. Python's `int`, `str` and `complex` are errors, as in
    TensorFlow.

    Raises:
        TypeError: `type_value` spells no type.
    """
    if type(type_value) is DType:
        return type_value
    try:
        return _SPELLINGS[type_value]
    except (KeyError, TypeError):  # unknown, or cannot be hashed
        dtype = _from_numpy(type_value)
    if dtype is None:
        raise TypeError(f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType.")
    return dtype


def _from_numpy(value: Any) -> DType | None:
    """The type of a value, or of a NumPy type that the table lacks (other byte orders, lengths, C names)."""
    if isinstance(value, type):
        if not issubclass(value, np.generic):
            return None
        value = np.dtype(value)
    elif not isinstance(value, np.dtype):
        dtype = getattr(value, "dtype", None)
        return as_dtype(dtype) if isinstance(dtype, (DType, np.dtype, torch.dtype)) else None
    if value.kind in "SU":
        return string
    if value.kind not in "biufc":
        return None
    return _SPELLINGS.get(np.dtype(f"{value.kind}{value.itemsize}"))
