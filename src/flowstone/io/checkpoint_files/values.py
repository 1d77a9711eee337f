"""Values of tensors as the data files of V2 checkpoints have them.

Numbers: the bytes of the elements, in rows. Strings: the lengths (`encodings.varint`), a checksum of the
lengths, the bytes of all strings. The checksum in the index is, for strings, one of the lengths (as 4-byte
integers, or 8 where they do not fit), of that checksum's bytes, and of the strings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from flowstone.framework.types.dtypes import DType
from flowstone.io.checkpoint_files.encodings import read_varint, varint
from flowstone.io.checkpoint_files.slices import TensorSlice
from flowstone.io.checksums import crc32c, masked

Array = np.ndarray[Any, Any]

_UINT32_MAX = 2**32 - 1


def stored_type(dtype: DType, is_big_endian: bool = False) -> np.dtype[Any]:
    """The NumPy type of numbers in a file."""
    kind: np.dtype[Any] = np.dtype(dtype.as_numpy_dtype)
    return kind.newbyteorder(">" if is_big_endian else "<") if dtype.size > 1 else kind


def is_stored(dtype: DType) -> bool:
    """Whether tensors of this type have values that a file can hold."""
    return dtype.is_numpy_compatible


def as_bytes(array: Array, dtype: DType) -> Array:
    """The bytes of the numbers of `array`, in rows, without a copy where they lie so."""
    stored = stored_type(dtype)
    if array.dtype != stored:
        array = array.astype(stored)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def encode_strings(strings: list[bytes]) -> tuple[bytes, int]:
    """What a file holds of strings, and its checksum, unmasked."""
    lengths = [len(string) for string in strings]
    crc = _lengths_crc(lengths)
    checksum = masked(crc).to_bytes(4, "little")
    body = b"".join(strings)
    return b"".join([*map(varint, lengths), checksum, body]), crc32c(body, crc32c(checksum, crc))


def _lengths_crc(lengths: list[int]) -> int:
    if max(lengths, default=0) <= _UINT32_MAX:
        return crc32c(np.array(lengths, "<u4").tobytes())
    crc = 0
    for length in lengths:
        crc = crc32c(length.to_bytes(4 if length <= _UINT32_MAX else 8, "little"), crc)
    return crc


def decode_strings(data: bytes, count: int) -> tuple[list[bytes], int]:
    """`count` strings of what a file holds, and its checksum, unmasked. ValueError if it holds no such."""
    lengths, at = [], 0
    if count > len(data):
        raise ValueError(f"{len(data)} bytes hold no {count} strings")
    for _ in range(count):
        length, at = read_varint(data, at)
        lengths.append(length)
    crc = _lengths_crc(lengths)
    checksum = data[at : at + 4]
    begin = at + 4
    if begin + sum(lengths) != len(data):
        raise ValueError("the lengths of the strings do not add up")
    if checksum != masked(crc).to_bytes(4, "little"):
        raise ValueError("checksum mismatch of the lengths of strings")
    crc = crc32c(data[begin:], crc32c(checksum, crc))
    strings = []
    for length in lengths:
        strings.append(data[begin : begin + length])
        begin += length
    return strings, crc


def size_of(shape: tuple[int, ...]) -> int:
    """How many elements a tensor of this shape has."""
    return math.prod(shape)


def assemble(
    wanted: TensorSlice,
    shape: tuple[int, ...],
    dtype: DType,
    parts: Iterable[TensorSlice],
    values_of: Callable[[TensorSlice], Array],
) -> Array | None:
    """The part `wanted` of a tensor of shape `shape` from the parts of it that there are, which do not
    overlap.

    `values_of` gives the values of a part; it is asked for those that are needed. None if they are not
    enough.
    """
    pieces = []
    for part in parts:
        common = wanted.intersection(part, shape)
        if common is not None:
            # The ellipsis has NumPy give an array for a scalar too.
            index: Any = (..., *common.within(part, shape))
            pieces.append((common, values_of(part)[index]))
    if sum(values.size for _, values in pieces) < size_of(wanted.shape(shape)):
        return None
    if len(pieces) == 1 and pieces[0][1].flags.c_contiguous:
        only: Array = pieces[0][1]
        return only.reshape(wanted.shape(shape))
    result = np.empty(wanted.shape(shape), np.dtype(dtype.as_numpy_dtype))
    for common, values in pieces:
        result[common.within(wanted, shape)] = values
    return result
