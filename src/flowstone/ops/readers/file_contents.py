"""Operations that read and write whole files, in threads that may wait for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.kernel import CPU, AsyncCall, Environment
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.io import file_system
from flowstone.ops.arrays.arrays import boxed, invalid
from flowstone.ops.networks.windows import require_rank

Array = np.ndarray[Any, Any]

# A plan must read again in every step.
read_file_op = op(
    "ReadFile", "filename: string -> contents: string", stateful=True, asynchronous=True, role="files"
)
read_file_op.no_gradient()


@read_file_op.infer
def _(node: Node) -> Shapes:
    require_rank(node.dims(0), 0)
    return ()


def _scalar(value: Array, what: str) -> bytes:
    if value.ndim:
        raise invalid(f"{what} tensor must be scalar, but had shape: {list(value.shape)}")
    text: bytes = value.item()
    return text


@read_file_op.kernel(CPU)
def _(node: Node, env: Environment) -> AsyncCall:
    return env.blocking(lambda name: (boxed(file_system.read_bytes(_scalar(name, "Input filename"))),))


write_file_op = op("WriteFile", "filename: string, contents: string ->", stateful=True, asynchronous=True)
write_file_op.no_gradient()


@write_file_op.infer
def _(node: Node) -> None:
    require_rank(node.dims(0), 0)
    require_rank(node.dims(1), 0)


@write_file_op.kernel(CPU)
def _(node: Node, env: Environment) -> AsyncCall:
    def write(filename: Array, contents: Array) -> tuple[Any, ...]:
        path = file_system.as_path(_scalar(filename, "Input filename"))
        folder = path.rpartition("/")[0]
        if folder and not file_system.file_exists(folder):
            file_system.recursive_create_dir(folder)
        file_system.write_string_to_file(path, _scalar(contents, "Contents"))
        return ()

    return env.blocking(write)


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """All that is in a file, a string scalar; read in every step. NotFoundError in the step if it is not
    there."""
    return read_file_op(convert_to_tensor(filename, dtypes.string), name=name)


def write_file(filename: Any, contents: Any, name: str | None = None) -> Operation:
    """Writes a string scalar to a file, and makes its folders if they are missing."""
    return write_file_op.operation(filename, contents, name=name)
