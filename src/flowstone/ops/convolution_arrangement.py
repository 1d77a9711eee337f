"""How ATen is told of a convolution whose shapes are known before the step.

Its own functions pad both ends of a dimension alike, convolve groups of channels, and are quick where
channels are many. So

- an image is padded first where TensorFlow's padding is longer at one end (SAME, stride 2, even length), and
  the gradient is cut back to the image's size, in one piece of memory: what reads it next is as fast as ever;
- a filter of one channel each, [height, width, in, multiplier], is seen as one of as many groups as channels,
  [height, width, 1, in * multiplier];
- a filter as wide as the image (words of a sentence, each a row) is seen as a column of width * in channels:
  images [batch, height, 1, width * in], filter [height, 1, width * in, out], the same memory. The gradient by
  64 images [56, 128, 1] under a filter [5, 128, 1, 128] takes oneDNN 208 ms, and so 1.1 ms. One that is as
  high as well is a matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from flowstone.framework.kernel import Call
from flowstone.ops.convolution_geometry import Geometry
from flowstone.ops.windows import pad_spatial

__all__: list[str] = []

_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


class Arrangement(NamedTuple):
    """What ATen sees: `image` and `kernel` (dims, in the node's layout), `groups`, the result's spatial
    lengths `counts`, and the `padding` of both ends alike, beside which the image is padded with `extra`
    (before, after) spatially, or None. `image` has not yet that extra padding; `padded` has it.
    """

    geometry: Geometry
    image: tuple[int, ...]
    kernel: tuple[int, ...]
    groups: int
    counts: tuple[int, ...]
    padding: tuple[int, ...]
    extra: tuple[tuple[int, ...], tuple[int, ...]] | None
    given_image: tuple[int, ...]
    given_kernel: tuple[int, ...]

    @property
    def known(self) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """(groups, counts, padding)."""
        return self.groups, self.counts, self.padding

    @property
    def padded(self) -> tuple[int, ...]:
        """The dims of the image with its extra padding."""
        if self.extra is None:
            return self.image
        lengths = self.geometry.sizes_of(self.image)
        return self._with_lengths([b + n + a for b, n, a in zip(self.extra[0], lengths, self.extra[1])])

    def _with_lengths(self, lengths: Any) -> tuple[int, ...]:
        if self.geometry.last:
            return (self.image[0], *lengths, self.image[-1])
        return (*self.image[:2], *lengths)

    # ---- on the way in: each takes an input or a call, and returns what ATen is given

    def image_of(self, x: Any) -> Any:
        """The image as ATen sees it, channels first, padded where both ends differ."""
        x = self.flat_image_of(x)
        x = Call(torch.permute, x, self.geometry.to_first) if self.geometry.last else x
        return x if self.extra is None else Call(pad_spatial, x, *self.extra)

    def flat_image_of(self, x: Any) -> Any:
        """The image in the node's layout, of dims `image`."""
        return x if self.image == self.given_image else Call(torch.reshape, x, self.image)

    def filter_of(self, kernel: Any) -> Any:
        """The filter as [out, in of a group, spatial...]."""
        if self.kernel != self.given_kernel:
            kernel = Call(torch.reshape, kernel, self.kernel)
        return Call(torch.permute, kernel, self.geometry.filter_first)

    def result_of(self, y: Any) -> Any:
        """The result, or its gradient, channels first."""
        return Call(torch.permute, y, self.geometry.to_first) if self.geometry.last else y

    # ---- on the way out: each takes ATen's result, and returns the node's

    def given_result(self, y: Any) -> Any:
        """The result of the convolution in the node's layout."""
        return Call(torch.permute, y, self.geometry.to_last) if self.geometry.last else y

    def given_image_gradient(self, dx: Any) -> Any:
        """The gradient by the image, of the node's shape and layout, from that by the padded one."""
        if self.extra is not None:
            dx = Call(_cut_back, dx, self.extra[0], self.geometry.sizes_of(self.image), self.geometry.last)
        dx = Call(torch.permute, dx, self.geometry.to_last) if self.geometry.last else dx
        return self.given_flat_gradient(dx)

    def given_flat_gradient(self, dx: Any) -> Any:
        """The same from a gradient of dims `image` in the node's layout."""
        return dx if self.image == self.given_image else Call(torch.reshape, dx, self.given_image)

    def given_filter_gradient(self, gradient: Any) -> Any:
        """The gradient by the filter, of the node's shape, from [out, in of a group, spatial...]."""
        return self.given_flat_filter(Call(torch.permute, gradient, self.geometry.filter_last))

    def given_flat_filter(self, gradient: Any) -> Any:
        """The same from a gradient of dims `kernel`."""
        return (
            gradient if self.kernel == self.given_kernel else Call(torch.reshape, gradient, self.given_kernel)
        )


def _cut_back(dx: torch.Tensor, before: Any, lengths: Any, last: bool) -> torch.Tensor:
    """The part of a channels-first gradient that its padding surrounds, in one piece of memory."""
    places = (slice(None), slice(None), *[slice(b, b + n) for b, n in zip(before, lengths)])
    return dx[places].contiguous(memory_format=_FORMATS[dx.dim()] if last else torch.contiguous_format)


def arrange(geometry: Geometry, image: Any, kernel: Any, depthwise: bool) -> Arrangement | None:
    """How ATen computes a convolution of these static shapes; None if they do not say, or nothing comes out.

    `image` and `kernel`: dims or None, as the node has them.
    """
    if image is None or kernel is None or len(image) != geometry.rank or len(kernel) != geometry.rank:
        return None
    if None in image + kernel or 0 in image + kernel:
        return None
    channels = geometry.channels_of(image)
    if channels != kernel[-2] if depthwise or geometry.rank > 4 else channels % kernel[-2]:
        return None
    solved = geometry.fixed(image, kernel)
    if solved is None or 0 in solved[0]:
        return None
    counts, before, after = solved
    padding = tuple(min(pair) for pair in zip(before, after))
    extra = None
    if before != after:
        extra = tuple(b - p for b, p in zip(before, padding)), tuple(a - p for a, p in zip(after, padding))
    seen, filters = (
        _merged(geometry, image, kernel, padding) if extra is None and not depthwise else (image, kernel)
    )
    if depthwise:
        filters = (*kernel[:-2], 1, kernel[-2] * kernel[-1])
    groups = geometry.channels_of(seen) // filters[-2]
    return Arrangement(geometry, seen, filters, groups, counts, padding, extra, image, kernel)


def _merged(geometry: Geometry, image: Any, kernel: Any, padding: Any) -> tuple[Any, Any]:
    """The dims of image and filter with the columns in the channels, where the filter has all columns, and
    then likewise with the rows.
    """
    if (
        not geometry.last
        or geometry.rank != 4
        or image[3] != kernel[2]
        or not _covers(geometry, image, kernel, padding, 1)
    ):
        return image, kernel
    (batch, height, width, channels), outputs = image, kernel[3]
    if _covers(geometry, image, kernel, padding, 0):
        merged = height * width * channels
        return (batch, 1, 1, merged), (1, 1, merged, outputs)
    return (batch, height, 1, width * channels), (kernel[0], 1, width * channels, outputs)


def _covers(geometry: Geometry, image: Any, kernel: Any, padding: Any, axis: int) -> bool:
    """Whether the filter has all of the image along that spatial axis."""
    return bool(image[axis + 1] == kernel[axis] and not padding[axis] and geometry.dilations[axis] == 1)


def arrange_gradient(
    geometry: Geometry, image: Any, kernel: Any, dy: Any, depthwise: bool
) -> Arrangement | None:
    """`arrange` for a gradient, if `dy` has the shape that the convolution's output has."""
    found = arrange(geometry, image, kernel, depthwise)
    if found is None or dy is None or geometry.sizes_of(dy) != found.counts:
        return None
    return found if dy[0] == image[0] and geometry.channels_of(dy) == found.kernel[-1] else None
