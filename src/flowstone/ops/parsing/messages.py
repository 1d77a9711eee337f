"""Examples from their JSON form, and tensors from and to their serialised messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from google.protobuf import json_format
from google.protobuf.message import DecodeError

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes, tensor_proto
from flowstone.framework.types.values import to_numpy, to_runtime
from flowstone.io.checkpoint_files.encodings import varint
from flowstone.io.proto.example_pb2 import Example
from flowstone.ops.arrays.arrays import boxed, invalid

Array = np.ndarray[Any, Any]

# ---- JSON

decode_json_example_op = op("DecodeJSONExample", "json_examples: string -> binary_examples: string")
decode_json_example_op.no_gradient()
decode_json_example_op.infer(lambda node: node.dims(0))


@decode_json_example_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Any], Any]:
    def run(texts: Array) -> Array:
        found = np.empty(texts.shape, object)
        found.reshape(-1)[:] = [_serialized(each) for each in texts.reshape(-1).tolist()]
        return found

    return run


def _serialized(text: bytes) -> bytes:
    try:
        found: bytes = json_format.Parse(text, Example()).SerializeToString(deterministic=True)
    except (json_format.ParseError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise invalid(f"Error while parsing JSON into binary: {error}") from None
    return found


def decode_json_example(json_examples: Any, name: str | None = None) -> Tensor:
    """Examples from their JSON form, serialised, in the shape of `json_examples`.

    InvalidArgumentError in the step for text that is not the JSON of an Example.
    """
    return decode_json_example_op(json_examples, name=name)


# ---- tensors

parse_tensor_op = op("ParseTensor", "serialized: string -> output: out_type", out_type=None)
parse_tensor_op.not_differentiable()
parse_tensor_op.infer(lambda node: None)


@parse_tensor_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Any], Any]:
    dtype = node.attributes["out_type"]
    message_type = tensor_proto.messages("tensor_pb2").TensorProto

    def run(serialized: Array) -> Any:
        if serialized.ndim:
            raise invalid(f"Expected `serialized` to be a scalar, got shape: {list(serialized.shape)}")
        try:
            proto = message_type.FromString(serialized.item())
            found = dtypes.as_dtype(proto.dtype)
        except (DecodeError, TypeError):
            raise invalid("Could not parse `serialized` as TensorProto") from None
        if found != dtype:
            raise invalid(f"Type mismatch between parsed tensor ({found.name}) and dtype ({dtype.name})")
        try:
            array = tensor_proto.make_ndarray(proto)
        except (ValueError, TypeError, MemoryError) as error:
            raise invalid(f"Cannot parse tensor from proto: {error}") from None
        return to_runtime(np.array(array), dtype)

    return run


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """The tensor of type `out_type` that a serialised TensorProto, a string scalar, stands for.

    InvalidArgumentError in the step for other bytes, or a tensor of another type.
    """
    return parse_tensor_op(serialized, out_type=out_type, name=name)


serialize_tensor_op = op("SerializeTensor", "tensor: T -> serialized: string", T=None)
serialize_tensor_op.not_differentiable()
serialize_tensor_op.infer(lambda node: ())


@serialize_tensor_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Any], Any]:
    dtype = node.dtype(0)

    def run(value: Any) -> Array:
        array = to_numpy(value, dtype)
        shape = tensor_proto.messages("tensor_shape_pb2").TensorShapeProto
        proto = tensor_proto.messages("tensor_pb2").TensorProto(
            dtype=dtype.as_datatype_enum, tensor_shape=shape(dim=[shape.Dim(size=n) for n in array.shape])
        )
        if dtype is dtypes.string:
            proto.string_val.extend(array.reshape(-1).tolist())
        else:
            content = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            return boxed(_with_content(proto.SerializeToString(deterministic=True), content))
        return boxed(proto.SerializeToString(deterministic=True))

    return run


def _with_content(message: bytes, content: Array) -> bytes:
    """A TensorProto's bytes and the field `tensor_content` behind them, copied once."""
    if not content.nbytes:
        return message
    return b"".join([message, b"\x22", varint(content.nbytes), content.reshape(-1).view(np.uint8).data])


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor as a serialised TensorProto, a string scalar."""
    return serialize_tensor_op(convert_to_tensor(tensor), name=name)
