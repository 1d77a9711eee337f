"""Parts of strings by position and length.

A position counts from 0, or from the end if it is negative; it may be the string's length, where nothing is
left. A part ends with the string at the latest. A unit is a byte, or a UTF-8 character: a byte with those
after it that can only continue one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.kernel import CPU, Environment
from flowstone.framework.node import Node
from flowstone.framework.operation import op
from flowstone.framework.shape import Dims, broadcast, format_dims
from flowstone.framework.tensor import Tensor
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import Strings, as_array, as_list
from flowstone.ops.strings.packed import lengths_of

__all__ = ["substr"]

substr_op = op(
    "Substr",
    "input: string, pos: T, len: T -> output: string",
    "T: type in [int32, int64] ; unit: string in ['BYTE', 'UTF8_CHAR'] = 'BYTE'",
    by_element=True,
)
substr_op.no_gradient()


@substr_op.infer
def _(node: Node) -> Dims:
    dims, pos, size = node.dims(0), node.dims(1), node.dims(2)
    if pos is None or size is None:
        return None
    if len(pos) != len(size) or any(a != b for a, b in zip(pos, size) if None not in (a, b)):
        raise ValueError(f"pos and len shapes must match: {format_dims(pos)} vs. {format_dims(size)}")
    return broadcast(dims, pos)


@substr_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[..., Strings]:
    cut, cut_all = _cut_bytes, _cut_all_bytes
    if node.attributes["unit"] != "BYTE":
        cut, cut_all = _cut_characters, _cut_all_characters

    def parts(strings: Strings, pos: torch.Tensor, size: torch.Tensor) -> Strings:
        if pos.shape != size.shape:
            raise invalid(
                "pos and len should have the same shape, got: "
                f"{format_dims(tuple(pos.shape))} vs. {format_dims(tuple(size.shape))}"
            )
        if not pos.dim():
            return as_array(cut_all(as_list(strings), int(pos), int(size)), strings.shape)
        try:
            texts, starts, sizes = np.broadcast_arrays(strings, pos.numpy(), size.numpy())
        except ValueError:
            shapes = f"{format_dims(strings.shape)} vs. {format_dims(tuple(pos.shape))}"
            raise invalid(f"Incompatible shapes: {shapes}") from None
        rows = zip(range(texts.size), as_list(texts), starts.reshape(-1).tolist(), sizes.reshape(-1).tolist())
        return as_array([cut(*row) for row in rows], texts.shape)

    return parts


def _cut_all_bytes(strings: list[bytes], pos: int, size: int) -> list[bytes]:
    shortest = pos if pos >= 0 else -pos
    lengths = lengths_of(strings)
    if lengths.size and lengths.min() < shortest:
        index = int(np.argmax(lengths < shortest))
        raise _out_of_range(index, pos, f" {strings[index]!r}")
    stop = pos + size
    if size < 0 or pos < 0 <= stop:
        return [each[pos:] for each in strings]
    return [each[pos:stop] for each in strings]


def _cut_bytes(index: int, string: bytes, pos: int, size: int) -> bytes:
    if not -len(string) <= pos <= len(string):
        raise _out_of_range(index, pos, f" {string!r}")
    start = pos + len(string) if pos < 0 else pos
    return string[start:] if size < 0 else string[start : start + size]


def _cut_all_characters(strings: list[bytes], pos: int, size: int) -> list[bytes]:
    return [_cut_characters(index, each, pos, size) for index, each in enumerate(strings)]


def _cut_characters(index: int, string: bytes, pos: int, size: int) -> bytes:
    starts = _character_starts(string)
    if not -len(starts) <= pos <= len(starts) or (pos < 0 and size < 0):
        raise _out_of_range(index, pos, "")
    start = pos + len(starts) if pos < 0 else pos
    ends = [*starts, len(string)]
    return string[ends[start] : ends[min(start + max(size, 0), len(starts))]]


def _character_starts(string: bytes) -> Any:
    """Where the characters of a string begin."""
    if string.isascii():
        return range(len(string))
    continues = (np.frombuffer(string, np.uint8) & 0xC0) == 0x80
    continues[0] = False
    return np.flatnonzero(~continues).tolist()


def _out_of_range(index: int, pos: int, string: str) -> Exception:
    return invalid(f"pos {pos} out of range for string{string} at index {index}")


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The part of each string that begins at `pos` and has `len` units, or fewer where the string ends.

    `pos` and `len` (int32 or int64) have one shape, with which `input` broadcasts. `unit`: 'BYTE' or
    'UTF8_CHAR'. A step raises InvalidArgumentError for a position outside the string.
    """
    return substr_op(input, pos, len, unit=unit, name=name)
