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

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine import string_code
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims, broadcast, format_dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import Strings, as_array, flat
from flowstone.ops.strings.packed import BLOCK, Packed

__all__ = ["substr"]

_FEW = 200
Cut = Callable[[Strings, Any, Any, bool], Any]

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
    pos, size = size if pos is None else pos, pos if size is None else size
    if pos is None or size is None:
        return None
    if len(pos) != len(size) or any(a != b for a, b in zip(pos, size) if None not in (a, b)):
        raise ValueError(f"pos and len shapes must match: {format_dims(pos)} vs. {format_dims(size)}")
    return broadcast(dims, pos)


@substr_op.kernel(CPU)  # strings are in host memory
def _(node: Node, env: Environment) -> Callable[..., Strings]:
    in_bytes = node.attributes["unit"] == "BYTE"

    def parts(strings: Strings, pos: torch.Tensor, size: torch.Tensor) -> Strings:
        if pos.shape != size.shape:
            raise invalid(
                "pos and len should have the same shape, got: "
                f"{format_dims(tuple(pos.shape))} vs. {format_dims(tuple(size.shape))}"
            )
        try:
            texts, starts, sizes = np.broadcast_arrays(strings, pos.numpy(), size.numpy())
        except ValueError:
            shapes = f"{format_dims(strings.shape)} vs. {format_dims(tuple(pos.shape))}"
            raise invalid(f"Incompatible shapes: {shapes}") from None
        cut: Cut = _cut_few if texts.size < _FEW else _cut_many
        found = cut(flat(texts), starts.reshape(-1), sizes.reshape(-1), in_bytes)
        return as_array(found, texts.shape)

    return parts


# ---- few strings, one after the other


def _cut_few(strings: Strings, starts: Any, sizes: Any, in_bytes: bool) -> list[bytes]:
    cut = _cut_bytes if in_bytes else _cut_characters
    rows = zip(range(len(strings)), strings, starts.tolist(), sizes.tolist())
    return [cut(*row) for row in rows]


def _cut_bytes(index: int, string: bytes, pos: int, size: int) -> bytes:
    if not -len(string) <= pos <= len(string):
        raise _out_of_range(index, pos, f" {string!r}")
    start = pos + len(string) if pos < 0 else pos
    return string[start:] if size < 0 else string[start : start + size]


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


# ---- many strings, end to end


def _cut_many(strings: Strings, starts: Any, sizes: Any, in_bytes: bool) -> Strings:
    code = string_code.text_pieces()
    parts = None if code is None else code.parts(strings, starts, sizes, in_bytes)
    if parts is not None:
        return parts  # type: ignore[no-any-return]
    found = np.empty(len(strings), object)
    for i in range(0, len(strings), BLOCK):
        block = slice(i, i + BLOCK)
        found[block] = _cut_block(i, Packed(strings[block]), starts[block], sizes[block], in_bytes)
    return found


def _cut_block(index: int, packed: Packed, pos: Any, size: Any, in_bytes: bool) -> Strings:
    """The parts of the strings; `index` is that of the first."""
    first, counts, begins = packed.starts, packed.lengths, None
    if not in_bytes:
        begins, first, counts = packed.characters()
    wrong = (pos < -counts) | (pos > counts)
    if not in_bytes:
        wrong |= (pos < 0) & (size < 0)
    if wrong.any():
        i = int(np.argmax(wrong))
        string = packed.pieces(packed.starts[i : i + 1], packed.lengths[i : i + 1])[0]
        raise _out_of_range(index + i, int(pos[i]), f" {string!r}" if in_bytes else "")
    start = np.where(pos < 0, pos + counts, pos)
    if in_bytes:
        stop = np.where(size < 0, counts, start + np.minimum(size, counts - start))
    else:
        stop = start + np.clip(size, 0, counts - start)
    a, b = first + start, first + stop
    if begins is not None:
        a, b = begins[a], begins[b]
    return packed.pieces(a, b - a)


def _out_of_range(index: int, pos: int, string: str) -> Exception:
    return invalid(f"pos {pos} out of range for string{string} at index {index}")


@dispatched("unary")
def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The part of each string that begins at `pos` and has `len` units, or fewer where the string ends.

    `pos` and `len` (int32 or int64) have one shape, with which `input` broadcasts. `unit`: 'BYTE' or
    'UTF8_CHAR'. A step raises InvalidArgumentError for a position outside the string.
    """
    return substr_op(input, pos, len, unit=unit, name=name)
