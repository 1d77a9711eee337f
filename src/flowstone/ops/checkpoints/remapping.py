"""Operations that start a model from one with other vocabularies: where each entry was, and the matrix with
rows and columns in the new order. They wait for the disk in threads of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, AsyncCall, Environment
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, format_dims
from flowstone.io.checkpoint_files.checkpoints import open_checkpoint
from flowstone.io.checkpoint_files.slices import TensorSlice
from flowstone.io.file_system import as_path
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.checkpoints.saving import scalar_text
from flowstone.ops.lookup.table_files import TextFile

__all__: list[str] = []

Array = np.ndarray[Any, Any]

_NONE = -1  # in place of the number of an entry that the old vocabulary does not have


# ---- vocabularies

generate_vocab_remapping_op = op(
    "GenerateVocabRemapping",
    "new_vocab_file: string, old_vocab_file: string -> remapping: int64, num_present: int32",
    "new_vocab_offset: int >= 0 ; num_new_vocab: int >= 0 ; old_vocab_size: int >= -1 = -1",
    asynchronous=True,
    capturable=False,
)
generate_vocab_remapping_op.not_differentiable()


@generate_vocab_remapping_op.infer
def _(node: Node) -> Shapes:
    return [(node.attributes["num_new_vocab"],), ()]


@generate_vocab_remapping_op.kernel(CPU)
def _(node: Node, env: Environment) -> AsyncCall:
    attributes = node.attributes
    first, count = attributes["new_vocab_offset"], attributes["num_new_vocab"]

    def find(new_file: Array, old_file: Array) -> tuple[Any, ...]:
        new_path, old_path = (as_path(scalar_text(each, "The vocabulary")) for each in (new_file, old_file))
        numbers = _numbers(TextFile(old_path, b"\t", attributes["old_vocab_size"]).lines, old_path)
        words = TextFile(new_path, b"\t", -1).lines
        if first + count > len(words):
            raise invalid(
                f"{new_path} has {len(words)} lines, but entries {first} to {first + count} are asked for"
            )
        found = np.array([numbers.get(word, _NONE) for word in words[first : first + count]], np.int64)
        present = int((found != _NONE).sum())
        return torch.from_numpy(found), torch.tensor(present, dtype=torch.int32)

    return env.blocking(find)


def _numbers(words: list[bytes], path: str) -> dict[bytes, int]:
    """The number of each word. FailedPreconditionError for a word twice."""
    numbers: dict[bytes, int] = {}
    for number, word in enumerate(words):
        if numbers.setdefault(word, number) != number:
            text = word.decode(errors="backslashreplace")
            raise errors.FailedPreconditionError(
                None, None, f"{path} has the entry {text} twice, in lines {numbers[word]} and {number}"
            )
    return numbers


# ---- matrices

load_and_remap_matrix_op = op(
    "LoadAndRemapMatrix",
    "ckpt_path: string, old_tensor_name: string, row_remapping: int64, col_remapping: int64, "
    "initializing_values: float -> output_matrix: float",
    "num_rows: int >= 0 ; num_cols: int >= 1 ; max_rows_in_memory: int = -1",
    stateful=True,
    asynchronous=True,
    capturable=False,
)
load_and_remap_matrix_op.not_differentiable()


@load_and_remap_matrix_op.infer
def _(node: Node) -> Dims:
    return node.attributes["num_rows"], node.attributes["num_cols"]


@load_and_remap_matrix_op.kernel(CPU)
def _(node: Node, env: Environment) -> AsyncCall:
    attributes = node.attributes
    rows, columns = attributes["num_rows"], attributes["num_cols"]

    def load(path: Array, name: Array, row_map: Any, column_map: Any, values: Any) -> tuple[Any, ...]:
        tensor = scalar_text(name, "old_tensor_name").decode("utf-8", "surrogateescape")
        row_map, column_map = row_map.numpy(), column_map.numpy()
        _check_map("row", row_map, rows, "num_rows")
        _check_map("col", column_map, columns if column_map.size else 0, "num_cols")
        with open_checkpoint(scalar_text(path, "ckpt_path")) as reader:
            shape = _checked_shape(reader.entry(tensor), tensor, None if column_map.size else columns)
            _check_numbers("row", row_map, shape[0], tensor)
            _check_numbers("col", column_map, shape[1], tensor)
            found = _rows(reader, tensor, row_map, shape, attributes["max_rows_in_memory"])
        if column_map.size:
            found = found[:, np.maximum(column_map, 0)]
        missing = np.zeros((rows, columns), np.bool_)
        missing[row_map < 0] = True
        if column_map.size:
            missing[:, column_map < 0] = True
        _fill(found, missing, values.numpy().reshape(-1))
        return (torch.from_numpy(found),)

    return env.blocking(load)


def _rows(reader: Any, tensor: str, row_map: Array, shape: tuple[int, int], most: int) -> Array:
    """The rows of the old matrix in the new order, read at most `most` at once, unless that is below 1."""
    found = np.zeros((len(row_map), shape[1]), np.float32)
    there = row_map[row_map >= 0]
    if not there.size:
        return found
    first, last = int(there.min()), int(there.max()) + 1
    step = most if most > 0 else last - first
    for begin in range(first, last, step):
        size = min(step, last - begin)
        chosen = (row_map >= begin) & (row_map < begin + size)
        if chosen.any():
            part = TensorSlice(((begin, size), (0, shape[1])))
            found[chosen] = reader.read(tensor, part)[row_map[chosen] - begin]
    return found


def _fill(matrix: Array, missing: Array, values: Array) -> None:
    """Puts the values in the places that are missing, row by row. InvalidArgumentError unless they are as
    many."""
    places = int(missing.sum())
    if places > values.size:
        raise invalid(
            f"initializing_values contained {values.size} elements, but more missing values remain."
        )
    if places < values.size:
        raise invalid(
            f"initializing_values contained {values.size} elements, but only {places} elements were used to "
            "fill in missing values."
        )
    matrix[missing] = values


def _check_map(what: str, numbers: Array, count: int, attribute: str) -> None:
    """Errors for a remapping of another size, or that takes an old entry twice."""
    if numbers.ndim != 1:
        raise invalid(
            f"The `{what}_remapping` tensor must be 1-D, got a tensor of shape {format_dims(numbers.shape)}"
        )
    if len(numbers) != count:
        raise invalid(
            f"Size of {what}_remapping is {len(numbers)} instead of being equal to {attribute}={count}"
        )
    used = numbers[numbers >= 0]
    old, counts = np.unique(used, return_counts=True)
    if (counts > 1).any():
        twice = old[counts > 1][0]
        first, second = np.flatnonzero(numbers == twice)[:2]
        raise errors.UnimplementedError(
            None,
            None,
            f"Old ID {twice} is mapped to both new ID {first} and {second}, which is not supported.",
        )


def _check_numbers(what: str, numbers: Array, size: int, tensor: str) -> None:
    if numbers.size and numbers.max() >= size:
        raise invalid(f"{what}_remapping names entry {numbers.max()}, but tensor {tensor} has only {size}")


def _checked_shape(entry: Any, tensor: str, columns: int | None) -> tuple[int, int]:
    """The shape of the old matrix. InvalidArgumentError unless it is one of floats with so many columns."""
    if len(entry.shape) != 2:
        raise invalid(
            f"Tensor {tensor} has shape {format_dims(entry.shape)} of invalid rank {len(entry.shape)} "
            "instead of expected shape of rank 2."
        )
    if entry.dtype is not dtypes.float32:
        raise invalid(f"Tensor {tensor} has invalid type {entry.dtype.name} instead of expected type float32")
    if columns is not None and entry.shape[1] != columns:
        raise invalid(
            f"Tensor {tensor} has shape {format_dims(entry.shape)}, where the size of its 2nd dimension is "
            f"{entry.shape[1]} instead of being equal to num_cols={columns}"
        )
    return entry.shape[0], entry.shape[1]
