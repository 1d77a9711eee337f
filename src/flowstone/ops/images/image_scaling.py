"""Images of another size, by a method of the user's choice, with or without their proportions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.images.image_checks import as_batch, require, require_image, sizes_of
from flowstone.ops.images.image_cropping import pad_to_bounding_box
from flowstone.ops.images.image_resizing import resize_bilinear, resize_nearest_neighbor
from flowstone.ops.images.smooth_resizing import area_op, cubic_op


class ResizeMethod:
    """How `resize_images` computes pixels."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


def resize_area(images: Any, size: Any, align_corners: bool = False, name: str | None = None) -> Tensor:
    """Images [batch, height, width, channels] of any real type as float32 [batch, *size, channels]:

    each pixel is the mean of the image over its area. InvalidArgumentError if `size`, two int32, is not
    positive.
    """
    return area_op(images, size, align_corners=align_corners, name=name)


def resize_bicubic(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Images [batch, height, width, channels] of any real type as float32 [batch, *size, channels]:

    each pixel is interpolated between sixteen. Errors as for `resize_area`, and for both ways of aligning.
    """
    return cubic_op(
        images, size, align_corners=align_corners, half_pixel_centers=half_pixel_centers, name=name
    )


_METHODS: dict[Any, Callable[..., Tensor]] = {
    ResizeMethod.BILINEAR: resize_bilinear,
    ResizeMethod.NEAREST_NEIGHBOR: resize_nearest_neighbor,
    ResizeMethod.BICUBIC: resize_bicubic,
    ResizeMethod.AREA: resize_area,
}


def _size_tensor(size: Any) -> Tensor:
    try:
        size = convert_to_tensor(size, dtypes.int32, name="size")
    except (TypeError, ValueError):
        raise ValueError("'size' must be a 1-D int32 Tensor") from None
    if size.dims is not None and (len(size.dims) != 1 or size.dims[0] not in (None, 2)):
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    return size  # type: ignore[no-any-return]


def _known(size: Tensor) -> tuple[Any, ...] | None:
    """The two numbers; None if one of them is unknown."""
    value = static_value(size)
    return tuple(int(n) for n in value) if isinstance(value, np.ndarray) else None


def _in_proportion(images: Tensor, size: Tensor) -> Tensor:
    """The largest size within `size` that has the images' proportions."""
    wanted = _known(size) or (size[0], size[1])
    _, height, width, _ = sizes_of(images, 4)

    def as_float(value: Any) -> Tensor:
        return F.Cast(value, DstT=dtypes.float32)

    scales = [as_float(new) / as_float(old) for new, old in zip(wanted, (height, width))]
    scale = F.Minimum(*scales)
    sizes = [F.Cast(F.Round(scale * as_float(old)), DstT=dtypes.int32) for old in (height, width)]
    return F.Pack(sizes, name="size")


def resize_images(
    images: Any,
    size: Any,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Images [batch, height, width, channels], or one without `batch`, with the height and width of `size`.

    The result is float32, but for the nearest neighbour; images that have the size already are returned as
    they are, unless `preserve_aspect_ratio` says that `size` is only the largest that is allowed. `method` is
    one of `ResizeMethod`. ValueError for images of unknown rank or other ranks, for sizes that are not two
    integers, and for other methods.
    """
    with get_default_graph().name_scope(name or "resize"):
        given = convert_to_tensor(images, name="images")
        if given.dims is None:
            raise ValueError("'images' contains no shape.")
        batch, rank = as_batch(given, "images")
        size = _size_tensor(size)
        if preserve_aspect_ratio:
            size = _in_proportion(batch, size)
        known = None if preserve_aspect_ratio else _known(size)
        if known is not None and batch.dims is not None and known == batch.dims[1:3]:
            return given
        if method not in _METHODS:
            raise ValueError("Resize method is not implemented.")
        resized = _METHODS[method](batch, size, align_corners=align_corners)
        return resized if rank == 4 else F.Squeeze(resized, squeeze_dims=[0])


def resize_image_with_pad(
    image: Any,
    target_height: Any,
    target_width: Any,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Tensor:
    """`image` as large as it fits into this height and width in its proportions, with zeros around it.

    `image` has three dimensions, or four as a batch. ValueError if they are not, or sizes are not positive.
    """
    with get_default_graph().name_scope("resize_image_with_pad"):
        images, rank = as_batch(convert_to_tensor(image, name="image"))
        checks = require_image(images)
        checks += require(target_width > 0, "target_width must be > 0.")
        checks += require(target_height > 0, "target_height must be > 0.")
        with get_default_graph().control_dependencies(checks):
            images = F.Identity(images, name="control_dependency")
        _, height, width, _ = sizes_of(images, 4)
        (rows, top), (columns, left) = _fitted((height, width), (target_height, target_width))
        resized = resize_images(images, F.Pack([rows, columns], name="size"), method, align_corners)
        if method != ResizeMethod.NEAREST_NEIGHBOR and images.dtype is not dtypes.float32:
            resized = F.Cast(resized, DstT=dtypes.float32)  # what keeps its size, too
        whole = pad_to_bounding_box(resized, top, left, target_height, target_width)
        return whole if rank == 4 else F.Squeeze(whole, squeeze_dims=[0])


def _fitted(sizes: tuple[Any, Any], targets: tuple[Any, Any]) -> list[tuple[Tensor, Tensor]]:
    """For height and width, how many pixels an image in its proportions takes, and how many come before."""

    def as_float(value: Any) -> Tensor:
        return F.Cast(value, DstT=dtypes.float32)

    own, target = [as_float(n) for n in sizes], [as_float(n) for n in targets]
    ratio = F.Maximum(own[1] / target[1], own[0] / target[0])
    found = []
    for length, wanted in zip(own, target):
        taken = length / ratio
        before = F.Floor((wanted - taken) / 2)
        counts = [F.Cast(n, DstT=dtypes.int32) for n in (F.Floor(taken), before)]
        found.append((counts[0], F.Maximum(0, counts[1])))
    return found
