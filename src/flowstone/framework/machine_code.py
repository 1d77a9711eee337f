"""What the native tier offers to kernels of the rooms below it: three slots, which `native` fills.

`byte_strings()` is what reads and makes many strings of bytes at once, `random_words()` what computes many
blocks of random words, `sparse_product(values, indices)` what multiplies sparse matrices of these types. They
are None where there is no machine code, the first two also where there is none yet. Without them kernels do
the same by Python, NumPy and ATen, with the same results (products within rounding).

>>> offered = byte_strings()
>>> offered is None or isinstance(offered, ByteStrings)
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch

__all__ = [
    "ByteStrings",
    "SparseProduct",
    "byte_strings",
    "offer_byte_strings",
    "offer_random_words",
    "offer_sparse_product",
    "random_words",
    "sparse_product",
]


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


class SparseProduct(Protocol):
    """The product of a sparse matrix and a dense one, on the host."""

    def __call__(
        self, indices: torch.Tensor, values: torch.Tensor, dense: torch.Tensor, height: int, adjoint: bool
    ) -> torch.Tensor | None:
        """[height, columns], of the elements' `indices` [count, 2], `values`, and `dense` [inner, columns].
        None if an element is out of bounds. `adjoint`: the indices are (column, row)."""


_offered: list[Callable[[], ByteStrings | None]] = []
_products_offered: list[Callable[[torch.dtype, torch.dtype], SparseProduct | None]] = []
_words_offered: list[Callable[[], Callable[..., None] | None]] = []


def byte_strings() -> ByteStrings | None:
    """The machine code for strings, if there is such by now."""
    return _offered[-1]() if _offered else None


def offer_byte_strings(found: Callable[[], ByteStrings | None]) -> None:
    """Has `byte_strings` ask this function."""
    _offered[:] = [found]


def random_words() -> Callable[..., None] | None:
    """The machine code for random words, if there is such by now; see `native/random_words.py`."""
    return _words_offered[-1]() if _words_offered else None


def offer_random_words(found: Callable[[], Callable[..., None] | None]) -> None:
    """Has `random_words` ask this function."""
    _words_offered[:] = [found]


def sparse_product(values: torch.dtype, indices: torch.dtype) -> SparseProduct | None:
    """The machine code for sparse matrices of these types, if there is such."""
    return _products_offered[-1](values, indices) if _products_offered else None


def offer_sparse_product(found: Callable[[torch.dtype, torch.dtype], SparseProduct | None]) -> None:
    """Has `sparse_product` ask this function."""
    _products_offered[:] = [found]
