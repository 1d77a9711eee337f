"""What the native tier offers to kernels of images, in slots as those of `machine_code.py`.

`sampler(images, nearest)` crops, `box_choice(softly)` chooses boxes that overlap little, `projection`,
`glimpse_cut`, `box_drawing` and `colour_change(name, dtype)` change images, `cut_windows(dtype)` gives
gradients of fractional pooling, `resampler()` weighted sums of rows and columns. They are None where there
is no machine code; kernels then do the same by NumPy and ATen, with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from flowstone.framework.machine.machine_code import Slot

__all__ = [
    "BoxChoice",
    "BoxDrawing",
    "ColourChange",
    "CutWindows",
    "GlimpseCut",
    "Projection",
    "Resampler",
    "Sampler",
    "box_choice",
    "box_drawing",
    "colour_change",
    "cut_windows",
    "glimpse_cut",
    "projection",
    "resampler",
    "sampler",
]


class BoxChoice(Protocol):
    """Choices of `ops/images/greedy_choice.py`, among boxes [n, 4] by scores [n]; float32, on the host."""

    def choose(
        self, boxes: torch.Tensor, scores: torch.Tensor, limit: int, threshold: float, least: float
    ) -> torch.Tensor:
        """`chosen_boxes`."""

    def choose_each(
        self, boxes: torch.Tensor, scores: torch.Tensor, limit: int, threshold: float, least: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`chosen_boxes` in each class of each image: the numbers, [batch, classes, at most `limit`], and how
        many there are; `boxes` [batch, n, 1 or classes, 4], `scores` [batch, n, classes]."""

    def choose_softly(
        self, boxes: torch.Tensor, scores: torch.Tensor, limit: int, least: float, sigma: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`softly_chosen`."""


class BoxDrawing(Protocol):
    """Boxes drawn into images on the host (`ops/images/box_drawing.py`)."""

    def __call__(self, images: torch.Tensor, boxes: torch.Tensor, colours: torch.Tensor) -> torch.Tensor:
        """New images; there are colours, of at least as many channels."""


class ColourChange(Protocol):
    """Other colours of float32 images on the host (`ops/images/colours.py`), of three channels."""

    def __call__(self, images: torch.Tensor, number: float = 0.0) -> torch.Tensor:
        """New images; `number`: by how many sixths of the circle hues are turned, from -6 to 6, or what
        multiplies saturations."""


class CutWindows(Protocol):
    """Gradients of fractional pooling on the host (`ops/networks/fractional_pooling.py`), of images
    [batch, height, width, channels] of a type. Windows along an axis: their first places, and how many."""

    def to_largest(
        self, x: torch.Tensor, dy: torch.Tensor, rows: Sequence[torch.Tensor], columns: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        """That for the images x, of that for their windows' largest elements."""

    def to_all(
        self,
        dy: torch.Tensor,
        rows: Sequence[torch.Tensor],
        columns: Sequence[torch.Tensor],
        shape: Sequence[int],
    ) -> torch.Tensor | None:
        """That for images of this shape, of that for their windows' means; None for integers."""


class GlimpseCut(Protocol):
    """Windows of float32 images on the host (`ops/images/glimpses.py`)."""

    def __call__(
        self, x: torch.Tensor, offsets: torch.Tensor, numbers: Sequence[float], out: torch.Tensor
    ) -> bool:
        """Copies to the windows `out` what is in the images; whether that is all of them. A window begins at
        ``(offset a) b + c - d``, with four `numbers` for the rows, then for the columns."""


class Projection(Protocol):
    """Images through projective transforms (`ops/images/projective_transforms.py`), on the host."""

    def __call__(
        self, x: torch.Tensor, transforms: torch.Tensor, size: tuple[int, int], fill: torch.Tensor
    ) -> torch.Tensor:
        """Images of `size`; `transforms` float32 [1 or batch, 8], `fill` float32 [1]."""


class Resampler(Protocol):
    """Weighted sums of rows and columns (`ops/images/weighted_sampling.py`), on the host."""

    def __call__(
        self,
        shape: Sequence[int],
        vertical: tuple[torch.Tensor, torch.Tensor],
        horizontal: tuple[torch.Tensor, torch.Tensor],
    ) -> Callable[[torch.Tensor], torch.Tensor] | None:
        """`sample` as a function of float32 images of a shape with elements, by places (int64) and weights
        (float32), each [results, terms] and contiguous; None if lines are too long."""


class Sampler(Protocol):
    """Crops of images [batch, height, width, channels] of a type, on the host (`ops/images/box_crops.py`).

    `boxes`: float32 [n, 4], `images`: int32 [n]. What a function gives is None if a box is not finite or its
    image not there.
    """

    def crops(
        self, x: torch.Tensor, boxes: torch.Tensor, images: torch.Tensor, size: tuple[int, int], beyond: float
    ) -> torch.Tensor | None:
        """The crops, float32 [n, *size, channels]; `beyond` where a place is not in the image."""

    def spread(
        self, dy: torch.Tensor, boxes: torch.Tensor, images: torch.Tensor, shape: tuple[int, ...]
    ) -> torch.Tensor | None:
        """The gradient for images of this shape, float32, of that for the crops."""

    def box_flows(
        self, dy: torch.Tensor, x: torch.Tensor, boxes: torch.Tensor, images: torch.Tensor
    ) -> torch.Tensor | None:
        """The gradient for the boxes, of that for the crops; the images are `x`."""


box_choice: Slot[[bool], BoxChoice] = Slot()
box_drawing: Slot[[torch.dtype | None], BoxDrawing] = Slot()
colour_change: Slot[[str, torch.dtype | None], ColourChange] = Slot()
cut_windows: Slot[[torch.dtype | None], CutWindows] = Slot()
glimpse_cut: Slot[[], GlimpseCut] = Slot()
projection: Slot[[torch.dtype | None, str, bool], Projection] = Slot()
resampler: Slot[[], Resampler] = Slot()
sampler: Slot[[torch.dtype | None, bool], Sampler] = Slot()
