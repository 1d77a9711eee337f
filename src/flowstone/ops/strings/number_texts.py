"""Numbers as text, and text as numbers, by the rules of C: ``printf`` and ``strtod``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine.string_code import TextNumbers, Texts, text_numbers
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.values import to_numpy
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import (
    Strings,
    as_array,
    attribute_bytes,
    flat,
    same_shape,
)
from flowstone.ops.strings.packed import BLOCK, MANY, WORD, Packed

__all__ = ["as_string", "string_to_number"]

_FEW = 1000  # numbers that are formatted one after the other
_FOUR_DIGITS = np.uint64(10_000)

# ---- numbers as text

as_string_op = op(
    "AsString",
    "input: T -> output: string",
    "precision: int = -1 ; scientific: bool = false ; shortest: bool = false ; width: int = -1 ; "
    "fill: string = ''",
    T=(
        *(dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64),
        *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
        *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
        *(dtypes.complex64, dtypes.complex128, dtypes.bool, dtypes.string),
    ),
    by_element=True,
)
as_string_op.infer(same_shape)
as_string_op.not_differentiable()


def _directive(node: Node) -> bytes:
    """What formats one number, with Python's ``%``, which is C's. InvalidArgumentError for wrong settings."""
    attributes, dtype = node.attributes, node.dtype(0)
    precision, width, fill = attributes["precision"], attributes["width"], attribute_bytes(node, "fill")
    scientific, shortest = attributes["scientific"], attributes["shortest"]
    has_point, is_text = dtype.is_floating or dtype.is_complex, dtype is dtypes.string
    if scientific and shortest:
        raise invalid("Cannot select both scientific and shortest notation")
    if (scientific or shortest) and not (has_point or is_text):
        raise invalid("scientific and shortest format not supported for datatype " + dtype.name)
    if precision >= 0 and not (has_point or is_text):
        raise invalid(f"precision not supported for datatype {dtype.name}")
    if len(fill) > 1:
        raise invalid("Fill string must be one or fewer characters")
    if fill and fill not in b" +-0#":
        raise invalid(f'Fill argument not supported: "{fill.decode("utf-8", "replace")}"')
    if is_text and width < 0:
        return b"%s"
    if (is_text and fill == b"0") or (dtype.is_unsigned and fill in b"+ "):
        fill = b""  # C ignores these there
    kind = b"e" if scientific else b"g" if shortest else b"f"
    if not has_point:
        kind = b"s" if is_text else b"d"
    size = b"%d" % width if width > -1 else b""
    return b"%" + fill + size + (b".%d" % precision if precision > -1 else b"") + kind


_PARTS = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
_FIXED = re.compile(rb"%(?:\.(\d+))?f")
_MOST_PLACES = 12  # 5 to this power has fewer bits than float64 has beside the 24 of narrower types
_LARGEST_SCALED = 2.0**52  # where float64 has all integers


@as_string_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[[Any], Strings]:
    dtype, directive = node.dtype(0), _directive(node)
    texts_of = _vectorized(dtype, directive)

    def format_all(values: Any) -> Strings:
        array = to_numpy(values, dtype)
        if texts_of is not None and array.size > _FEW:
            flat = array.reshape(-1)
            blocks = [texts_of(flat[i : i + BLOCK]) for i in range(0, len(flat), BLOCK)]
            texts: Strings = np.concatenate(blocks).reshape(array.shape)
            return texts
        items = array.reshape(-1).tolist()
        return as_array(_texts(items, dtype, directive), array.shape)

    return format_all


def _vectorized(dtype: DType, directive: bytes) -> Callable[[np.ndarray[Any, Any]], Strings] | None:
    """What formats many numbers at once as the directive says, where there is such."""
    if dtype.is_integer and directive == b"%d":
        return _integer_texts
    fixed = _FIXED.fullmatch(directive)
    real = _PARTS.get(dtype, dtype)
    if fixed is None or not real.is_floating:
        return None
    places = int(fixed[1] or 6)
    if places > _MOST_PLACES:
        return None
    if real is dtype:
        return lambda numbers: _fixed_texts(numbers, places, dtype, directive)
    return lambda numbers: _complex_texts(numbers, places, real, directive)


def _complex_texts(numbers: np.ndarray[Any, Any], places: int, part: DType, directive: bytes) -> Strings:
    """Complex numbers, whose parts are of this type, as `_fixed_texts`."""
    texts = _fixed_texts(numbers.view(part.as_numpy_dtype), places, part, directive)
    return as_array(_pairs(texts.tolist()), numbers.shape)


def _pairs(texts: list[bytes]) -> list[bytes]:
    """Complex numbers of the texts of their real and imaginary parts, which take turns."""
    return [b"(%s,%s)" % pair for pair in zip(texts[::2], texts[1::2])]


def _integer_texts(numbers: np.ndarray[Any, Any]) -> Strings:
    """Integers in decimal notation: four digits at a time from a table, without the zeros in front."""
    wide = numbers.astype(np.int64) if numbers.dtype.kind == "i" else numbers
    negative = wide < 0
    digits = _digits(np.where(negative, np.negative(wide), wide).astype(np.uint64))
    rows = np.empty((len(wide), digits.shape[1] + 1), np.uint8)  # with room for a sign
    rows[:, 1:] = digits
    begins = np.argmax(digits != ord("0"), axis=1) + 1
    begins[wide == 0] = digits.shape[1]
    return _signed_texts(rows, begins, negative)


def _signed_texts(
    rows: np.ndarray[Any, Any], begins: np.ndarray[Any, Any], negative: np.ndarray[Any, Any]
) -> Strings:
    """The rows of characters from `begins` on, some with a sign in front."""
    begins = begins - negative
    rows[negative, begins[negative]] = ord("-")
    buffer = np.concatenate((rows.reshape(-1), np.zeros(WORD, np.uint8)))
    starts = np.arange(len(rows)) * rows.shape[1] + begins
    lengths = rows.shape[1] - begins
    return Packed.of(buffer, starts, lengths).pieces(starts, lengths)


def _fixed_texts(numbers: np.ndarray[Any, Any], places: int, dtype: DType, directive: bytes) -> Strings:
    """Numbers with so many places after the point.

    A number times a power of ten is rounded to an integer, whose digits these are. Of types narrower than
    float64 that product is exact. Where its own rounding could change the result, and for numbers that are
    too large, Python formats.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # of infinities and what is no number
        wide = numbers.astype(np.float64)
        scaled = np.abs(wide) * 10.0**places
        whole = np.rint(scaled)
        sure = scaled < _LARGEST_SCALED
        if dtype is dtypes.float64:
            sure &= np.abs(scaled - whole) < 0.5 - 2 * np.spacing(scaled)
    digits = _digits(np.where(sure, whole, 0).astype(np.uint64))
    missing = max(places + 1 - digits.shape[1], 0)
    digits = np.pad(digits, ((0, 0), (missing, 0)), constant_values=ord("0"))
    before = digits.shape[1] - places
    has_point = 1 if places else 0
    rows = np.empty((len(wide), digits.shape[1] + 1 + has_point), np.uint8)  # with room for a sign
    rows[:, 1 : before + 1] = digits[:, :before]
    if places:
        rows[:, before + 1] = ord(".")
        rows[:, before + 2 :] = digits[:, before:]
    shown = digits[:, :before] != ord("0")
    shown[:, -1] = True
    texts = _signed_texts(rows, np.argmax(shown, axis=1) + 1, np.signbit(wide))
    if not sure.all():
        others = np.flatnonzero(~sure)
        texts[others] = _texts(wide[others].tolist(), dtype, directive)
    return texts


def _digits(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The decimal digits of numbers, uint64, with zeros in front: uint8, as characters."""
    fours: list[np.ndarray[Any, Any]] = []
    rest = numbers
    while not fours or rest.any():
        upper = rest // _FOUR_DIGITS
        fours.append(rest - upper * _FOUR_DIGITS)
        rest = upper
    table = _texts_of_four()
    digits = np.empty((len(numbers), len(fours)), np.uint32)
    for i, part in enumerate(fours[::-1]):
        digits[:, i] = table[part.view(np.int64)]
    return digits.view(np.uint8)


@cache
def _texts_of_four() -> np.ndarray[Any, Any]:
    """The four characters of each number below 10,000, as one uint32."""
    return np.frombuffer(b"".join([b"%04d" % i for i in range(10_000)]), np.uint32)


def _texts(items: list[Any], dtype: DType, directive: bytes) -> list[bytes]:
    if dtype is dtypes.bool:
        return [b"true" if item else b"false" for item in items]
    if dtype is dtypes.string:
        return [directive % item for item in items]
    if dtype.is_complex:
        parts = _texts([part for item in items for part in (item.real, item.imag)], dtypes.float64, directive)
        return _pairs(parts)
    if not items:
        return []
    texts = (b"\0".join([directive] * len(items)) % tuple(items)).split(b"\0")  # all in one call
    if dtype.is_floating:
        for i in np.flatnonzero(~np.isfinite(items)):
            texts[i] = _infinite_text(items[i], directive)
    return texts


def _infinite_text(number: float, directive: bytes) -> bytes:
    """Infinity, or no number with its sign, which is never filled up with zeros."""
    directive = directive.replace(b"%0", b"%")
    if np.isnan(number):
        return (directive % math.copysign(math.inf, number)).replace(b"inf", b"nan")
    return directive % number


# ---- text as numbers

string_to_number_op = op(
    "StringToNumber",
    "string_tensor: string -> output: out_type",
    "out_type: type in [float, double, int32, int64, uint32, uint64] = float",
    by_element=True,
)
string_to_number_op.infer(same_shape)
string_to_number_op.not_differentiable()

_MOST_DIGITS = 18  # fewer than int64 holds
_SPACE = b" \t\n\v\f\r"
_HEXADECIMAL = re.compile(rb"[+-]?0[xX](?=[\da-fA-F.])[\da-fA-F]*\.?[\da-fA-F]*([pP][+-]?\d+)?")
_NOT_A_NUMBER = re.compile(rb"[+-]?nan\(\w*\)", re.IGNORECASE)
_INTEGER = re.compile(rb"[+-]?[0-9]+")


@string_to_number_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[[Strings], torch.Tensor]:
    dtype = node.attributes["out_type"]
    return lambda strings: torch.from_numpy(parse_numbers(flat(strings), dtype).reshape(strings.shape))


def parse_numbers(strings: Texts, dtype: DType) -> np.ndarray[Any, Any]:
    """The number that each string is the text of. InvalidArgumentError for any other text."""
    code = text_numbers() if len(strings) >= MANY else None
    if dtype.is_integer:
        return _parse_integers(strings, np.dtype(dtype.as_numpy_dtype), code)
    with np.errstate(over="ignore"):
        found = None if code is None else code.floats(strings)
        return (_parse_floats(strings) if found is None else found).astype(dtype.as_numpy_dtype, copy=False)


def _refused(string: bytes) -> Exception:
    text = string.decode("utf-8", "backslashreplace")
    return invalid(f"StringToNumberOp could not correctly convert string: {text}")


def _parse_floats(strings: Texts) -> np.ndarray[Any, Any]:
    try:
        if b"_" in b"".join(strings):  # Python's own notation
            raise ValueError
        numbers = list(map(float, strings))
    except ValueError:
        numbers = [_parse_float(each) for each in strings]
    return np.array(numbers, np.float64)


def _parse_float(string: bytes) -> float:
    text = string.strip(_SPACE)
    if b"_" not in text:
        try:
            return float(text)
        except ValueError:
            pass
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text.decode())
        except OverflowError:
            return -np.inf if text[:1] == b"-" else np.inf
    if _NOT_A_NUMBER.fullmatch(text):
        return np.nan
    raise _refused(string)


def _parse_decimals(strings: Texts) -> np.ndarray[Any, Any] | None:
    """The numbers, int64, if all texts are a few digits, with a minus or without; else None."""
    packed = Packed(strings)
    if not len(strings) or packed.lengths.max() > _MOST_DIGITS:
        return None
    negative = packed.buffer[packed.starts] == ord("-")
    begins = packed.starts + negative
    ends = packed.starts + packed.lengths
    if (begins >= ends).any():
        return None
    numbers = np.zeros(len(strings), np.int64)
    for i in range(int(packed.lengths.max()), 0, -1):  # from the digit that counts most
        at = ends - i
        digits = packed.buffer[at].astype(np.int64) - ord("0")
        digits[at < begins] = 0
        if digits.min() < 0 or digits.max() > 9:
            return None
        numbers = numbers * 10 + digits
    return np.where(negative, -numbers, numbers)


def _parse_integers(strings: Texts, dtype: np.dtype[Any], code: TextNumbers | None) -> np.ndarray[Any, Any]:
    info, decimals = np.iinfo(dtype), None
    if info.min:  # unsigned numbers have no minus
        decimals = _parse_decimals(strings) if code is None else code.integers(strings)
    if decimals is not None and info.min <= decimals.min() and decimals.max() <= info.max:
        return decimals.astype(dtype)
    try:
        if not set(b"_-" if info.min == 0 else b"_") & set(b"".join(strings)):
            wide = np.array(list(map(int, strings)), np.int64)
            if wide.size == 0 or (info.min <= wide.min() and wide.max() <= info.max):
                return wide.astype(dtype)
    except (ValueError, OverflowError):
        pass
    return np.array([_parse_integer(each, info) for each in strings], dtype)


def _parse_integer(string: bytes, info: Any) -> int:
    text = string.strip(_SPACE)
    if not _INTEGER.fullmatch(text) or len(text) > 4000:
        raise _refused(string)
    number = int(text)
    if not info.min <= number <= info.max or (text[:1] == b"-" and info.min == 0):
        raise _refused(string)
    return number


# ---- public functions


@dispatched("unary")
def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Each number as text, as C's ``printf`` writes it: ``%d``, ``%f``, ``%e`` or ``%g``.

    `precision`: digits after the point (6 if negative). `scientific` is ``%e``, `shortest` ``%g``. `width`:
    the least number of characters. `fill`: one of the flags ' ', '+', '-', '0' and '#', or ''. Booleans are
    'true' and 'false', complex numbers '(real,imaginary)'. A step raises InvalidArgumentError for settings
    that contradict each other or the type.
    """
    return as_string_op(
        input,
        precision=precision,
        scientific=scientific,
        shortest=shortest,
        width=width,
        fill=fill,
        name=name,
    )


@dispatched("unary")
def string_to_number(
    string_tensor: Any = None, out_type: Any = dtypes.float32, name: str | None = None, input: Any = None
) -> Tensor:
    """The number that each string is the text of, as `out_type`: float32, float64 or an integer of 32 or 64
    bits.

    White space may surround it; text of floating-point numbers may be ``inf``, ``nan`` or hexadecimal. A step
    raises InvalidArgumentError for any other text, and for integers that `out_type` does not hold.
    """
    string_tensor = input if string_tensor is None else string_tensor
    return string_to_number_op(string_tensor, out_type=out_type, name=name)
