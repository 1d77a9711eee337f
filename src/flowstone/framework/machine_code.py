"""What the native tier offers to kernels of the rooms below it: slots, which `native` fills.

`byte_strings()` is what reads and makes many strings of bytes at once, `random_words()` what computes many
blocks of random words (`native/random_words.py`), `sparse_product(values, indices)` what multiplies sparse
matrices of these types, `row_moves()` what moves the rows of shuffling queues. They are None where there is
no machine code; all but `sparse_product` also where there is none yet. Without them kernels do the same by
Python, NumPy and ATen, with the same results (products within rounding).

>>> offered = byte_strings()
>>> offered is None or isinstance(offered, ByteStrings)
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, runtime_checkable

import torch

__all__ = [
    "ByteStrings",
    "Move",
    "RandomCode",
    "RowMoves",
    "Slot",
    "SparseProduct",
    "byte_strings",
    "random_words",
    "row_moves",
    "sparse_product",
]

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
Move = Callable[..., None]
"""A function of addresses and whole numbers, which it does not check."""


@runtime_checkable
class ByteStrings(Protocol):
    """Lists of bytes, and buffers (uint8) of many strings, with their places and lengths (int64)."""

    def lengths(self, strings: list[bytes]) -> Any:
        """The number of bytes of each string; None if one is no bytes."""

    def packed(self, strings: list[bytes], room: int) -> tuple[Any, Any, Any] | None:
        """A buffer, the places and the lengths of the strings in it, which a zero byte follows each, and
        behind the last `room` of them; None if one is no bytes."""

    def pieces(self, buffer: Any, starts: Any, lengths: Any) -> Any:
        """The parts of the buffer as an object array of bytes."""


class RandomCode(NamedTuple):
    """Blocks of random words, and of uniform numbers; the arguments are addresses and integers.

    `words`: (address of how many blocks to skip, how many of these there are, the counter's lower and upper
    64 bits, the key's two words, address of the results); what is at the addresses is int64. `floats`: the
    same with, first, how many blocks lie from one to the next; the results are float32.
    """

    words: Callable[[int, int, int, int, int, int, int], None]
    floats: Callable[[int, int, int, int, int, int, int], None]


class RowMoves(Protocol):
    """Rows of memory by *slots*, an array of numbers. All arrays are int64, but for draws (float64)."""

    @property
    def mix(self) -> Move:
        """(slots, first, filled, draws): exchanges the slot at each place i from `first` to `filled` with the
        one at int(draw * (i + 1)), where the draws are below 1."""

    @property
    def note(self) -> Move:
        """(addresses, owners, slots, count, start, pitch, owner): what the slots' addresses and owners are,
        for rows that lie `pitch` bytes apart from `start` on."""

    @property
    def release(self) -> Move:
        """(owners, left, slots, count, ended): the owner of each slot, which becomes -1, has one row less.
        `ended` becomes how many owners have nothing left now, and behind that their numbers."""

    @property
    def collect(self) -> Move:
        """(addresses, slots, count, size, out): copies the rows of `size` bytes at the slots' addresses."""

    @property
    def pick(self) -> Move:
        """(rows, slots, count, size, out): copies the rows at the slots of an array of rows."""

    @property
    def place(self) -> Move:
        """(rows, slots, count, size, values): copies values to the slots of an array of rows."""


class SparseProduct(Protocol):
    """The product of a sparse matrix and a dense one, on the host."""

    def __call__(
        self, indices: torch.Tensor, values: torch.Tensor, dense: torch.Tensor, height: int, adjoint: bool
    ) -> torch.Tensor | None:
        """[height, columns], of the elements' `indices` [count, 2], `values`, and `dense` [inner, columns].
        None if an element is out of bounds. `adjoint`: the indices are (column, row)."""


class Slot(Generic[_Given, _Made]):
    """What kernels ask for, and `native` offers: None until it does, and whenever it has nothing."""

    def __init__(self) -> None:
        self._ask: Callable[_Given, _Made | None] | None = None

    def offer(self, ask: Callable[_Given, _Made | None]) -> None:
        """Has calls ask this function."""
        self._ask = ask

    def __call__(self, *arguments: _Given.args, **named: _Given.kwargs) -> _Made | None:
        return None if self._ask is None else self._ask(*arguments, **named)


byte_strings: Slot[[], ByteStrings] = Slot()
random_words: Slot[[], RandomCode] = Slot()
row_moves: Slot[[], RowMoves] = Slot()
sparse_product: Slot[[torch.dtype, torch.dtype], SparseProduct] = Slot()
