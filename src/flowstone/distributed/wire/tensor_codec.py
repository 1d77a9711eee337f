"""Values between tasks: as TensorProtos, as bytes of RecvTensorResponses, and as buffers of direct
connections.

A tensor's elements are copied once into a message (which joins its parts), and not at all out of it: the
value that is read shares the message's memory, which nobody else has.

>>> import torch
>>> decode_tensor(encode_tensor(torch.tensor([1.0, 2.0])))
tensor([1., 2.])
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.tensor_proto import array_proto, make_ndarray, messages
from flowstone.framework.types.values import to_numpy, to_runtime
from flowstone.runtime.execution.executor import DEAD

__all__ = [
    "decode_received", "decode_tensor", "encode_received", "encode_tensor", "pack", "proto_of_value",
    "unpack", "value_of_proto",
]  # fmt: skip

# The tags of fields: of TensorProto, of TensorShapeProto.Dim and TensorShapeProto, of RecvTensorResponse.
_DTYPE, _SHAPE, _CONTENT, _STRING = 0x08, 0x12, 0x22, 0x42
_SIZE, _DIM = 0x08, 0x12
_TENSOR, _IS_DEAD = 0x0A, 0x10
_MOST_RANK = 254


# ---- values and messages


def value_of_proto(proto: Any) -> Any:
    """The runtime value of a TensorProto. InvalidArgumentError for a damaged one."""
    try:
        return to_runtime(make_ndarray(proto), dtypes.as_dtype(proto.dtype))
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        raise errors.InvalidArgumentError(None, None, f"Cannot parse tensor from proto: {error}") from None


def proto_of_value(value: Any, dtype: DType) -> Any:
    """The TensorProto of a runtime value. InvalidArgumentError for what does not leave its process."""
    if dtype.base_dtype.torch is None and dtype.base_dtype is not dtypes.string:
        raise _stays(dtype.base_dtype.name)
    array = to_numpy(value, dtype.base_dtype)
    if array.dtype.hasobject:
        return array_proto(array, dtype.base_dtype)
    shape = messages("tensor_shape_pb2").TensorShapeProto
    return messages("tensor_pb2").TensorProto(
        dtype=dtype.base_dtype.as_datatype_enum,
        tensor_shape=shape(dim=[shape.Dim(size=n) for n in array.shape]),
        tensor_content=array.tobytes(),
    )


def _stays(kind: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        None,
        None,
        f"A value of type {kind} belongs to its process: it can be neither sent to another task nor fetched",
    )


# ---- values of direct connections

_ENTRY = struct.Struct("<BBHIQ")  # kind, 0, rank, dtype, bytes of the content; the dims follow, 8 bytes each
_DENSE, _STRINGS, _DEAD_VALUE = 1, 2, 3
_ALIGNED = 64  # contents begin at multiples of it


def pack(values: Sequence[Any]) -> list[Any]:
    """Runtime values, or `DEAD`, as buffers to be sent one after the other; contents are not copied."""
    head = bytearray(len(values).to_bytes(4, "little"))
    contents: list[Any] = []
    for value in values:
        if value is DEAD:
            head += _ENTRY.pack(_DEAD_VALUE, 0, 0, 0, 0)
        elif isinstance(value, torch.Tensor):
            dtype = dtypes.from_torch(value.dtype)
            content = _content(to_numpy(value, dtype))
            head += _ENTRY.pack(_DENSE, 0, value.dim(), dtype.as_datatype_enum, len(content))
            head += struct.pack(f"<{value.dim()}q", *value.shape)
            contents.append(content)
        else:
            written = encode_tensor(value)
            head += _ENTRY.pack(_STRINGS, 0, 0, 0, len(written))
            contents.append(written)
    buffers: list[Any] = [bytes(head)]
    at = len(head)
    for content in contents:
        if at % _ALIGNED:
            buffers.append(bytes(_ALIGNED - at % _ALIGNED))
            at += len(buffers[-1])
        buffers.append(content)
        at += len(content)
    return buffers


def unpack(message: memoryview) -> list[Any]:
    """The values that `pack` wrote; they share the message's memory. DataLossError for damaged bytes."""
    try:
        return _unpacked(message)
    except (struct.error, ValueError, TypeError, IndexError, OverflowError) as error:
        raise _damaged(str(error)) from None


def _unpacked(message: memoryview) -> list[Any]:
    count = int.from_bytes(message[:4], "little")
    entries: list[tuple[int, int, tuple[int, ...], int]] = []
    at = 4
    for _ in range(count):
        kind, _, rank, dtype, size = _ENTRY.unpack_from(message, at)
        at += _ENTRY.size
        entries.append((kind, dtype, struct.unpack_from(f"<{rank}q", message, at), size))
        at += 8 * rank
    values: list[Any] = []
    for kind, number, dims, size in entries:
        if kind == _DEAD_VALUE:
            values.append(DEAD)
            continue
        at += -at % _ALIGNED
        content = message[at : at + size]
        at += size
        value = decode_tensor(content) if kind == _STRINGS else _shared(number, list(dims), content, size)
        if value is None:
            raise ValueError("type, shape and size of a tensor disagree")
        values.append(value)
    return values


def _content(array: Any) -> Any:
    """The bytes of an array, not copied if they are in order."""
    if not array.size:
        return b""
    stored = np.ascontiguousarray(array)
    if array.dtype.kind == "V":  # bfloat16 has no buffer format of its own
        stored = stored.view(np.uint16)
    return stored.reshape(-1).view(np.uint8).data


# ---- bytes of TensorProtos


def encode_tensor(value: Any) -> bytes:
    """The bytes of the TensorProto of a runtime value, by the type that it has in a step."""
    return b"".join(_tensor_parts(value))


def encode_received(value: Any) -> bytes:
    """The bytes of a RecvTensorResponse with this value, or `DEAD`."""
    if value is DEAD:
        return bytes((_IS_DEAD, 1))
    parts = _tensor_parts(value)
    return b"".join([bytes((_TENSOR,)), _varint(sum(map(len, parts))), *parts])


def decode_tensor(message: bytes | memoryview) -> Any:
    """The runtime value of a TensorProto's bytes. DataLossError for damaged ones."""
    view = memoryview(message)
    found = _quick(view)
    if found is not None:
        return found
    proto = messages("tensor_pb2").TensorProto()
    try:
        proto.ParseFromString(bytes(view))
    except Exception as error:  # protobuf's DecodeError, whose module depends on its implementation
        raise _damaged(str(error)) from None
    return value_of_proto(proto)


def decode_received(message: bytes) -> Any:
    """The value of a RecvTensorResponse, or `DEAD`. DataLossError for damaged bytes."""
    view, at, value = memoryview(message), 0, None
    try:
        while at < len(view):
            tag, at = _read_varint(view, at)
            if tag == _TENSOR:
                size, at = _read_varint(view, at)
                if at + size > len(view):
                    raise IndexError
                value, at = decode_tensor(view[at : at + size]), at + size
            elif tag == _IS_DEAD:
                is_dead, at = _read_varint(view, at)
                if is_dead:
                    return DEAD
            else:
                at = _skip(view, at, tag)
    except IndexError:
        raise _damaged("it ends too early") from None
    if value is None:
        raise _damaged("it has no tensor")
    return value


def _tensor_parts(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        dtype = dtypes.from_torch(value.dtype)
        array = to_numpy(value, dtype)
    elif isinstance(value, np.ndarray):
        dtype, array = dtypes.string, value
    else:
        raise _stays(type(value).__name__)
    shape = b"".join([_sized(_DIM, bytes((_SIZE,)) + _varint(n)) for n in array.shape])
    head = bytes((_DTYPE,)) + _varint(dtype.as_datatype_enum) + _sized(_SHAPE, shape)
    if dtype is dtypes.string:
        return [head, *[_sized(_STRING, item) for item in array.ravel().tolist()]]
    content = _content(array)
    return [head + bytes((_CONTENT,)) + _varint(len(content)), content]


def _sized(tag: int, content: bytes) -> bytes:
    return bytes((tag,)) + _varint(len(content)) + content


def _quick(view: memoryview) -> Any:
    """The value, if the message is type, shape and content in this order, as `_tensor_parts` writes; else
    None."""
    try:
        if view[0] != _DTYPE:
            return None
        number, at = _read_varint(view, 1)
        if view[at] != _SHAPE:
            return None
        size, at = _read_varint(view, at + 1)
        dims, end = [], at + size
        while at < end:
            if view[at] != _DIM:
                return None
            length, at = _read_varint(view, at + 1)
            if length == 0:
                dims.append(0)
                continue
            if view[at] != _SIZE:
                return None
            n, after = _read_varint(view, at + 1)
            if after != at + length or n >= 1 << 62 or len(dims) > _MOST_RANK:
                return None
            dims.append(n)
            at = after
        if at != end or view[at] != _CONTENT:
            return None
        size, at = _read_varint(view, at + 1)
    except IndexError:
        return None
    return _shared(number, dims, view[at:], size)


def _shared(number: int, dims: list[int], content: memoryview, size: int) -> Any:
    """The tensor in the content's memory; None unless the sizes agree."""
    try:
        dtype = dtypes.as_dtype(number)
    except TypeError:
        return None
    if dtype.torch is None or len(content) != size:
        return None
    kind = np.dtype(dtype.as_numpy_dtype)
    count = 1
    for n in dims:
        count *= n
    if count * kind.itemsize != size:
        return None
    array = np.frombuffer(content, kind) if size else np.empty(0, kind)
    return to_runtime(array.reshape(dims), dtype)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(view: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = view[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > 63:
            raise IndexError


def _skip(view: memoryview, at: int, tag: int) -> int:
    kind = tag & 7
    if kind == 0:
        return _read_varint(view, at)[1]
    if kind == 2:
        size, at = _read_varint(view, at)
        return at + size
    if kind in (1, 5):
        return at + (8 if kind == 1 else 4)
    raise IndexError


def _damaged(why: str) -> errors.DataLossError:
    return errors.DataLossError(None, None, f"A message with a tensor is damaged: {why}")
