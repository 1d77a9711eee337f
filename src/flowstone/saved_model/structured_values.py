"""Nested structures as messages `StructuredValue`: `tensorflow.python.saved_model.nested_structure_coder`."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from tensorboard.compat.proto import struct_pb2

from flowstone.data.specs import DatasetSpec, OptionalSpec
from flowstone.framework.tensors.type_specs import IndexedSlicesSpec, SparseTensorSpec, TensorSpec, TypeSpec
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.lists.tensor_array_spec import TensorArraySpec
from flowstone.ops.ragged.ragged_spec import RaggedTensorSpec

__all__ = ["NotEncodableError", "StructureCoder"]


class NotEncodableError(Exception):
    """A structure has a value that no message can hold."""


class StructureCoder:
    """Makes messages of lists, tuples, named tuples and dicts of numbers, texts, shapes, types and specs."""

    def can_encode(self, nested_structure: Any) -> bool:
        """Whether a message can hold all of the structure."""
        try:
            self.encode_structure(nested_structure)
        except NotEncodableError:
            return False
        return True

    def encode_structure(self, nested_structure: Any) -> Any:
        """The structure as a StructuredValue.

        NotEncodableError if none can hold a value; TypeError and ValueError for keys that are no text and
        numbers that are too large.
        """
        message = struct_pb2.StructuredValue()
        _write(nested_structure, message)
        return message

    def decode_proto(self, proto: Any) -> Any:
        """The structure that a StructuredValue holds; named tuples are of new classes."""
        kind = proto.WhichOneof("kind")
        if kind not in _READERS:
            raise NotEncodableError(f"No decoder for object [{proto}] of type [{type(proto)}].")
        return _READERS[kind](getattr(proto, kind))


# ---- specs that are no TensorSpec, by the names of their kinds


_SPECS: dict[str, Any] = {
    "SPARSE_TENSOR_SPEC": SparseTensorSpec,
    "INDEXED_SLICES_SPEC": IndexedSlicesSpec,
    "RAGGED_TENSOR_SPEC": RaggedTensorSpec,
    "TENSOR_ARRAY_SPEC": TensorArraySpec,
    "DATA_DATASET_SPEC": DatasetSpec,
    "OPTIONAL_SPEC": OptionalSpec,
}


def _write_spec(value: Any, message: Any) -> None:
    for kind, cls in _SPECS.items():
        if type(value) is cls:
            message.type_spec_class = message.TypeSpecClass.Value(kind)
            message.type_spec_class_name = cls.__name__
            _write(value._serialize(), message.type_state)
            return
    raise _not_encodable(value)


def _read_spec(message: Any) -> Any:
    kind = message.TypeSpecClass.Name(message.type_spec_class)
    found = _SPECS.get(kind)
    if found is None:
        raise ValueError(f"The type spec of kind {kind} is not supported here")
    return found(*_read(message.type_state))


# ---- values


def _not_encodable(value: Any) -> NotEncodableError:
    return NotEncodableError(f"No encoder for object [{value}] of type [{type(value)}].")


def _write(value: Any, message: Any) -> None:
    if value is None:
        message.none_value.SetInParent()
    elif isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int):
        message.int64_value = value
    elif isinstance(value, float):
        message.float64_value = value
    elif isinstance(value, str):
        message.string_value = value
    elif isinstance(value, TensorShape):
        message.tensor_shape_value.CopyFrom(value.as_proto())
    elif isinstance(value, dtypes.DType):
        message.tensor_dtype_value = value.as_datatype_enum
    elif type(value) is TensorSpec:
        _write_tensor_spec(value, message.tensor_spec_value)
    elif isinstance(value, TypeSpec):
        _write_spec(value, message.type_spec_value)
    else:
        _write_container(value, message)


def _write_tensor_spec(value: Any, message: Any) -> None:
    message.name = value.name or ""
    message.shape.CopyFrom(value.shape.as_proto())
    message.dtype = value.dtype.as_datatype_enum


def _write_container(value: Any, message: Any) -> None:
    if isinstance(value, Mapping):
        message.dict_value.SetInParent()
        for key, each in value.items():
            _write(each, message.dict_value.fields[key])
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        message.named_tuple_value.name = type(value).__name__
        for key, each in zip(value._fields, value):
            pair = message.named_tuple_value.values.add()
            pair.key = key
            _write(each, pair.value)
    elif isinstance(value, (list, tuple)):
        found = message.list_value if isinstance(value, list) else message.tuple_value
        found.SetInParent()
        for each in value:
            _write(each, found.values.add())
    else:
        raise _not_encodable(value)


_read = StructureCoder().decode_proto


def _read_tensor_spec(message: Any) -> Any:
    return TensorSpec(_read_shape(message.shape), dtypes.as_dtype(message.dtype), message.name or None)


def _read_shape(message: Any) -> Any:
    if message.unknown_rank:
        return TensorShape(None)
    return TensorShape([None if each.size == -1 else each.size for each in message.dim])


def _read_named_tuple(message: Any) -> Any:
    fields = {pair.key: _read(pair.value) for pair in message.values}
    return namedtuple(message.name, list(fields))(**fields)


_READERS: dict[str, Callable[[Any], Any]] = {
    "none_value": lambda message: None,
    "bool_value": bool,
    "int64_value": int,
    "float64_value": float,
    "string_value": str,
    "tensor_shape_value": _read_shape,
    "tensor_dtype_value": dtypes.as_dtype,
    "tensor_spec_value": _read_tensor_spec,
    "type_spec_value": _read_spec,
    "dict_value": lambda message: {key: _read(each) for key, each in message.fields.items()},
    "named_tuple_value": _read_named_tuple,
    "list_value": lambda message: [_read(each) for each in message.values],
    "tuple_value": lambda message: tuple(_read(each) for each in message.values),
}
