"""Convolutions whose windows skip every other position, as convolutions of smaller images that skip none.

Two by two positions of an image, with the padding before it, become four times as many channels. A filter of
k taps then has (k + 1) / 2, of which some are zero: a filter of five by five becomes one of three by three,
one of three by three or four by four one of two by two, which are convolved in tiles.

    results[i] = sum over k of images[2 i + k] filter[k]
               = sum over j, b of folded[i + j, b] filter[2 j + b]
"""

from __future__ import annotations

import torch

__all__: list[str] = []


def fold_images(images: torch.Tensor, dims: tuple[int, ...], above: int, beside: int) -> torch.Tensor:
    """Images [batch, height, width, channels], with so many zeros above and beside them, as images of `dims`,
    [batch, rows, columns, 4 * channels]; what these have no room for is left out.
    """
    batch, rows, columns, _ = dims
    channels = images.shape[3]
    found = images.new_zeros((batch, 2 * rows, 2 * columns, channels))
    seen = _overlap(found, images, above, beside)
    seen[0].copy_(seen[1])
    parts = found.view(batch, rows, 2, columns, 2, channels)
    return parts.permute(0, 1, 3, 2, 4, 5).reshape(dims)


def unfold_images(folded: torch.Tensor, dims: tuple[int, ...], above: int, beside: int) -> torch.Tensor:
    """The transpose of `fold_images`: images of `dims`, zero where the folded ones have no room."""
    batch, rows, columns, channels = folded.shape
    parts = folded.view(batch, rows, columns, 2, 2, channels // 4).permute(0, 1, 3, 2, 4, 5)
    whole = parts.reshape(batch, 2 * rows, 2 * columns, channels // 4)
    complete = 2 * rows >= above + dims[1] and 2 * columns >= beside + dims[2]
    found = folded.new_empty(dims) if complete else folded.new_zeros(dims)
    seen = _overlap(whole, found, above, beside)
    seen[1].copy_(seen[0])
    return found


def _overlap(
    padded: torch.Tensor, images: torch.Tensor, above: int, beside: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The positions that both have."""
    height = min(images.shape[1], padded.shape[1] - above)
    width = min(images.shape[2], padded.shape[2] - beside)
    inner = padded.narrow(1, above, height).narrow(2, beside, width)
    return inner, images.narrow(1, 0, height).narrow(2, 0, width)


def fold_filter(filters: torch.Tensor) -> torch.Tensor:
    """A filter [k, k, channels, outputs] as [j, j, 4 * channels, outputs], 2 j = k or k + 1."""
    taps, _, channels, outputs = filters.shape
    half = (taps + 1) // 2
    whole = filters.new_zeros((2 * half, 2 * half, channels, outputs))
    whole[:taps, :taps].copy_(filters)
    parts = whole.view(half, 2, half, 2, channels, outputs).permute(0, 2, 1, 3, 4, 5)
    return parts.reshape(half, half, 4 * channels, outputs)


def unfold_filter(folded: torch.Tensor, taps: int) -> torch.Tensor:
    """The transpose of `fold_filter`: a filter of so many taps."""
    half, _, channels, outputs = folded.shape
    parts = folded.reshape(half, half, 2, 2, channels // 4, outputs).permute(0, 2, 1, 3, 4, 5)
    return parts.reshape(2 * half, 2 * half, channels // 4, outputs)[:taps, :taps].contiguous()
