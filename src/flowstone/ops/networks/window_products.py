"""Convolutions of sizes that only the step knows: as products of matrices, or channel by channel as sums.

oneDNN makes code for each size that it meets anew, which takes 0.3 to 1.5 ms a call; batches and images of
ever new sizes would pay that in every step. For a product every window becomes a row, copied out of the
padded image, by machine code once it is there; BLAS has one code for all sizes. Channel by channel, the image
is multiplied as a whole by one row of the filter after the other. Images and results have their channels
last here, filters are [spatial..., in, out].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import torch

from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.machine.network_code import window_rows
from flowstone.framework.types.dtypes import DType
from flowstone.ops.networks.convolution_geometry import Geometry

__all__: list[str] = []

Sizes = tuple[int, ...]
_AXES = 2  # of images whose windows machine code cuts out


def by_windows(geometry: Geometry, env: Environment, dtype: DType, depthwise: bool) -> WindowProducts:
    """A node's convolution and its gradients by windows; they `suit` nothing where ATen has better ones."""
    profile, kind = env.machine.profile, WindowSums if depthwise else WindowProducts
    most = profile.window_sums if depthwise else profile.window_products
    suits = dtype.torch in (torch.float32, torch.float64) and env.device.type == "cpu"
    return kind(geometry, most if suits else 0)


class WindowProducts:
    """A convolution and its gradients as products, for up to `most` multiplications."""

    def __init__(self, geometry: Geometry, most: int) -> None:
        self.most = most
        self._strides, self._dilations = geometry.strides, geometry.dilations
        self._is_plain = len(self._strides) <= _AXES and set(self._dilations) == {1}

    def suit(
        self, batch: int, counts: Sizes, kernel: Sizes, channels: int, outputs: int | None = None
    ) -> bool:
        """Whether a convolution of so many positions, with this filter, is to be a product. `outputs`: the
        channels of a gradient of its results."""
        fits = kernel[-2] == channels and outputs in (None, self._outputs(kernel))
        return fits and batch * math.prod(counts) * math.prod(kernel) <= self.most

    def _outputs(self, kernel: Sizes) -> int:
        """How many channels the results have."""
        return kernel[-1]

    def results(
        self, x: torch.Tensor, kernel: torch.Tensor, counts: Sizes, before: Sizes, after: Sizes
    ) -> torch.Tensor:
        """The convolution of x [batch, *lengths, in]: [batch, *counts, out]."""
        rows = self._rows(x, kernel.shape[:-2], counts, self._strides, before, after)
        return (rows @ kernel.reshape(-1, kernel.shape[-1])).reshape(x.shape[0], *counts, kernel.shape[-1])

    def by_filter(
        self, x: torch.Tensor, dy: torch.Tensor, shape: Sizes, before: Sizes, after: Sizes
    ) -> torch.Tensor:
        """The gradient with respect to a filter of this shape, given that of the results, dy."""
        rows = self._rows(x, shape[:-2], tuple(dy.shape[1:-1]), self._strides, before, after)
        return (rows.t() @ dy.reshape(-1, shape[-1])).reshape(shape)

    def by_input(self, kernel: torch.Tensor, dy: torch.Tensor, lengths: Sizes, before: Sizes) -> torch.Tensor:
        """The gradient with respect to images of these lengths: the convolution of dy, spread by the strides,
        with the filter turned round."""
        n, window = len(lengths), kernel.shape[:-2]
        if max(self._strides) > 1:
            spread = [(count - 1) * stride + 1 for count, stride in zip(dy.shape[1:-1], self._strides)]
            between = dy.new_zeros((dy.shape[0], *spread, dy.shape[-1]))
            places = (slice(None), *[slice(None, None, stride) for stride in self._strides])
            between[places] = dy
            dy = between
        reach = [(size - 1) * dilation for size, dilation in zip(window, self._dilations)]
        first = tuple([a - b for a, b in zip(reach, before)])
        last = tuple([length + b - there for length, b, there in zip(lengths, before, dy.shape[1:-1])])
        rows = self._rows(dy, window, lengths, (1,) * n, first, last)
        turned = kernel.flip(*range(n)).transpose(-1, -2).reshape(-1, kernel.shape[-2])
        return (rows @ turned).reshape(dy.shape[0], *lengths, kernel.shape[-2])

    def _rows(
        self, x: torch.Tensor, window: Sizes, counts: Sizes, strides: Sizes, before: Sizes, after: Sizes
    ) -> torch.Tensor:
        """The windows of x with so many zeros around it, one in each row."""
        if self._is_plain and (cut := window_rows()) is not None:
            return cut(x.contiguous(), counts, window, strides, before)
        x = _padded(x, before, after).contiguous()
        batch, *steps, channel = x.stride()
        moved = [step * stride for step, stride in zip(steps, strides)]
        apart = [step * dilation for step, dilation in zip(steps, self._dilations)]
        sizes = (x.shape[0], *counts, *window, x.shape[-1])
        return x.as_strided(sizes, (batch, *moved, *apart, channel)).reshape(
            x.shape[0] * math.prod(counts), math.prod(window) * x.shape[-1]
        )


class WindowSums(WindowProducts):
    """A convolution channel by channel and its gradients, with one result for each channel."""

    def suit(
        self, batch: int, counts: Sizes, kernel: Sizes, channels: int, outputs: int | None = None
    ) -> bool:
        """Whether such a convolution is to be a sum."""
        return kernel[-1] == 1 and super().suit(batch, counts, kernel, channels, outputs)

    def _outputs(self, kernel: Sizes) -> int:
        return kernel[-2]

    def results(
        self, x: torch.Tensor, kernel: torch.Tensor, counts: Sizes, before: Sizes, after: Sizes
    ) -> torch.Tensor:
        """The convolution of x [batch, *lengths, in]: [batch, *counts, in]."""
        y = x.new_zeros((x.shape[0], *counts, x.shape[-1]))
        x = _padded(x, before, after)
        for place, part in self._parts(kernel.shape[:-2], counts):
            y.addcmul_(x[part], kernel[place][:, 0])
        return y

    def by_filter(
        self, x: torch.Tensor, dy: torch.Tensor, shape: Sizes, before: Sizes, after: Sizes
    ) -> torch.Tensor:
        """The gradient with respect to a filter of this shape, given that of the results, dy."""
        x, dw = _padded(x, before, after), dy.new_empty(shape)
        for place, part in self._parts(shape[:-2], tuple(dy.shape[1:-1])):
            torch.sum((x[part] * dy).flatten(0, -2), 0, out=dw[place][:, 0])
        return dw

    def by_input(self, kernel: torch.Tensor, dy: torch.Tensor, lengths: Sizes, before: Sizes) -> torch.Tensor:
        """The gradient with respect to images of these lengths."""
        counts, window = tuple(dy.shape[1:-1]), tuple(kernel.shape[:-2])
        reached = [
            (count - 1) * stride + (size - 1) * dilation + 1
            for count, stride, size, dilation in zip(counts, self._strides, window, self._dilations)
        ]
        sizes = [max(there, b + length) for there, b, length in zip(reached, before, lengths)]
        dx = dy.new_zeros((dy.shape[0], *sizes, dy.shape[-1]))
        for place, part in self._parts(window, counts):
            dx[part].addcmul_(dy, kernel[place][:, 0])
        inside = (slice(None), *[slice(b, b + length) for b, length in zip(before, lengths)])
        return dx[inside].contiguous()

    def _parts(self, window: Sizes, counts: Sizes) -> Iterator[tuple[Sizes, tuple[slice, ...]]]:
        """Each place of a window, and the elements of the padded image that windows have there."""
        for place in itertools.product(*map(range, window)):
            starts = [n * dilation for n, dilation in zip(place, self._dilations)]
            found = zip(starts, counts, self._strides)
            spatial = [slice(first, first + (n - 1) * stride + 1, stride) for first, n, stride in found]
            yield place, (slice(None), *spatial)


def _padded(x: torch.Tensor, before: Sizes, after: Sizes) -> torch.Tensor:
    """x with so many zeros around it; fewer than none cut off."""
    if not any(before) and not any(after):
        return x
    amounts = [amount for pair in zip(reversed(before), reversed(after)) for amount in pair]
    return torch.constant_pad_nd(x, [0, 0, *amounts])
