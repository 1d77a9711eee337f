"""Tensors as the bytes that SerializeSparse makes of them: TensorProtos whose elements are one run of bytes.

    type  shape  elements (little-endian; of strings, their lengths as varints, then their bytes)

Such bytes are written and read without a protobuf library, and the elements of many are read at once. Other
TensorProtos, which list their values, are read by the library. A number in the bytes is never believed before
that many bytes were seen.

>>> encode(np.int64([3]))
b'\\x08\\t\\x12\\x04\\x12\\x02\\x08\\x01"\\x08\\x03\\x00\\x00\\x00\\x00\\x00\\x00\\x00'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.tensor_proto import make_ndarray, messages
from flowstone.framework.types.values import to_numpy
from flowstone.ops.arrays.arrays import invalid

_TYPE, _SHAPE, _CONTENT = 0x08, 0x12, 0x22  # a field's number and its kind on the wire
_FREE = 2**20  # elements that a proto may have without holding them


class Content(NamedTuple):
    """A tensor whose elements are still bytes."""

    dtype: DType
    dims: tuple[int, ...]
    data: bytes


# ---- writing


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _sized(tag: int, data: bytes) -> bytes:
    return bytes((tag,)) + _varint(len(data)) + data


@lru_cache(maxsize=4096)
def header(dtype: DType, dims: tuple[int, ...]) -> bytes:
    """The bytes before the elements' field."""
    sizes = b"".join(_sized(0x12, b"\x08" + _varint(n) if n else b"") for n in dims)
    return bytes((_TYPE,)) + _varint(dtype.as_datatype_enum) + _sized(_SHAPE, sizes)


def with_content(start: bytes, data: bytes) -> bytes:
    """A header and the elements' bytes as one TensorProto."""
    return start + _sized(_CONTENT, data) if data else start


def encode(array: np.ndarray[Any, Any], dtype: DType | None = None) -> bytes:
    """The TensorProto of an array; strings are an object array of `bytes`."""
    known = dtypes.as_dtype(array.dtype) if dtype is None else dtype
    return with_content(header(known, array.shape), data_of(array))


def data_of(array: np.ndarray[Any, Any]) -> bytes:
    """The elements as bytes."""
    if array.dtype == object:
        texts = array.reshape(-1).tolist()
        return b"".join([_varint(len(text)) for text in texts]) + b"".join(texts)
    little = array.astype(array.dtype.newbyteorder("<")) if array.dtype.itemsize > 1 else array
    return little.tobytes()


# ---- reading


@lru_cache(maxsize=4096)
def _read_header(start: bytes) -> tuple[DType, tuple[int, ...]] | None:
    """The type and shape of a header as `header` writes it, or None for another."""
    proto = messages("tensor_pb2").TensorProto.FromString(start)
    try:
        dtype = dtypes.as_dtype(proto.dtype)
    except TypeError:
        return None
    dims = tuple(dim.size for dim in proto.tensor_shape.dim)
    return (dtype, dims) if all(n >= 0 for n in dims) and header(dtype, dims) == start else None


def read(value: Any) -> Content:
    """The tensor of a TensorProto, or that which a variant holds. InvalidArgumentError for anything else."""
    try:
        found = (_read_own(value) or _read_any(value)) if isinstance(value, bytes) else _held(value)
    except Exception as error:
        raise invalid(f"Could not parse serialized proto: {error}") from None
    if found.dtype is not dtypes.string and len(found.data) != math.prod(found.dims) * found.dtype.size:
        raise invalid(
            f"Could not construct tensor from proto: the shape {list(found.dims)} of {found.dtype.name} does "
            f"not have {len(found.data)} bytes"
        )
    return found


def _held(value: Any) -> Content:
    """The tensor of a variant."""
    dtype = dtypes.from_torch(value.dtype) if isinstance(value, torch.Tensor) else dtypes.string
    return Content(dtype, tuple(value.shape), data_of(to_numpy(value, dtype)))


def _read_own(text: bytes) -> Content | None:
    """The tensor of bytes that this module wrote, or None."""
    if len(text) < 4 or text[0] != _TYPE or text[2] != _SHAPE:
        return None
    end = 4 + text[3]
    known = _read_header(text[:end]) if text[3] < 0x80 and end <= len(text) else None
    if known is None:
        return None
    if end == len(text):
        return Content(*known, b"") if not math.prod(known[1]) else None
    if text[end] != _CONTENT:
        return None
    length, shift, at = 0, 0, end + 1
    while shift < 63:
        length |= (text[at] & 0x7F) << shift
        shift += 7
        at += 1
        if text[at - 1] < 0x80:
            return Content(*known, text[at:]) if len(text) - at == length else None
    return None


def _read_any(text: bytes) -> Content:
    proto = messages("tensor_pb2").TensorProto.FromString(text)
    dtype = dtypes.as_dtype(proto.dtype)
    dims = tuple(dim.size for dim in proto.tensor_shape.dim)
    if any(n < 0 for n in dims) or math.prod(dims) > max(len(text), _FREE):
        raise ValueError(f"its shape {dims} has more elements than {len(text)} bytes hold")
    if dtype is dtypes.string and proto.tensor_content:
        return Content(dtype, dims, proto.tensor_content)
    return Content(dtype, dims, data_of(make_ndarray(proto)))


def elements(parts: Sequence[Content], dtype: DType) -> np.ndarray[Any, Any]:
    """All elements of these tensors of one type, one tensor after the other, as a vector."""
    if dtype is not dtypes.string:
        stored = np.dtype(dtype.as_numpy_dtype)
        little = stored.newbyteorder("<") if stored.itemsize > 1 else stored
        return np.frombuffer(b"".join([part.data for part in parts]), little).astype(stored)
    texts = [text for part in parts for text in _texts(part.data, math.prod(part.dims))]
    result = np.empty(len(texts), object)
    result[:] = texts
    return result


def _texts(data: bytes, count: int) -> list[bytes]:
    """The strings whose lengths, then bytes, these are. InvalidArgumentError where they do not fit."""
    lengths, at = [], 0
    for _ in range(count):
        length, shift = 0, 0
        while True:
            if at >= len(data) or shift > 56:
                raise invalid(f"Could not construct tensor from proto: {len(data)} bytes for {count} strings")
            length |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                break
        lengths.append(length)
    if at + sum(lengths) != len(data):
        raise invalid(
            f"Could not construct tensor from proto: strings of {sum(lengths)} bytes in {len(data) - at}"
        )
    texts = []
    for length in lengths:
        texts.append(data[at : at + length])
        at += length
    return texts
