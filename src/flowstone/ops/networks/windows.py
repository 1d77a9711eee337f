"""Sliding windows: the geometry that convolutions and poolings share.

A window of `size` positions, `dilation` apart, moves by `stride` over a dimension to which `padding` adds
(before, after). TensorFlow's SAME gives ``ceil(input / stride)`` outputs and puts the odd element of padding
behind; ATen pads symmetrically, so what is asymmetric is padded explicitly.

>>> SAME.along(5, size=2, stride=2, dilation=1)
(3, 0, 1)
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework import errors
from flowstone.ops.arrays.arrays import invalid

Dims = tuple[int | None, ...] | None


def is_channels_last(data_format: str) -> bool:
    """Whether the channels of this layout are its last dimension."""
    return data_format.endswith("C")


def spatial(values: Any, data_format: str) -> tuple[Any, ...]:
    """The spatial entries of a list with one entry a dimension."""
    return tuple(values[1:-1]) if is_channels_last(data_format) else tuple(values[2:])


def channels_first(rank: int) -> tuple[int, ...]:
    """The permutation from channels last to channels first."""
    return (0, rank - 1, *range(1, rank - 1))


def channels_last(rank: int) -> tuple[int, ...]:
    """The permutation from channels first to channels last."""
    return (0, *range(2, rank), 1)


class Padding:
    """A padding rule: SAME, VALID, or explicit amounts, a (before, after) pair for each spatial dimension."""

    def __init__(self, rule: str, amounts: tuple[tuple[int, int], ...] = ()) -> None:
        self.rule, self.amounts = rule, amounts

    def along(
        self, length: int, size: int, stride: int, dilation: int, axis: int = 0
    ) -> tuple[int, int, int]:
        """(output positions, padding before, padding after) for a dimension of `length` elements.

        InvalidArgumentError where a whole stride is missing for the window to fit; one that misses less has
        no outputs, as in TensorFlow.
        """
        reach = (size - 1) * dilation + 1
        if self.rule == "SAME":
            count = -(-length // stride)
            total = max((count - 1) * stride + reach - length, 0)
            return count, total // 2, total - total // 2
        before, after = self.amounts[axis] if self.amounts else (0, 0)
        room = length + before + after - reach + stride
        if room <= -stride:
            raise invalid(
                f"Computed output size would be negative: {-(-room // stride)} "
                f"[input_size: {length + before + after}, effective_filter_size: {reach}, stride: {stride}]"
            )
        return max(room // stride, 0), before, after

    def solve(
        self, lengths: Any, sizes: Any, strides: Any, dilations: Any
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """(counts, before, after), each a tuple over the spatial dimensions."""
        found = [self.along(*one, axis) for axis, one in enumerate(zip(lengths, sizes, strides, dilations))]
        counts, before, after = zip(*found)
        return counts, before, after

    def count(
        self, length: int | None, size: int | None, stride: int, dilation: int, axis: int
    ) -> int | None:
        """Output positions where the length may be unknown. ValueError where the window does not fit."""
        if length is None or (size is None and self.rule != "SAME"):
            return None
        if self.rule == "SAME":
            return (length + stride - 1) // stride
        before, after = self.amounts[axis] if self.amounts else (0, 0)
        room = length + before + after - ((size - 1) * dilation + 1)  # type: ignore[operator]
        if room < 0:
            raise ValueError(
                f"Negative dimension size caused by subtracting {size} from {length + before + after}"
            )
        return room // stride + 1


SAME, VALID = Padding("SAME"), Padding("VALID")


def padding_of(attributes: dict[str, Any], rank: int) -> Padding:
    """The padding rule of a node's attributes; ValueError for explicit amounts that do not fit the rank."""
    rule = attributes["padding"]
    if rule != "EXPLICIT":
        return SAME if rule == "SAME" else VALID
    amounts = attributes.get("explicit_paddings", ())
    if len(amounts) != 2 * rank or any(amount < 0 for amount in amounts):
        raise ValueError(
            f"explicit_paddings must contain {2 * rank} non-negative values, got {list(amounts)}"
        )
    pairs = [(amounts[i], amounts[i + 1]) for i in range(0, 2 * rank, 2)]
    return Padding("EXPLICIT", spatial(pairs, attributes.get("data_format", "NHWC")))


def require_rank(dims: Dims, rank: int) -> tuple[int | None, ...]:
    """`dims`, or unknown dims of that rank. ValueError for another rank."""
    if dims is None:
        return (None,) * rank
    if len(dims) != rank:
        raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}")
    return dims


def require_no_batch_stride(strides: Any, data_format: str, rank: int, what: str = "strides") -> None:
    """InvalidArgumentError if a window is to move over the batch or the channels."""
    channel = rank - 1 if is_channels_last(data_format) else 1
    if strides[0] != 1 or strides[channel] != 1:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Current implementation does not yet support {what} in the batch and depth dimensions.",
        )


def pad_spatial(x: torch.Tensor, before: Any, after: Any, value: float = 0) -> torch.Tensor:
    """A channels-first tensor with its spatial dimensions padded."""
    amounts = [amount for pair in zip(reversed(before), reversed(after)) for amount in pair]
    return torch.constant_pad_nd(x, amounts, value)


def crop_spatial(x: torch.Tensor, before: Any, lengths: Any) -> torch.Tensor:
    """The part of a channels-first tensor that padding surrounds; a view."""
    for axis, (start, length) in enumerate(zip(before, lengths)):
        if start or x.shape[axis + 2] != length:
            x = x.narrow(axis + 2, start, length)
    return x
