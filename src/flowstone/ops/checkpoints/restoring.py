"""Operations that read checkpoints, of either format. They wait for the disk in threads of their own."""

from __future__ import annotations

import functools
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, AsyncCall, Environment
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.process.daemon_threads import DaemonThreads
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims
from flowstone.framework.types.values import to_runtime
from flowstone.io.checkpoint_files.checkpoints import open_checkpoint
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.checkpoints.saving import Part, check_names, parse_part, scalar_text

__all__: list[str] = []

_threads = functools.cache(lambda most: DaemonThreads("flowstone files", most))


def read_value(reader: Any, name: str, dtype: DType, part: Part | None) -> Any:
    """A tensor of a checkpoint, or a part of it, as a value of a step; of variants their bytes.

    Raises NotFoundError for a tensor that is not there, InvalidArgumentError for one of another type or
    shape, DataLossError for damaged data.
    """
    entry = reader.entry(name)
    if dtype is dtypes.variant and entry.dtype is dtypes.string:
        return to_runtime(reader.read(name), dtypes.string)
    if entry.dtype is not dtype.base_dtype:
        raise invalid(
            f"tensor_name = {name}; expected dtype {dtype.base_dtype.name} does not equal original dtype "
            f"{entry.dtype.name}"
        )
    if part is None:
        return to_runtime(reader.read(name), dtype)
    shape, where = part
    if tuple(shape) != tuple(entry.shape):
        raise invalid(
            f"tensor_name = {name}; shape in shape_and_slice spec {list(shape)} does not match the shape "
            f"stored in checkpoint: {list(entry.shape)}"
        )
    return to_runtime(reader.read(name, where), dtype)


restore_v2_op = op(
    "RestoreV2",
    "prefix: string, tensor_names: string, shape_and_slices: string -> tensors: *dtypes",
    "dtypes: list(type) >= 1",
    stateful=True,
    asynchronous=True,
    capturable=False,
)
restore_v2_op.no_gradient()


@restore_v2_op.infer
def _(node: Node) -> Shapes:
    count, parts = len(node.attributes["dtypes"]), node.constant(2)
    if parts is None or parts.size != count:
        return [None] * count
    return [_shape_of(text) for text in parts.reshape(-1)]


def _shape_of(text: bytes) -> Dims:
    part = parse_part(text)
    return None if part is None else part[1].shape(part[0])


@restore_v2_op.kernel(CPU)
def _(node: Node, env: Environment) -> AsyncCall:
    types = node.attributes["dtypes"]

    def restore(prefix: Any, names: Any, parts: Any) -> tuple[Any, ...]:
        check_names(names, parts, len(types))
        with open_checkpoint(scalar_text(prefix, "prefix")) as reader:

            def read(i: int) -> Any:
                name = names[i].decode("utf-8", "surrogateescape")
                return read_value(reader, name, types[i], parse_part(parts[i]))

            return tuple(_threads(torch.get_num_threads()).at_once(read, range(len(types))))

    return env.blocking(restore)


# ---- one tensor

_ONE = "dt: type ; preferred_shard: int = -1"
restore_op = op(
    "Restore", "file_pattern: string, tensor_name: string -> tensor: dt", _ONE, stateful=True,
    asynchronous=True, capturable=False,
)  # fmt: skip
restore_slice_op = op(
    "RestoreSlice", "file_pattern: string, tensor_name: string, shape_and_slice: string -> tensor: dt", _ONE,
    stateful=True, asynchronous=True, capturable=False,
)  # fmt: skip
restore_op.no_gradient()
restore_slice_op.no_gradient()


@restore_op.infer
@restore_slice_op.infer
def _(node: Node) -> Dims:
    part = node.constant(2) if len(node.inputs) > 2 else None
    return None if part is None or part.size != 1 else _shape_of(part.reshape(-1)[0])


@restore_op.kernel(CPU)
@restore_slice_op.kernel(CPU)
def _(node: Node, env: Environment) -> AsyncCall:
    dtype = node.attributes["dt"]

    def restore(pattern: Any, tensor_name: Any, shape_and_slice: Any = None) -> tuple[Any, ...]:
        path = scalar_text(pattern, "file_pattern")
        name = scalar_text(tensor_name, "tensor_name").decode("utf-8", "surrogateescape")
        part = None if shape_and_slice is None else scalar_text(shape_and_slice, "shape_and_slice")
        with open_checkpoint(path) as reader:
            return (read_value(reader, name, dtype, None if part is None else parse_part(part)),)

    return env.blocking(restore)
