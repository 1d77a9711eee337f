"""Operations that write checkpoints. They wait for the disk in threads of their own.

Parts of tensors are named by a text: a shape and a part of it, ``"10 4 0,5:-"``; empty, it is the whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flowstone.framework.declarations.kernel import CPU, AsyncCall, Environment
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims
from flowstone.framework.types.values import to_numpy
from flowstone.io.checkpoint_files.bundle_writer import BundleWriter, merge_bundles
from flowstone.io.checkpoint_files.slices import TensorSlice
from flowstone.io.checkpoint_files.v1_files import write_v1
from flowstone.io.file_system import as_path, create_dir, delete_recursively, file_exists
from flowstone.ops.arrays.arrays import invalid

__all__: list[str] = []

Part = tuple[tuple[int, ...], TensorSlice]  # the shape of the whole, and which part of it


def parse_part(text: bytes) -> Part | None:
    """The shape and part that a text names; None for the whole. InvalidArgumentError for anything else."""
    words = text.decode().split(" ")
    if words == [""]:
        return None
    try:
        shape = tuple([int(word) for word in words[:-1]])
    except ValueError:
        raise invalid(f"Expected the dimensions of a shape before the part, not {text.decode()!r}") from None
    part = TensorSlice.parse(words[-1])
    if any(size < 0 for size in shape) or not part.fits(shape):
        raise invalid(f"A tensor of shape {list(shape)} has no part {words[-1]!r}")
    return shape, part


def scalar_text(value: Any, what: str) -> bytes:
    """The element of a string tensor with one. InvalidArgumentError for others."""
    if value.size != 1:
        raise invalid(f"{what} must be a scalar string tensor, got {value.size} elements")
    return value.reshape(-1)[0]  # type: ignore[no-any-return]


def check_names(names: Any, others: Any, count: int) -> None:
    """InvalidArgumentError unless there are as many names, and parts if given, as tensors."""
    if names.ndim != 1 or (others is not None and others.ndim != 1):
        raise invalid("tensor_names and shape_and_slices must be vectors")
    if names.size != count:
        raise invalid(f"Got {names.size} tensor names but {count} tensors.")
    if others is not None and others.size != names.size:
        raise invalid(f"Got {others.size} shapes and slices but {names.size} tensor names.")


def _folder_of(path: Any) -> str:
    return os.path.dirname(as_path(path))


def _make_folder_of(path: Any) -> None:
    folder = _folder_of(path)
    if folder and not file_exists(folder):
        create_dir(folder)


def _nothing(node: Node) -> list[Dims]:
    return []


def _declare(name: str, signature: str, attributes: str = "", **types: Any) -> OpDeclaration:
    declaration = op(
        name, f"{signature} ->", attributes, stateful=True, asynchronous=True, capturable=False, **types
    )
    declaration.infer(_nothing)
    declaration.no_gradient()
    return declaration


_Tensors = Iterator[tuple[str, Any, DType, Part | None]]


def _tensors(node: Node, first: int, names: Any, parts: Any, values: tuple[Any, ...]) -> _Tensors:
    """(name, array, type, part) of each; variants, such as states of iterators, by their bytes."""
    for i, value in enumerate(values):
        dtype = node.dtype(first + i).base_dtype
        if dtype is dtypes.variant and isinstance(value, np.ndarray):
            value, dtype = np.array([bytes(item) for item in value.flat], object), dtypes.string
        part = None if parts is None else parse_part(parts[i])
        yield names[i].decode("utf-8", "surrogateescape"), to_numpy(value, dtype), dtype, part


# ---- the second format

save_v2_op = _declare(
    "SaveV2", "prefix: string, tensor_names: string, shape_and_slices: string, tensors: *dtypes",
    "dtypes: list(type) >= 1",
)  # fmt: skip


@save_v2_op.kernel(CPU)
def _(node: Node, env: Environment) -> AsyncCall:
    def save(prefix: Any, names: Any, parts: Any, *values: Any) -> tuple[Any, ...]:
        check_names(names, parts, len(values))
        path = scalar_text(prefix, "prefix")
        _make_folder_of(path)
        with BundleWriter(path) as writer:
            for name, array, dtype, part in _tensors(node, 3, names, parts, values):
                if part is None:
                    writer.add(name, array, dtype)
                else:
                    writer.add_slice(name, *part, array, dtype)
        return ()

    return env.blocking(save)


merge_v2_op = _declare(
    "MergeV2Checkpoints", "checkpoint_prefixes: string, destination_prefix: string",
    "delete_old_dirs: bool = true",
)  # fmt: skip


@merge_v2_op.kernel(CPU)
def _(node: Node, env: Environment) -> AsyncCall:
    deletes = node.attributes["delete_old_dirs"]

    def merge(prefixes: Any, destination: Any) -> tuple[Any, ...]:
        if prefixes.ndim != 1 or not prefixes.size:
            raise invalid("Input checkpoint_prefixes should be a vector with at least one element")
        merged = scalar_text(destination, "destination_prefix")
        _make_folder_of(merged)
        merge_bundles(prefixes.tolist(), merged)
        if deletes:
            for folder in {_folder_of(prefix) for prefix in prefixes.tolist()} - {_folder_of(merged)}:
                if file_exists(folder):
                    delete_recursively(folder)
        return ()

    return env.blocking(merge)


# ---- the first format

save_op = _declare("Save", "filename: string, tensor_names: string, data: *T", "T: list(type) >= 1")
save_slices_op = _declare(
    "SaveSlices", "filename: string, tensor_names: string, shapes_and_slices: string, data: *T",
    "T: list(type) >= 1",
)  # fmt: skip


def _write_v1(node: Node, first: int, filename: Any, names: Any, parts: Any, values: Any) -> tuple[Any, ...]:
    check_names(names, parts, len(values))
    tensors = [(name, array, part) for name, array, _, part in _tensors(node, first, names, parts, values)]
    write_v1(scalar_text(filename, "filename"), tensors)
    return ()


@save_op.kernel(CPU)
def _(node: Node, env: Environment) -> AsyncCall:
    return env.blocking(lambda filename, names, *data: _write_v1(node, 2, filename, names, None, data))


@save_slices_op.kernel(CPU)
def _(node: Node, env: Environment) -> AsyncCall:
    return env.blocking(
        lambda filename, names, parts, *data: _write_v1(node, 3, filename, names, parts, data)
    )


# ---- names of shards

sharded_filename_op = op(
    "ShardedFilename", "basename: string, shard: int32, num_shards: int32 -> filename: string"
)
sharded_filespec_op = op("ShardedFilespec", "basename: string, num_shards: int32 -> filename: string")


def _text(value: str | bytes) -> Any:
    box = np.empty((), object)
    box[()] = value.encode() if isinstance(value, str) else value
    return box


@sharded_filename_op.infer
@sharded_filespec_op.infer
def _(node: Node) -> Dims:
    return ()


sharded_filename_op.not_differentiable()
sharded_filespec_op.not_differentiable()


@sharded_filename_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    def name(basename: Any, shard: Any, shards: Any) -> Any:
        return _text(scalar_text(basename, "basename") + b"-%05d-of-%05d" % (int(shard), int(shards)))

    return name


@sharded_filespec_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    return lambda basename, shards: _text(scalar_text(basename, "basename") + b"-?????-of-%05d" % int(shards))
