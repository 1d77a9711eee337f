"""Folded images and filters: the same convolution, and gradients by the transposes."""

from __future__ import annotations

import pytest
import torch

from flowstone.lowering.convolutions.folded_images import (
    fold_filter,
    fold_images,
    unfold_filter,
    unfold_images,
)


@pytest.mark.parametrize("taps", [3, 4, 5, 6])
@pytest.mark.parametrize(("above", "beside"), [(0, 0), (1, 2)])
@pytest.mark.parametrize(("height", "width"), [(11, 12), (8, 9)])
def test_folded_images_by_folded_filters(taps, above, beside, height, width) -> None:
    x = torch.randn(2, height, width, 3, dtype=torch.float64, requires_grad=True)
    w = torch.randn(taps, taps, 3, 5, dtype=torch.float64, requires_grad=True)
    padded = torch.nn.functional.pad(x.permute(0, 3, 1, 2), (beside, beside, above, above))
    y = torch.conv2d(padded, w.permute(3, 2, 0, 1), stride=2)
    half = (taps + 1) // 2
    dims = (2, y.shape[2] + half - 1, y.shape[3] + half - 1, 12)
    folded, filters = fold_images(x.detach(), dims, above, beside), fold_filter(w.detach())
    folded.requires_grad_(), filters.requires_grad_()
    found = torch.conv2d(folded.permute(0, 3, 1, 2), filters.permute(3, 2, 0, 1))
    torch.testing.assert_close(found, y)
    dy = torch.randn_like(y)
    by_images, by_filter = torch.autograd.grad(y, (x, w), dy)
    by_folded, by_folded_filter = torch.autograd.grad(found, (folded, filters), dy)
    torch.testing.assert_close(unfold_images(by_folded, tuple(x.shape), above, beside), by_images)
    torch.testing.assert_close(unfold_filter(by_folded_filter, taps), by_filter)
