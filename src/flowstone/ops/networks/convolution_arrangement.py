"""How ATen is told of a convolution whose shapes are known before the step.

Its own functions pad both ends of a dimension alike, convolve groups of channels, and are quick where
channels are many. So

- an image is padded first where TensorFlow's padding is longer at one end (SAME, stride 2, even length), and
  the gradient is cut back to the image's size, in one piece of memory: what reads it next is as fast as ever;
- a filter of one channel each, [height, width, in, multiplier], is seen as one of as many groups as channels,
  [height, width, 1, in * multiplier];
- a filter as wide as the image (words of a sentence, each a row) is seen as a column of width * in channels,
  and a column as a row: images [batch, 1, height, width * in], filter [1, height, width * in, out], the same
  memory. The gradient by 64 images [56, 128, 1] under a filter [5, 128, 1, 128] takes oneDNN 208 ms, and so
  1.1 ms; that by the filter 3.7 ms, 2.9 ms as a column, and 1.2 ms as a row. A filter that is as high as the
  image as well is a matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.kernel import Call
from flowstone.ops.networks.convolution_geometry import Geometry
from flowstone.ops.networks.windows import pad_spatial

__all__: list[str] = []

_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


class Arrangement(NamedTuple):
    """What ATen sees.

    `image`, `kernel`: dims in the node's layout; `groups`; `strides`, `dilations`; `counts`: the result's
    lengths; `padding` of both ends alike, beside which the image is padded with `extra` (before, after) or
    None; all but the first two spatial. `image` has not yet that extra padding; `lengths` have it.
    """

    geometry: Geometry
    image: tuple[int, ...]
    kernel: tuple[int, ...]
    groups: int
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    counts: tuple[int, ...]
    padding: tuple[int, ...]
    extra: tuple[tuple[int, ...], tuple[int, ...]] | None
    given_image: tuple[int, ...]
    given_kernel: tuple[int, ...]
    given_counts: tuple[int, ...]

    @property
    def channels(self) -> int:
        """The image's channels."""
        return self.geometry.channels_of(self.image)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The spatial lengths of the image with its extra padding."""
        lengths: tuple[int, ...] = self.geometry.sizes_of(self.image)
        if self.extra is None:
            return lengths
        return tuple([b + n + a for b, n, a in zip(self.extra[0], lengths, self.extra[1])])

    @property
    def before(self) -> tuple[int, ...]:
        """How many zeros lie before the image, spatially."""
        if self.extra is None:
            return self.padding
        return tuple(map(sum, zip(self.padding, self.extra[0])))

    def result_dims(self, counts: tuple[int, ...]) -> tuple[int, ...]:
        """The dims of a result of these lengths, channels last."""
        return (self.image[0], *counts, self.kernel[-1])  # only images with channels last are ever transposed

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
        if self.counts != self.given_counts:
            y = Call(torch.reshape, y, self.result_dims(self.counts))
        return Call(torch.permute, y, self.geometry.to_first) if self.geometry.last else y

    # ---- on the way out: each takes ATen's result, and returns the node's

    def given_result(self, y: Any) -> Call:
        """The result of the convolution, of the node's shape and layout."""
        return self.given_flat_result(
            Call(torch.permute, y, self.geometry.to_last) if self.geometry.last else y
        )

    def given_flat_result(self, y: Call) -> Call:
        """The same from a result in the node's layout."""
        if self.counts == self.given_counts:
            return y
        return Call(torch.reshape, y, self.result_dims(self.given_counts))

    def given_image_gradient(self, dx: Any) -> Call:
        """The gradient with respect to the image, of the node's shape and layout, from that by the padded
        one."""
        if self.extra is not None:
            dx = Call(_cut_back, dx, self.extra[0], self.geometry.sizes_of(self.image), self.geometry.last)
        dx = Call(torch.permute, dx, self.geometry.to_last) if self.geometry.last else dx
        return self.given_flat_gradient(dx)

    def given_flat_gradient(self, dx: Any) -> Call:
        """The same from a gradient of dims `image` in the node's layout."""
        return dx if self.image == self.given_image else Call(torch.reshape, dx, self.given_image)

    def given_filter_gradient(self, gradient: Any) -> Call:
        """The gradient with respect to the filter, of the node's shape, from [out, in of a group,
        spatial...]."""
        return self.given_flat_filter(Call(torch.permute, gradient, self.geometry.filter_last))

    def given_flat_filter(self, gradient: Any) -> Call:
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
    filters = (*kernel[:-2], 1, kernel[-2] * kernel[-1]) if depthwise else kernel
    seen = _Seen(image, filters, geometry.strides, geometry.dilations, counts, before, after)
    seen = _transposed(_merged(seen)) if geometry.last and geometry.rank == 4 else seen
    padding = tuple([min(pair) for pair in zip(seen.before, seen.after)])
    extra = None
    if seen.before != seen.after:
        extra = (
            tuple(b - p for b, p in zip(seen.before, padding)),
            tuple(a - p for a, p in zip(seen.after, padding)),
        )
    groups = geometry.channels_of(seen.image) // seen.kernel[-2]
    return Arrangement(
        geometry, seen.image, seen.kernel, groups, seen.strides, seen.dilations, seen.counts, padding, extra,
        image, kernel, counts,
    )  # fmt: skip


class _Seen(NamedTuple):
    """A convolution of images with channels last: dims, and what is spatial of the rest."""

    image: Any
    kernel: Any
    strides: Any
    dilations: Any
    counts: Any
    before: Any
    after: Any

    def is_covered(self, axis: int) -> bool:
        """Whether the filter has all of the image along that spatial axis."""
        padded = self.before[axis] or self.after[axis] or self.dilations[axis] > 1
        return self.image[axis + 1] == self.kernel[axis] and not padded


def _merged(seen: _Seen) -> _Seen:
    """With the columns in the channels, where the filter has all columns, and then likewise the rows."""
    batch, height, width, channels = seen.image
    if channels != seen.kernel[2] or not seen.is_covered(1):
        return seen
    rows = seen.kernel[0]
    if seen.is_covered(0):
        height, rows, width = 1, 1, height * width
    merged = width * channels
    return seen._replace(image=(batch, height, 1, merged), kernel=(rows, 1, merged, seen.kernel[3]))


def _transposed(seen: _Seen) -> _Seen:
    """With columns as rows."""
    if seen.image[2] != 1 or seen.kernel[1] != 1 or seen.image[1] == 1:
        return seen
    (batch, height, width, channels), (rows, columns, *rest) = seen.image, seen.kernel
    spatial = [pair[::-1] for pair in seen[2:]]
    return _Seen((batch, width, height, channels), (columns, rows, *rest), *spatial)


def arrange_gradient(
    geometry: Geometry, image: Any, kernel: Any, dy: Any, depthwise: bool
) -> Arrangement | None:
    """`arrange` for a gradient, if `dy` has the shape that the convolution's output has."""
    found = arrange(geometry, image, kernel, depthwise)
    if found is None or dy is None or geometry.sizes_of(dy) != found.given_counts:
        return None
    return found if dy[0] == image[0] and geometry.channels_of(dy) == found.kernel[-1] else None
