"""Operations that look at the file system.

Paths are those of `io.file_system`, patterns those of `io.file_patterns`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import format_dims
from flowstone.framework.types.values import as_bytes_array
from flowstone.io.file_system import get_matching_files

__all__ = ["matching_files"]


# A plan must look again in every step, although the op has no effect.
matching_files_op = op("MatchingFiles", "pattern: string -> filenames: string", stateful=True, role="files")
matching_files_op.no_gradient()


@matching_files_op.infer
def _(node: Node) -> tuple[None]:
    dims = node.dims(0)
    if dims is not None and len(dims) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {len(dims)}")
    return (None,)


@matching_files_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Any], Any]:
    return _matches


def _matches(patterns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if patterns.ndim > 1:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Input patterns tensor must be scalar or vector, but had shape: {format_dims(patterns.shape)}",
        )
    found = [os.fsencode(path) for p in patterns.reshape(-1) for path in get_matching_files(p)]
    return as_bytes_array(np.array(sorted(found), object))


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The names of the files that fit the shell pattern, or any of the patterns, in alphabetical order.

    `pattern`: a string scalar or vector. Returns a string vector, empty where nothing fits; the file system
    is asked in every step.
    """
    return matching_files_op(pattern, name=name)
