"""The geometry of a convolution: what attributes and static shapes say of it, once a plan."""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.errors import InvalidArgumentError
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.untouched import untouched
from flowstone.ops.networks.windows import (
    channels_first,
    channels_last,
    is_channels_last,
    padding_of,
    require_no_batch_stride,
    spatial,
)


class Geometry:
    """What a convolution node's attributes say, once a plan.

    `rank` (with batch and channels), `strides` and `dilations` (spatial), `padding`, and whether the layout
    has its channels last. InvalidArgumentError, which has the node as `failed_node`, where a window is to
    move over batch or channels.
    """

    def __init__(self, node: Node) -> None:
        try:
            self._read(node.attributes)
        except InvalidArgumentError as error:  # also passes ask, of whose errors nobody knows the node
            error.failed_node = node, ()  # type: ignore[attr-defined]
            raise

    def _read(self, attributes: Any) -> None:
        self.rank = len(attributes["strides"])
        layout = attributes["data_format"]
        require_no_batch_stride(attributes["strides"], layout, self.rank)
        require_no_batch_stride(attributes["dilations"], layout, self.rank, "dilations")
        self.last = is_channels_last(layout)
        self.strides = spatial(attributes["strides"], layout)
        self.dilations = spatial(attributes["dilations"], layout)
        if min(*self.strides, *self.dilations) < 1:
            raise invalid(f"strides and dilations must be > 0, but got {self.strides} and {self.dilations}")
        self.padding = padding_of(attributes, self.rank)
        self.to_first, self.to_last = channels_first(self.rank), channels_last(self.rank)
        n = self.rank - 2
        self.filter_first = (n + 1, n, *range(n))  # [spatial..., in, out] to [out, in, spatial...]
        self.filter_last = (*range(2, n + 2), 1, 0)

    def solve(
        self, lengths: tuple[int, ...], sizes: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """(counts, before, after) over these spatial lengths and window sizes."""
        return self.padding.solve(lengths, sizes, self.strides, self.dilations)

    def sizes_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Spatial lengths of a shape in the node's layout."""
        return tuple(shape[1:-1]) if self.last else tuple(shape[2:])

    def channels_of(self, shape: tuple[int, ...]) -> int:
        """Channels of a shape in the node's layout."""
        return shape[-1] if self.last else shape[1]

    def fixed(
        self, image: tuple[int, ...] | None, kernel: tuple[int, ...] | None
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
        """The geometry (counts, before, after) if these static shapes decide it, else None."""
        if image is None or kernel is None:
            return None
        lengths, sizes = self.sizes_of(image), kernel[: self.rank - 2]
        if None in lengths or None in sizes:
            return None
        return self.solve(lengths, sizes)


def shape_only(
    geometry: Geometry, kernel: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """A placeholder for a filter of which ATen reads only shape and strides.

    On a host ATen would first copy one whose strides are not those of the images' layout; so it has them,
    over memory that is never touched and hence never given to the process.
    """
    n = geometry.rank - 2
    if device.type != "cpu":
        return torch.empty(1, dtype=dtype, device=device).expand(kernel[-1], kernel[-2], *kernel[:n])
    if geometry.last:
        return untouched((kernel[-1], *kernel[:n], kernel[-2]), dtype).permute(geometry.to_first)
    return untouched((kernel[-1], kernel[-2], *kernel[:n]), dtype)
