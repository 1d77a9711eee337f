"""Elements along the last axis at the same places in every row, of tensors of any type.

ATen's `index_select` has vectors for float32 there, and a loop that takes five times as long for other types.
So on a host contiguous elements of 4, 8 or 16 bytes are moved as one, two or four such numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

__all__: list[str] = []

_WORD = 4  # bytes of float32


def word_places(places: torch.Tensor, words: int) -> torch.Tensor:
    """The places of the words of elements that have so many."""
    return torch.add(torch.arange(words), places.long().unsqueeze(1), alpha=words).view(-1)


def picked_columns(
    x: torch.Tensor,
    places: torch.Tensor,
    of_words: Callable[[torch.Tensor, int], torch.Tensor] = word_places,
) -> torch.Tensor:
    """[..., count], of x [..., columns] and a vector of places, int32 or int64."""
    words, rest = divmod(x.dtype.itemsize, _WORD)
    if rest or x.dtype is torch.float32 or not _is_plain(x) or not places.numel():
        return torch.index_select(x, -1, places)
    if words > 1:
        places = of_words(places, words)
    return x.view(torch.float32).index_select(-1, places).view(x.dtype)


def _is_plain(x: torch.Tensor) -> bool:
    """Whether numbers lie row by row on a host, as they are."""
    return x.ndim > 1 and x.numel() > 0 and x.is_cpu and x.is_contiguous() and not x.is_conj()
