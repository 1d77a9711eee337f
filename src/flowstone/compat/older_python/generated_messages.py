"""Files `…_pb2.py` that protoc before 3.19 generated: protobuf 4 and later refuse to make their messages.

Such a file gives its whole description as bytes, and then describes each message and field once more, which
protobuf's compiled part refuses. Of such a file only the imports and the bytes are taken; the rest is built
from these, as newer files do. `PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python`, which protobuf recommends,
makes every message of the process slow.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType

__all__ = ["install"]

_BUILDER = b"google.protobuf.internal import builder"  # what newer files have make their messages


class _OlderFile(SourceFileLoader):
    """Loads one such file."""

    def exec_module(self, module: ModuleType) -> None:
        from google.protobuf import descriptor_pool
        from google.protobuf.internal import builder

        names = vars(module)
        exec(compile(_kept(ast.parse(self.get_data(self.path))), self.path, "exec"), names)
        description = descriptor_pool.Default().AddSerializedFile(names["DESCRIPTOR"])
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
                statement.value = next(each.value for each in value.keywords if each.arg == "serialized_pb")
            if name in ("DESCRIPTOR", "_b"):
                body.append(statement)
    return ast.Module(body, tree.type_ignores)


class _OlderFiles(MetaPathFinder):
    """Finds modules `…_pb2` by the other finders, and has those of older files loaded here."""

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
        if spec is not None and type(spec.loader) is SourceFileLoader and _is_older(spec.loader):
            spec.loader = _OlderFile(spec.loader.name, spec.loader.path)
        return spec


def _is_older(loader: SourceFileLoader) -> bool:
    text = loader.get_data(loader.path)
    return _BUILDER not in text and b"_descriptor.FileDescriptor(" in text and b"serialized_pb=" in text


def install() -> None:
    """Has imports of such files work; a second call changes nothing."""
    if not any(isinstance(finder, _OlderFiles) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OlderFiles())
