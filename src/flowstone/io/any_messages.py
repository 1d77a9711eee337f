"""Messages inside an `Any`, and text forms, under TensorFlow's full names.

Our messages, and those of the package tensorboard, are in other packages than TensorFlow's (`io.proto` says
why). Only an `Any` writes a full name: in its ``type_url``, and where text shows what it holds. Files carry
TensorFlow's:

>>> from tensorboard.compat.proto.meta_graph_pb2 import AssetFileDef
>>> packed = pack(AssetFileDef(filename="words.txt"))
>>> packed.type_url, unpack(packed, AssetFileDef).filename
('type.googleapis.com/tensorflow.AssetFileDef', 'words.txt')
"""

from __future__ import annotations

import functools
from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, text_format

from flowstone.framework import errors

__all__ = ["format_text", "pack", "parse_text", "unpack"]

_URL = "type.googleapis.com/"
_PACKAGES = ("flowstone", "tensorboard")


def tensorflow_name(full_name: str) -> str:
    """`full_name`, of a message of ours or of tensorboard's, as TensorFlow calls it."""
    package, dot, rest = full_name.partition(".")
    return f"tensorflow.{rest}" if dot and package in _PACKAGES else full_name


def pack(message: Any) -> any_pb2.Any:
    """An `Any` that holds `message` under TensorFlow's name."""
    url = _URL + tensorflow_name(message.DESCRIPTOR.full_name)
    return any_pb2.Any(type_url=url, value=message.SerializeToString(deterministic=True))


def unpack(packed: any_pb2.Any, cls: Any) -> Any:
    """The message of the class `cls` that an `Any` holds, by whichever of its names.

    Raises InvalidArgumentError if it holds another one, DataLossError if its bytes are no such message.
    """
    held = packed.type_url.rpartition("/")[2]
    wanted = cls.DESCRIPTOR.full_name
    if tensorflow_name(held) != tensorflow_name(wanted):
        raise errors.InvalidArgumentError(None, None, f"The Any holds a {held}, not a {wanted}")
    try:
        return cls.FromString(packed.value)
    except Exception as error:  # protobuf's DecodeError, whose module depends on its implementation
        raise errors.DataLossError(None, None, f"The Any holds no {wanted}: {error}") from None


def format_text(message: Any) -> str:
    """The text form of `message`; what an `Any` inside it holds is written out where its type is known."""
    pool = _tensorflow_pool(message.DESCRIPTOR.file)
    return str(text_format.MessageToString(message, descriptor_pool=pool))


def parse_text(text: str | bytes, message: Any) -> Any:
    """Merges the text form of a message into `message`, and returns it.

    Raises InvalidArgumentError with line and column for text that is no such message.
    """
    try:
        return text_format.Parse(text, message, descriptor_pool=_tensorflow_pool(message.DESCRIPTOR.file))
    except (text_format.ParseError, UnicodeDecodeError) as error:
        name = message.DESCRIPTOR.name
        raise errors.InvalidArgumentError(None, None, f"Cannot parse a {name} from text: {error}") from None


@functools.cache
def _tensorflow_pool(file: Any) -> Any:
    """A pool with the messages of `file`, and of all that it imports, in TensorFlow's packages."""
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()

    def add(each: Any) -> None:
        if each.name in added:
            return
        added.add(each.name)
        for other in each.dependencies:
            add(other)
        proto = descriptor_pb2.FileDescriptorProto()
        each.CopyToProto(proto)
        _rename(proto)
        pool.AddSerializedFile(proto.SerializeToString())

    add(file)
    return pool


def _rename(proto: descriptor_pb2.FileDescriptorProto) -> None:
    proto.package = tensorflow_name(f"{proto.package}.").rstrip(".")

    def rename_types(message: descriptor_pb2.DescriptorProto) -> None:
        for field in message.field:
            if field.type_name:
                field.type_name = "." + tensorflow_name(field.type_name.lstrip("."))
        for inner in message.nested_type:
            rename_types(inner)

    for message in proto.message_type:
        rename_types(message)
