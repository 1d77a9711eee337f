"""The message QueueRunnerDef, as TensorFlow's ``queue_runner.proto`` defines it, which the package
`tensorboard` lacks: names and field numbers are TensorFlow's, so that each reads what the other wrote.

The messages live in a descriptor pool of their own: a process that also loads TensorFlow keeps its own.

>>> bytes(QueueRunnerDef(queue_name="q").SerializeToString())
b'\\n\\x01q'
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from flowstone.framework import errors

__all__ = ["QueueRunnerDef"]

_Field = descriptor_pb2.FieldDescriptorProto
_FIELDS = (  # name, number, repeated, type
    ("queue_name", 1, False, _Field.TYPE_STRING),
    ("enqueue_op_name", 2, True, _Field.TYPE_STRING),
    ("close_op_name", 3, False, _Field.TYPE_STRING),
    ("cancel_op_name", 4, False, _Field.TYPE_STRING),
    ("queue_closed_exception_types", 5, True, _Field.TYPE_ENUM),
)
_CODES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
    "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip


def _error_codes() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="tensorflow/core/protobuf/error_codes.proto", package="tensorflow.error", syntax="proto3"
    )
    codes = file.enum_type.add(name="Code")
    for name in _CODES:
        codes.value.add(name=name, number=getattr(errors, name))
    return file


def _queue_runner() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="tensorflow/core/protobuf/queue_runner.proto", package="tensorflow", syntax="proto3"
    )
    file.dependency.append("tensorflow/core/protobuf/error_codes.proto")
    message = file.message_type.add(name="QueueRunnerDef")
    for name, number, repeated, kind in _FIELDS:
        field = message.field.add(name=name, number=number, type=kind)
        field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
        if kind == _Field.TYPE_ENUM:
            field.type_name = ".tensorflow.error.Code"
    return file


def _message_class() -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in (_error_codes(), _queue_runner()):
        pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.QueueRunnerDef"))


QueueRunnerDef = _message_class()
