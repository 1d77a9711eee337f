"""Boxes cut out of images and resized to one size, and the gradients for the images and the boxes.

A box is ``[y1, x1, y2, x2]`` where 0 and 1 are the centres of the first and last row or column. The crop's
corner pixels lie on the box's corners; a crop of one row or column takes the middle. A place beyond the image
gives the extrapolation value and no gradient. Where a lower corner is greater than the upper
one, the crop is mirrored. On a host machine code samples, where there is the native tier; else ATen's kernels
do, for a few boxes at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.image_code import sampler
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.images.image_resizing import NUMBERS
from flowstone.ops.networks.windows import require_rank

_METHOD = "method: string in ['bilinear', 'nearest'] = 'bilinear'"
_AT_ONCE = 2**16  # elements of crops
_BILINEAR = "method: string in ['bilinear'] = 'bilinear'"


class _Places(NamedTuple):
    """Along one dimension, for each box and crop position: the pixels on both sides, how far the place is

    from the first (float32), and whether it is in the image; each [boxes, positions].
    """

    first: torch.Tensor
    second: torch.Tensor
    share: torch.Tensor
    inside: torch.Tensor


def _steps(count: int, device: torch.device) -> torch.Tensor:
    return torch.arange(count, dtype=torch.float32, device=device)


def _positions(start: torch.Tensor, stop: torch.Tensor, length: int, count: int) -> torch.Tensor:
    """Where the crop's pixels lie, in pixels: [boxes, count]."""
    if count > 1:
        step = (stop - start) * (length - 1) / (count - 1)
        return (start * (length - 1)).unsqueeze(1) + _steps(count, start.device) * step.unsqueeze(1)
    return (0.5 * (start + stop) * (length - 1)).unsqueeze(1)


def _places(start: torch.Tensor, stop: torch.Tensor, length: int, count: int, nearest: bool) -> _Places:
    position = _positions(start, stop, length, count)
    inside = (position >= 0) & (position <= length - 1)
    position = torch.where(inside, position, torch.zeros_like(position))
    if nearest:
        pixel = torch.floor(position + 0.5).long().clamp_(max=length - 1)
        return _Places(pixel, pixel, torch.zeros_like(position), inside)
    below = torch.floor(position)
    return _Places(below.long(), torch.ceil(position).long(), position - below, inside)


class _Grid(NamedTuple):
    """The places of all crops along both dimensions and the image of each box."""

    rows: _Places
    columns: _Places
    image: torch.Tensor

    @property
    def inside(self) -> torch.Tensor:
        return self.rows.inside.unsqueeze(2) & self.columns.inside.unsqueeze(1)

    def some(self, part: slice) -> _Grid:
        """Of these boxes alone."""
        rows, columns = (_Places(*(field[part] for field in each)) for each in (self.rows, self.columns))
        return _Grid(rows, columns, self.image[part])

    def pixels(self, row: torch.Tensor, column: torch.Tensor, height: int, width: int) -> torch.Tensor:
        """The numbers of the pixels at these rows and columns in all images together, flat."""
        lines = self.image[:, None] * height + row
        return (lines.unsqueeze(2) * width + column.unsqueeze(1)).reshape(-1)


def _grid(
    boxes: torch.Tensor, image: torch.Tensor, sizes: tuple[int, int], counts: tuple[int, int], nearest: bool
) -> _Grid:
    y1, x1, y2, x2 = boxes.unbind(1)
    return _Grid(
        _places(y1, y2, sizes[0], counts[0], nearest),
        _places(x1, x2, sizes[1], counts[1], nearest),
        image.long(),
    )


def _check_shapes(boxes: torch.Tensor, image: torch.Tensor) -> None:
    if boxes.numel() == 0 and image.numel() == 0 and boxes.dim() < 3:
        return
    if boxes.dim() != 2 or boxes.shape[1] != 4:
        raise invalid(f"boxes must be 2-D with 4 columns, got shape {list(boxes.shape)}")
    if image.dim() != 1 or image.shape[0] != boxes.shape[0]:
        raise invalid(f"box_index has incompatible shape {list(image.shape)} for {boxes.shape[0]} boxes")


def _check_boxes(boxes: torch.Tensor, image: torch.Tensor, batch: int) -> None:
    if not bool(torch.isfinite(boxes).all()):
        raise invalid("boxes must be finite")
    outside = (image < 0) | (image >= batch)
    if bool(outside.any()):
        found = int(image[outside][0])
        raise errors.OutOfRangeError(None, None, f"box_index has values outside [0, {batch}): {found}")


def _images(x: torch.Tensor) -> tuple[int, int, int, int]:
    if x.dim() != 4:
        raise invalid(f"input image must be 4-D, got shape {list(x.shape)}")
    if x.shape[1] <= 0 or x.shape[2] <= 0:
        raise invalid(f"image dimensions must be positive, got shape {list(x.shape)}")
    return tuple(x.shape)  # type: ignore[return-value]


def _infer_boxes(node: Node, boxes: int, image: int) -> int | None:
    """The number of boxes. ValueError if that of boxes and that of their images differ."""
    count, four = require_rank(node.dims(boxes), 2)
    (indices,) = require_rank(node.dims(image), 1)
    if four not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {four}")
    if None not in (count, indices) and count != indices:
        raise ValueError(f"Dimensions must be equal, but are {count} and {indices}")
    return indices if count is None else count


# ---- crops

crop_and_resize_op = op(
    "CropAndResize",
    "image: T, boxes: float, box_ind: int32, crop_size: int32 -> crops: float",
    f"{NUMBERS} ; {_METHOD} ; extrapolation_value: float = 0",
    host=["crop_size"],
    later_names={"box_indices": "box_ind"},
    capturable=False,
)


@crop_and_resize_op.infer
def _(node: Node) -> Dims:
    channels = require_rank(node.dims(0), 4)[3]
    count = _infer_boxes(node, 1, 2)
    require_rank(node.dims(3), 1)
    size = node.constant_dims(3)
    if size is not None and len(size) != 2:
        raise ValueError(f"Dimension must be 2 but is {len(size)}")
    return (count, *(size or (None, None)), channels)


@crop_and_resize_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    nearest, beyond = node.attributes["method"] == "nearest", node.attributes["extrapolation_value"]
    native = sampler(node.dtype(0).torch, nearest) if env.device.type == "cpu" else None
    fixed = node.constant(3)
    known = tuple(fixed.tolist()) if fixed is not None and fixed.shape == (2,) and fixed.min() > 0 else None

    def run(x: torch.Tensor, boxes: torch.Tensor, image: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
        batch, height, width, channels = _images(x)
        _check_shapes(boxes, image)
        rows, columns = known or _crop_size(size)
        shape = (image.shape[0], rows, columns, channels)
        if not boxes.numel():
            return torch.empty(shape, dtype=torch.float32, device=x.device)
        if native and (found := native.crops(x, boxes, image, (rows, columns), beyond)) is not None:
            return found
        _check_boxes(boxes, image, batch)
        if not channels:
            return torch.empty(shape, dtype=torch.float32, device=x.device)
        grid = _grid(boxes, image, (height, width), (rows, columns), nearest)
        crops = _nearest_crops(x, grid) if nearest else _blended_crops(x, grid)
        crops = crops.view(shape)
        if not bool(grid.inside.all()):
            crops.masked_fill_(~grid.inside.unsqueeze(3), beyond)
        return crops

    return run


def _crop_size(size: torch.Tensor) -> tuple[int, int]:
    if tuple(size.shape) != (2,):
        raise invalid(f"crop_size must have two elements, got shape {list(size.shape)}")
    rows, columns = size.tolist()
    if rows <= 0 or columns <= 0:
        raise invalid(f"crop dimensions must be positive, got {[rows, columns]}")
    return rows, columns


def _nearest_crops(x: torch.Tensor, grid: _Grid) -> torch.Tensor:
    _, height, width, channels = x.shape
    pixels = grid.pixels(grid.rows.first, grid.columns.first, height, width)
    return x.reshape(-1, channels).index_select(0, pixels).float()


def _blended_crops(x: torch.Tensor, grid: _Grid) -> torch.Tensor:
    """Between the four pixels around each place."""
    each = grid.rows.share.shape[1] * grid.columns.share.shape[1] * x.shape[3]
    result = torch.empty((len(grid.image), each), device=x.device)
    for part, some in _few(grid, each):
        result[part] = _blended(x, some).view(-1, each)
    return result


def _few(grid: _Grid, each: int) -> Iterator[tuple[slice, _Grid]]:
    """The boxes a few at a time, whose crops of `each` elements fit into a cache; on a GPU all."""
    count = len(grid.image)
    step = max(_AT_ONCE // each, 1) if grid.image.device.type == "cpu" else count
    for start in range(0, count, step):
        part = slice(start, start + step)
        yield part, grid.some(part)


def _blended(x: torch.Tensor, grid: _Grid) -> torch.Tensor:
    """First along the rows, then between them."""
    _, height, width, channels = x.shape
    table, (rows, columns, _) = x.reshape(-1, channels), grid

    def line(row: torch.Tensor) -> torch.Tensor:
        left = table.index_select(0, grid.pixels(row, columns.first, height, width)).float()
        right = table.index_select(0, grid.pixels(row, columns.second, height, width)).float()
        share = columns.share.unsqueeze(1).expand(-1, row.shape[1], -1).reshape(-1, 1)
        return left.add_(right.sub_(left).mul_(share))

    top = line(rows.first)
    bottom = line(rows.second)
    share = rows.share.unsqueeze(2).expand(-1, -1, columns.share.shape[1]).reshape(-1, 1)
    return top.add_(bottom.sub_(top).mul_(share))


@crop_and_resize_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, boxes, image, _ = op.inputs
    dims = (None,) * 4 if x.dims is None else x.dims
    sizes = F.Shape(x) if None in dims else list(dims)
    method = op.attributes["method"]
    dx = None
    if x.dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
        dx = F.CropAndResizeGradImage(dy, boxes, image, sizes, T=x.dtype, method=method)
    return dx, F.CropAndResizeGradBoxes(dy, x, boxes, image), None, None


# ---- the gradient for the images

crop_and_resize_grad_image = op(
    "CropAndResizeGradImage",
    "grads: float, boxes: float, box_ind: int32, image_size: int32 -> output: T",
    f"T: type in [float, half, double] ; {_METHOD}",
    host=["image_size"],
    capturable=False,
)
crop_and_resize_grad_image.no_gradient()


@crop_and_resize_grad_image.infer
def _(node: Node) -> Dims:
    return require_rank(node.constant_dims(3), 4)


@crop_and_resize_grad_image.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    nearest, dtype = node.attributes["method"] == "nearest", node.attributes["T"].torch
    native = sampler(torch.float32, nearest) if env.device.type == "cpu" else None

    def run(dy: torch.Tensor, boxes: torch.Tensor, image: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
        if dy.dim() != 4:
            raise invalid(f"grads image must be 4-D, got shape {list(dy.shape)}")
        if tuple(size.shape) != (4,):
            raise invalid(f"image_size must have four elements, got shape {list(size.shape)}")
        batch, height, width, channels = size.tolist()
        if height <= 0 or width <= 0:
            raise invalid(f"image dimensions must be positive, got {size.tolist()}")
        _check_shapes(boxes, image)
        if boxes.numel() and dy.shape[0] != len(boxes):
            raise invalid(f"boxes and grads have incompatible shape: {list(boxes.shape)}, {list(dy.shape)}")
        if channels != dy.shape[3]:
            raise invalid(f"image_size and grads are incompatible: {size.tolist()}, {list(dy.shape)}")
        if native and boxes.numel():
            found = native.spread(dy, boxes, image, (batch, height, width, channels))
            if found is not None:
                return found.to(dtype)
        _check_boxes(boxes, image, batch)
        dx = torch.zeros((batch * height * width, channels), device=dy.device)
        if dy.numel() and boxes.numel():
            grid = _grid(boxes, image, (height, width), (dy.shape[1], dy.shape[2]), nearest)
            for part, some in _few(grid, dy[0].numel()):
                flow = dy[part].masked_fill(~some.inside.unsqueeze(3), 0)
                _spread(flow, some, (height, width), dx, nearest)
        return dx.view(batch, height, width, channels).to(dtype)

    return run


def _spread(dy: torch.Tensor, grid: _Grid, sizes: tuple[int, int], dx: torch.Tensor, nearest: bool) -> None:
    """Adds each gradient to the pixels that its place lies between."""
    rows, columns, _ = grid
    for row, vertical in ((rows.first, 1 - rows.share), (rows.second, rows.share)):
        for column, horizontal in ((columns.first, 1 - columns.share), (columns.second, columns.share)):
            weight = vertical[:, :, None, None] * horizontal[:, None, :, None]
            dx.index_add_(0, grid.pixels(row, column, *sizes), (dy * weight).reshape(-1, dy.shape[3]))
            if nearest:
                return


# ---- the gradient for the boxes

crop_and_resize_grad_boxes = op(
    "CropAndResizeGradBoxes",
    "grads: float, image: T, boxes: float, box_ind: int32 -> output: float",
    f"{NUMBERS} ; {_BILINEAR}",
    capturable=False,
)
crop_and_resize_grad_boxes.no_gradient()


@crop_and_resize_grad_boxes.infer
def _(node: Node) -> Dims:
    return node.dims(2)


@crop_and_resize_grad_boxes.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    native = sampler(node.dtype(1).torch, False) if env.device.type == "cpu" else None

    def run(dy: torch.Tensor, x: torch.Tensor, boxes: torch.Tensor, image: torch.Tensor) -> torch.Tensor:
        if dy.dim() != 4:
            raise invalid(f"grads image must be 4-D, got shape {list(dy.shape)}")
        batch, height, width, channels = _images(x)
        _check_shapes(boxes, image)
        if boxes.numel() and dy.shape[0] != len(boxes):
            raise invalid(f"boxes and grads have incompatible shape: {list(boxes.shape)}, {list(dy.shape)}")
        if not dy.shape[1] or not dy.shape[2]:
            raise invalid(f"grads dimensions must be positive, got shape {list(dy.shape)}")
        if channels != dy.shape[3]:
            raise invalid(f"image, grads depth differ: {channels}, {dy.shape[3]}")
        if native and boxes.numel() and (found := native.box_flows(dy, x, boxes, image)) is not None:
            return found
        _check_boxes(boxes, image, batch)
        if not dy.numel() or not boxes.numel():
            return torch.zeros_like(boxes)
        grid = _grid(boxes, image, (height, width), (dy.shape[1], dy.shape[2]), False)
        return torch.cat([_box_gradient(dy[part], x, some) for part, some in _few(grid, dy[0].numel())])

    return run


def _box_gradient(dy: torch.Tensor, x: torch.Tensor, grid: _Grid) -> torch.Tensor:
    _, height, width, channels = x.shape
    table, (rows, columns, _) = x.reshape(-1, channels), grid

    def corner(row: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
        pixels = grid.pixels(row, column, height, width)
        return table.index_select(0, pixels).float().view(dy.shape)

    top_left, top_right = corner(rows.first, columns.first), corner(rows.first, columns.second)
    bottom_left, bottom_right = corner(rows.second, columns.first), corner(rows.second, columns.second)
    down, right = rows.share[:, :, None, None], columns.share[:, None, :, None]
    flow = dy.masked_fill(~grid.inside.unsqueeze(3), 0)
    by_row = (1 - right) * (bottom_left - top_left) + right * (bottom_right - top_right)
    by_column = (1 - down) * (top_right - top_left) + down * (bottom_right - bottom_left)
    y1, y2 = _along((flow * by_row).sum((2, 3)), height)
    x1, x2 = _along((flow * by_column).sum((1, 3)), width)
    return torch.stack([y1, x1, y2, x2], 1)


def _along(flow: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of a box's start and stop from those of the positions, [boxes, positions]."""
    count = flow.shape[1]
    if count == 1:
        both = flow[:, 0] * 0.5 * (length - 1)
        return both, both
    ratio = _steps(count, flow.device) * ((length - 1) / (count - 1))
    return (flow * ((length - 1) - ratio)).sum(1), (flow * ratio).sum(1)
