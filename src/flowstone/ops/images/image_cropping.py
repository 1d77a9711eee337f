"""Parts of images, and images within larger ones.

An image has three dimensions, [height, width, channels], or a batch of images four. Offsets and sizes are
integers or int32 scalar tensors; what is known of them is checked while the graph is built (ValueError), the
rest in the step (InvalidArgumentError).
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.control.control_flow import with_dependencies
from flowstone.ops.images.image_checks import as_batch, known_sizes, require, require_image, sizes_of


def _given(*values: Any) -> bool:
    return any(isinstance(value, Tensor) for value in values)


def _larger(one: Any, other: Any) -> Any:
    return F.Maximum(one, other) if _given(one, other) else max(one, other)


def _smaller(one: Any, other: Any) -> Any:
    return F.Minimum(one, other) if _given(one, other) else min(one, other)


def _after(checks: list[Operation], images: Tensor) -> Tensor:
    result: Tensor = with_dependencies(checks, images)
    return result


def _as_given(images: Tensor, rank: int | None) -> Tensor:
    return images if rank == 4 else F.Squeeze(images, squeeze_dims=[0])


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The part of `image` of this height and width whose upper left corner is at the offsets."""
    with get_default_graph().name_scope("crop_to_bounding_box"):
        images, rank = as_batch(convert_to_tensor(image, name="image"))
        checks = require_image(images)
        batch, height, width, depth = sizes_of(images, 4)
        checks += require(offset_width >= 0, "offset_width must be >= 0.")
        checks += require(offset_height >= 0, "offset_height must be >= 0.")
        checks += require(target_width > 0, "target_width must be > 0.")
        checks += require(target_height > 0, "target_height must be > 0.")
        checks += require(width >= target_width + offset_width, "width must be >= target + offset.")
        checks += require(height >= target_height + offset_height, "height must be >= target + offset.")
        images = _after(checks, images)
        begin, size = [0, offset_height, offset_width, 0], [-1, target_height, target_width, -1]
        part = F.Slice(images, stack(begin), stack(size))
        part.set_shape(known_sizes([batch, target_height, target_width, depth]))
        return _as_given(part, rank)


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """An image of this height and width, zero but for `image` at the offsets."""
    with get_default_graph().name_scope("pad_to_bounding_box"):
        images, rank = as_batch(convert_to_tensor(image, name="image"))
        checks = require_image(images)
        batch, height, width, depth = sizes_of(images, 4)
        right = target_width - offset_width - width
        below = target_height - offset_height - height
        checks += require(offset_height >= 0, "offset_height must be >= 0")
        checks += require(offset_width >= 0, "offset_width must be >= 0")
        checks += require(right >= 0, "width must be <= target - offset")
        checks += require(below >= 0, "height must be <= target - offset")
        images = _after(checks, images)
        amounts = stack([0, 0, offset_height, below, offset_width, right, 0, 0])
        whole = F.Pad(images, F.Reshape(amounts, [4, 2]))
        whole.set_shape(known_sizes([batch, target_height, target_width, depth]))
        return _as_given(whole, rank)


def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """`image` cut, or surrounded by zeros, evenly on both sides to this height and width."""
    with get_default_graph().name_scope("resize_image_with_crop_or_pad"):
        images, rank = as_batch(convert_to_tensor(image, name="image"))
        checks = require_image(images)
        checks += require(target_width > 0, "target_width must be > 0.")
        checks += require(target_height > 0, "target_height must be > 0.")
        images = _after(checks, images)
        _, height, width, _ = sizes_of(images, 4)
        wider, higher = target_width - width, target_height - height
        cut_left, add_left = _larger(-wider // 2, 0), _larger(wider // 2, 0)
        cut_top, add_top = _larger(-higher // 2, 0), _larger(higher // 2, 0)
        rows, columns = _smaller(target_height, height), _smaller(target_width, width)
        part = crop_to_bounding_box(images, cut_top, cut_left, rows, columns)
        whole = _after([], pad_to_bounding_box(part, add_top, add_left, target_height, target_width))
        return _as_given(whole, rank)


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """The middle of `image`: this fraction of its height and of its width, in (0, 1].

    ValueError for other fractions, and for images of unknown rank.
    """
    with get_default_graph().name_scope("central_crop"):
        images = convert_to_tensor(image, name="image")
        if not 0 < central_fraction <= 1:
            raise ValueError("central_fraction must be within (0, 1]")
        if central_fraction == 1:
            return images
        dims = images.dims
        checks = require_image(images)
        if dims is None or len(dims) not in (3, 4):
            rank = None if dims is None else len(dims)
            raise ValueError(
                f"`image` should either be a Tensor with rank = 3 or rank = 4. Had rank = {rank}."
            )
        images = _after(checks, images)
        first = len(dims) - 3
        spans = [_middle(images, axis, central_fraction) for axis in (first, first + 1)]
        begin = [0] * first + [start for start, _ in spans] + [0]
        size = [-1] * first + [count for _, count in spans] + [-1]
        part = F.Slice(images, stack(begin), stack(size))
        part.set_shape((*dims[:first], *(known_sizes([n for _, n in spans]) or ()), dims[-1]))
        return part


def _middle(image: Tensor, axis: int, fraction: float) -> tuple[Any, Any]:
    """(start, count) of the middle of a dimension: integers if it is known, else scalar tensors."""
    known = None if image.dims is None else image.dims[axis]
    if known is not None:
        start = int((known - known * fraction) / 2)
        return start, known - 2 * start
    length = shape(image)[axis]
    wide = F.Cast(length, DstT="float64")
    first = F.Cast((wide - wide * fraction) / 2, DstT="int32")
    return first, length - first * 2
