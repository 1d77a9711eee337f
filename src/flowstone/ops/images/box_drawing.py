"""Boxes drawn into images as lines of one pixel, each in the next colour.

A box is ``[y1, x1, y2, x2]`` where 0 and 1 are the first and last row or column. Lines beyond the image are
not drawn, nor is a box whose lower corner is greater than the upper one. A later box covers earlier ones: the
number of the last box is worked out for each pixel of a line, then all get their colours at once. On a host
machine code draws box by box, where there is the native tier.
"""

from __future__ import annotations

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine.image_code import BoxDrawing, box_drawing
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank

_TYPES = "T: type in [float, half] = float"
# Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia.
_COLOURS = (
    (1, 1, 0, 1),
    (0, 0, 1, 1),
    (1, 0, 0, 1),
    (0, 1, 0, 1),
    (0.5, 0, 0.5, 1),
    (0.5, 0.5, 0, 1),
    (0.5, 0, 0, 1),
    (0, 0, 0.5, 1),
    (0, 1, 1, 1),
    (1, 0, 1, 1),
)
_FAR = 2.0**31  # pixels, beyond every image


def _infer_drawn(node: Node) -> Dims:
    images, boxes = require_rank(node.dims(0), 4), require_rank(node.dims(1), 3)
    if images[3] not in (None, 1, 3, 4):
        raise ValueError(f"Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), is {images[3]}")
    if boxes[2] not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {boxes[2]}")
    return node.dims(0)


def _check(images: torch.Tensor, boxes: torch.Tensor) -> None:
    if images.dim() != 4:
        raise invalid(f"The rank of the images should be 4: {list(images.shape)}")
    if boxes.dim() != 3:
        raise invalid(f"The rank of the boxes tensor should be 3: {list(boxes.shape)}")
    if len(images) != len(boxes):
        raise invalid(f"The batch sizes should be the same: {len(images)} images, {len(boxes)} of boxes")
    if images.shape[3] not in (1, 3, 4):
        raise invalid(f"Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), is {images.shape[3]}")
    if boxes.shape[2] != 4:
        raise invalid(f"The boxes should have 4 coordinates: {list(boxes.shape)}")


def _segments(
    corners: tuple[torch.Tensor, ...], drawn: torch.Tensor, sizes: tuple[int, int]
) -> list[tuple[torch.Tensor, ...]]:
    """The lines as rectangles (first row, last row, first column, last column, which are drawn)."""
    y1, x1, y2, x2 = corners
    height, width = sizes
    top, bottom = y1.clamp(min=0), y2.clamp(max=height - 1)
    left, right = x1.clamp(min=0), x2.clamp(max=width - 1)
    return [
        (top, top, left, right, drawn & (y1 >= 0)),
        (bottom, bottom, left, right, drawn & (y2 < height)),
        (top, bottom, left, left, drawn & (x1 >= 0)),
        (top, bottom, right, right, drawn & (x2 < width)),
    ]


def _lines(boxes: torch.Tensor, sizes: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """The numbers of the pixels that are drawn, and for each that of the last box with a line there; flat."""
    batch, count, _ = boxes.shape
    height, width = sizes
    y1, x1, y2, x2 = boxes.nan_to_num(nan=_FAR).reshape(-1, 4).unbind(1)
    rows, columns = height - 1, width - 1
    corners = tuple(
        (place * length).clamp(-_FAR, _FAR).long()
        for place, length in ((y1, rows), (x1, columns), (y2, rows), (x2, columns))
    )
    y1, x1, y2, x2 = corners
    seen = (y1 <= y2) & (x1 <= x2) & (y1 < height) & (y2 >= 0) & (x1 < width) & (x2 >= 0)
    seen &= ~boxes.isnan().any(2).reshape(-1)
    last_box = torch.zeros(batch * height * width, dtype=torch.int64, device=boxes.device)
    pixels = []
    for first, last, left, right, drawn in _segments(corners, seen, sizes):
        number = torch.nonzero(drawn).squeeze(1)
        high, wide = (last - first + 1)[number], (right - left + 1)[number]
        of = torch.repeat_interleave(torch.arange(len(number), device=boxes.device), high * wide)
        start = torch.cumsum(high * wide, 0) - high * wide
        step = torch.arange(len(of), device=boxes.device) - start[of]
        row, column = first[number][of] + step // wide[of], left[number][of] + step % wide[of]
        pixels.append(((number // count)[of] * height + row) * width + column)
        last_box.scatter_reduce_(0, pixels[-1], (number % count)[of], "amax")
    drawn_pixels = torch.cat(pixels)
    return drawn_pixels, last_box[drawn_pixels]


def _draw(
    images: torch.Tensor, boxes: torch.Tensor, colours: torch.Tensor, native: BoxDrawing | None
) -> torch.Tensor:
    _, height, width, channels = images.shape
    if 0 in images.shape or not boxes.numel():
        return images.clone()
    if native is not None:
        return native(images, boxes, colours)
    pixels, numbers = _lines(boxes, (height, width))
    result = images.clone(memory_format=torch.contiguous_format)
    # A pixel of several lines gets the same colour several times.
    result.view(-1, channels)[pixels] = colours[numbers % len(colours), :channels].to(images.dtype)
    return result


def _default_colours(device: torch.device, channels: int) -> torch.Tensor:
    colours = torch.tensor(_COLOURS, dtype=torch.float32, device=device)
    return torch.ones_like(colours) if channels == 1 else colours


draw_bounding_boxes_op = op(
    "DrawBoundingBoxes", "images: T, boxes: float -> output: T", _TYPES, capturable=False
)
draw_bounding_boxes_op.infer(_infer_drawn)
draw_bounding_boxes_op.not_differentiable()


@draw_bounding_boxes_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    native = box_drawing(node.dtype(0).torch) if env.device.type == "cpu" else None

    def run(images: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        _check(images, boxes)
        return _draw(images, boxes, _default_colours(images.device, images.shape[3]), native)

    return run


draw_bounding_boxes_v2_op = op(
    "DrawBoundingBoxesV2",
    "images: T, boxes: float, colors: float -> output: T",
    _TYPES,
    capturable=False,
)
draw_bounding_boxes_v2_op.infer(lambda node: node.dims(0))
draw_bounding_boxes_v2_op.no_gradient()


@draw_bounding_boxes_v2_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    native = box_drawing(node.dtype(0).torch) if env.device.type == "cpu" else None

    def run(images: torch.Tensor, boxes: torch.Tensor, colours: torch.Tensor) -> torch.Tensor:
        _check(images, boxes)
        if colours.dim() != 2:
            raise invalid(f"colors must be a 2-D matrix but is {list(colours.shape)}")
        if not len(colours):
            return _draw(images, boxes, _default_colours(images.device, images.shape[3]), native)
        if colours.shape[1] < images.shape[3]:
            raise invalid(f"colors have {colours.shape[1]} channels, but the images have {images.shape[3]}")
        return _draw(images, boxes, colours, native)

    return run
