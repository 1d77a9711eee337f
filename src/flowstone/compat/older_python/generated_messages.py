"""Files `…_pb2.py` that protoc before 3.19 generated: protobuf 4 and later refuse to make their messages.

Such a file gives its whole description as bytes, and then describes each message and field once more, which
protobuf's compiled part refuses. Of such a file only the imports and the bytes are taken; the rest is built
from these, as newer files do. `PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python`, which protobuf recommends,
makes every message of the process slow.

Files of any age that import TensorFlow's own descriptions (`tensorflow/core/framework/tensor.proto`), as
those of tensorflow-serving-api do, get ours in their place: their fields hold the very messages that
flowstone makes.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import Any

from flowstone.compat.module_paths import PROTO_PACKAGES
from flowstone.io.any_messages import tensorflow_name

__all__ = ["install"]

_BUILDER = b"google.protobuf.internal import builder"  # what newer files have make their messages
_CORE = "tensorflow/core/"


class _DescribedFile(SourceFileLoader):
    """Loads one such file from the description that it holds."""

    def exec_module(self, module: ModuleType) -> None:
        from google.protobuf import descriptor_pool
        from google.protobuf.internal import builder

        names = vars(module)
        exec(compile(_kept(ast.parse(self.get_data(self.path))), self.path, "exec"), names)
        description = descriptor_pool.Default().AddSerializedFile(_with_our_messages(names["DESCRIPTOR"]))
        names["DESCRIPTOR"] = description
        builder.BuildMessageAndEnumDescriptors(description, names)
        builder.BuildTopDescriptorsAndMessages(description, module.__name__, names)


def _kept(tree: ast.Module) -> ast.Module:
    """The imports, the function `_b` that makes bytes, and these as DESCRIPTOR."""
    body: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            body.append(statement)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name, value = statement.targets[0].id, statement.value
            if name == "DESCRIPTOR" and isinstance(value, ast.Call):
                older = [each.value for each in value.keywords if each.arg == "serialized_pb"]
                statement.value = older[0] if older else value.args[0]
            if name in ("DESCRIPTOR", "_b"):
                body.append(statement)
    return ast.Module(body, tree.type_ignores)


def _with_our_messages(serialized: bytes) -> bytes:
    """A file's description that imports our files where it imported TensorFlow's."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto.FromString(serialized)
    ours: dict[str, str] = {}
    for place, imported in enumerate(file.dependency):
        if imported.startswith(_CORE):
            description = _our_file(imported)
            file.dependency[place] = description.name
            ours |= {f".{tensorflow_name(name)}": f".{name}" for name in _names_in(description)}
    methods = [method for service in file.service for method in service.method]
    for described in (*_fields(file.message_type), *file.extension, *methods):
        for reference in ("type_name", "extendee", "input_type", "output_type"):
            name = getattr(described, reference, None)
            if name in ours:
                setattr(described, reference, ours[name])
    return bytes(file.SerializeToString())


def _our_file(imported: str) -> Any:
    """The description here of TensorFlow's file `imported`; ModuleNotFoundError if there is none."""
    leaf = imported.rpartition("/")[2].removesuffix(".proto") + "_pb2"
    for package in PROTO_PACKAGES:
        if importlib.util.find_spec(f"{package}.{leaf}") is not None:
            return importlib.import_module(f"{package}.{leaf}").DESCRIPTOR
    raise ModuleNotFoundError(f"flowstone has no messages of {imported}")


def _names_in(described: Any) -> Iterator[str]:
    """The full names of all messages and enumerations of a file or, nested, of a message."""
    is_message = hasattr(described, "nested_types_by_name")
    messages = described.nested_types_by_name if is_message else described.message_types_by_name
    yield from (each.full_name for each in described.enum_types_by_name.values())
    for message in messages.values():
        yield message.full_name
        yield from _names_in(message)


def _fields(messages: Any) -> Iterator[Any]:
    for message in messages:
        yield from message.field
        yield from _fields(message.nested_type)


class _DescribedFiles(MetaPathFinder):
    """Finds modules `…_pb2` by the other finders; those that protobuf would refuse are loaded here."""

    def __init__(self) -> None:
        self._searching: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.endswith("_pb2") or fullname in self._searching:
            return None
        self._searching.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching.discard(fullname)
        if spec is not None and type(spec.loader) is SourceFileLoader and _is_refused(spec.loader):
            spec.loader = _DescribedFile(spec.loader.name, spec.loader.path)
        return spec


def _is_refused(loader: SourceFileLoader) -> bool:
    text = loader.get_data(loader.path)
    older = _BUILDER not in text and b"_descriptor.FileDescriptor(" in text and b"serialized_pb=" in text
    return older or (_CORE.encode() in text and b"AddSerializedFile(" in text)


def install() -> None:
    """Has imports of such files work; a second call changes nothing."""
    if not any(isinstance(finder, _DescribedFiles) for finder in sys.meta_path):
        sys.meta_path.insert(0, _DescribedFiles())
