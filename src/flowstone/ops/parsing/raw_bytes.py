"""Strings of bytes as the numbers that they hold, and decompressed."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.values import to_runtime
from flowstone.io.compression import KINDS, Decompressor
from flowstone.ops.arrays.arrays import invalid

Array = np.ndarray[Any, Any]
_NUMBERS = (
    dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.uint16, dtypes.uint8, dtypes.int16,
    dtypes.int8, dtypes.int64, dtypes.bfloat16,
)  # fmt: skip
_MORE = (dtypes.complex64, dtypes.complex128, dtypes.bool)


def _as_numbers(data: bytes, dims: tuple[int, ...], dtype: DType, little_endian: bool) -> Any:
    """The bytes as an array of `dtype`."""
    kind = np.dtype(dtype.as_numpy_dtype)
    if kind.kind == "b":
        return to_runtime((np.frombuffer(data, np.uint8) != 0).reshape(dims), dtype)
    array = np.frombuffer(bytearray(data), kind)
    if not little_endian and kind.itemsize > 1:
        parts = kind.itemsize // 2 if kind.kind == "c" else kind.itemsize
        array = array.view(f"u{parts}").byteswap().view(kind)
    return to_runtime(array.reshape(dims), dtype)


# ---- of one size

decode_raw_op = op(
    "DecodeRaw",
    "bytes: string -> output: out_type",
    "little_endian: bool = true",
    out_type=(*_NUMBERS, *_MORE),
)
decode_raw_op.not_differentiable()


@decode_raw_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    return None if dims is None else (*dims, None)


@decode_raw_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Any], Any]:
    dtype, little_endian = node.attributes["out_type"], node.attributes["little_endian"]

    def run(texts: Array) -> Any:
        parts = texts.reshape(-1).tolist()
        size = len(parts[0]) if parts else 0
        for i, part in enumerate(parts):
            if len(part) != size:
                raise invalid(
                    "DecodeRaw requires input strings to all be the same size, but element "
                    f"{i} has size {size} != {len(part)}"
                )
        if size % dtype.size:
            raise invalid(
                f"Input to DecodeRaw has length {size} that is not a multiple of {dtype.size}, the size of "
                f"{dtype.name}"
            )
        return _as_numbers(b"".join(parts), (*texts.shape, size // dtype.size), dtype, little_endian)

    return run


def decode_raw(
    bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    input_bytes: Any = None,
) -> Tensor:
    """The numbers that strings hold.

    Args:
        bytes: string Tensor of any shape; all strings have one length, a multiple of a number's.
        out_type: the numbers' type.
        little_endian: whether their first byte is the lowest.
        name: of the operation.
        input_bytes: another name of `bytes`.

    Returns:
        A Tensor of the shape of `bytes` with one more dimension, of the numbers of a string.

    Raises:
        InvalidArgumentError: (in the step) for strings of different or unfitting lengths.
    """
    texts = input_bytes if bytes is None else bytes
    return decode_raw_op(texts, out_type=out_type, little_endian=little_endian, name=name)


# ---- of any size

decode_padded_raw_op = op(
    "DecodePaddedRaw",
    "input_bytes: string, fixed_length: int32 -> output: out_type",
    "little_endian: bool = true",
    out_type=_NUMBERS,
    host=["fixed_length"],
)
decode_padded_raw_op.not_differentiable()


@decode_padded_raw_op.infer
def _(node: Node) -> Shapes:
    dims, length = node.dims(0), node.constant(1)
    if dims is None:
        return None
    if length is None:
        return (*dims, None)
    width = node.attributes["out_type"].size
    if length.ndim or int(length) <= 0:
        return (*dims, None)
    if int(length) % width:
        raise ValueError(f"fixed_length ({int(length)}) must be a multiple of {width} bytes")
    return (*dims, int(length) // width)


@decode_padded_raw_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Any, Any], Any]:
    dtype, little_endian = node.attributes["out_type"], node.attributes["little_endian"]

    def run(texts: Array, fixed_length: torch.Tensor) -> Any:
        if fixed_length.dim():
            raise invalid(f"k must be scalar, got shape {list(fixed_length.shape)}")
        length = int(fixed_length)
        if length <= 0:
            raise invalid(f"fixed_length ({length}) must be greater than zero.")
        if length % dtype.size:
            raise invalid(f"fixed_length ({length}) must be a multiple of the size of {dtype.name}")
        data = b"".join([each[:length].ljust(length, b"\0") for each in texts.reshape(-1).tolist()])
        return _as_numbers(data, (*texts.shape, length // dtype.size), dtype, little_endian)

    return run


# ---- compressed

decode_compressed_op = op(
    "DecodeCompressed", "bytes: string -> output: string", "compression_type: string = ''"
)
decode_compressed_op.no_gradient()
decode_compressed_op.infer(lambda node: node.dims(0))


@decode_compressed_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Any], Any]:
    kind = node.attributes["compression_type"]
    if kind not in KINDS:
        raise invalid(f"Only ZLIB, GZIP or NONE are supported compressions, not {kind!r}")

    def run(texts: Array) -> Array:
        if not kind:
            return texts
        found = np.empty(texts.shape, object)
        found.reshape(-1)[:] = [_decompressed(each, kind) for each in texts.reshape(-1).tolist()]
        return found

    return run


def _decompressed(data: bytes, kind: str) -> bytes:
    if not data:
        return b""
    stream = Decompressor(io.BytesIO(data).read, kind, "DecodeCompressed")
    parts = []
    while part := stream.read_piece():
        parts.append(part)
    return b"".join(parts)


@dispatched("unary")
def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Strings decompressed, in the shape of `bytes`. `compression_type`: "", "ZLIB" or "GZIP".

    DataLossError in the step for bytes that are not compressed so.
    """
    return decode_compressed_op(
        convert_to_tensor(bytes, dtypes.string), compression_type=compression_type, name=name
    )
