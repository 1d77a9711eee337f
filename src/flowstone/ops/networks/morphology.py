"""Grey-scale morphology of images: dilation, erosion, and the gradients of the former.

Dilation takes the maximum over a window of image plus structuring filter: [batch, height, width, depth] with
a filter [rows, columns, depth], `rates` apart. Positions outside the image are never the maximum, nor is NaN
or what does not exceed the type's least number; of equals the first counts. Public names here belong to
``tf.nn``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.network_code import Windows
from flowstone.framework.machine.network_code import dilation as by_machine_code
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import in_signed, invalid
from flowstone.ops.networks.windows import SAME, VALID, require_rank

__all__ = ["dilation2d", "erosion2d"]

_ATTRIBUTES = "strides: list(int) >= 4 ; rates: list(int) >= 4 ; padding: string in ['SAME', 'VALID']"
_TYPES = (*dtypes.REAL, dtypes.bfloat16)

dilation2d_op = op(
    "Dilation2D",
    "input: T, filter: T -> output: T",
    _ATTRIBUTES,
    T=_TYPES,
    cost=work.depthwise_convolution(work.first_output, work.input_at(1)),
)
_COST = work.depthwise_convolution(work.input_at(2), work.input_at(1))
dilation2d_backprop_input = op(
    "Dilation2DBackpropInput",
    "input: T, filter: T, out_backprop: T -> in_backprop: T",
    _ATTRIBUTES,
    T=_TYPES,
    cost=_COST,
)
dilation2d_backprop_filter = op(
    "Dilation2DBackpropFilter",
    "input: T, filter: T, out_backprop: T -> filter_backprop: T",
    _ATTRIBUTES,
    T=_TYPES,
    cost=_COST,
)


_OUTSIDE = -(2**62)  # what stands for integers outside the image
_LONG = 16  # elements from which loops over pixels are long
_PART = 2**18  # elements of images that are computed at once: they stay in caches
_WORDS = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes an element


def _batch_is_last(x: torch.Tensor) -> bool:
    """Whether images [batch, height, width, depth] are turned so that the batch comes last in memory."""
    return x.shape[3] < _LONG and x.shape[0] >= x.shape[2] and x.numel() > 0


def _windows(attributes: Any, image: torch.Tensor, kernel: torch.Tensor) -> tuple[Windows, Any]:
    """The windows of a node over images, and the padding after these."""
    if image.dim() != 4 or kernel.dim() != 3 or image.shape[3] != kernel.shape[2]:
        raise invalid(f"input and filter must have the same depth: {image.shape[-1]} vs {kernel.shape[-1]}")
    for what in ("strides", "rates"):
        if attributes[what][0] != 1 or attributes[what][3] != 1:
            raise errors.UnimplementedError(
                None, None, f"{what[:-1].capitalize()} is only supported across spatial dimensions."
            )
    strides, rates = attributes["strides"][1:3], attributes["rates"][1:3]
    rule = SAME if attributes["padding"] == "SAME" else VALID
    counts, before, after = rule.solve(image.shape[1:3], kernel.shape[:2], strides, rates)
    batch, height, width, depth = image.shape
    taps, counted = (kernel.shape[0], kernel.shape[1]), (counts[0], counts[1], depth)
    steps, apart, margin = ((each[0], each[1]) for each in (strides, rates, before))
    return Windows((batch, height, width, depth), taps, depth, counted, steps, apart, margin), after


def _natively(name: str, attributes: Any, *values: torch.Tensor) -> torch.Tensor | None:
    """Dilation or a gradient of it by machine code; None where there is none for it."""
    image, kernel, *flow = values
    native = by_machine_code(image.dtype) if image.device.type == "cpu" else None
    if native is None or 0 in kernel.shape or 0 in image.shape:
        return None
    windows, _ = _windows(attributes, image, kernel)
    wrong = any(each.shape != (image.shape[0], *windows.counts) for each in flow)
    if wrong or 0 in windows.counts or image[0].numel() >= 2**31:
        return None
    return native(name, windows, *[each.contiguous() for each in values])


class _Dilation:
    """The windows of a node over one image shape: `positions` are slices of the padded image, row by row."""

    def __init__(self, attributes: Any, image: torch.Tensor, kernel: torch.Tensor) -> None:
        windows, after = _windows(attributes, image, kernel)
        counts, strides, rates, before = windows.counts[:2], *windows[4:]
        self.dtype, exact = image.dtype, image.dtype.is_floating_point
        wide = image if exact else image.to(torch.int64)
        lowest = -math.inf if exact else _OUTSIDE
        self.least = torch.finfo(image.dtype).min if exact else None
        pad = [before[1], after[1], before[0], after[0]]
        self.before = before
        if _batch_is_last(wide):  # where whole rows of the batch are copied
            self.image = torch.constant_pad_nd(self.turned(wide), [0, 0, 0, 0, *pad], lowest)
        else:
            self.image = self.turned(torch.constant_pad_nd(wide, [0, 0, *pad], lowest))
        self.filter = kernel if exact else kernel.to(torch.int64)
        self.positions = [
            (
                slice(row * rates[0], row * rates[0] + (counts[0] - 1) * strides[0] + 1, strides[0]),
                slice(column * rates[1], column * rates[1] + (counts[1] - 1) * strides[1] + 1, strides[1]),
            )
            for row in range(kernel.shape[0])
            for column in range(kernel.shape[1])
        ]
        self.counts, self.strides = counts, strides
        self.lost: torch.Tensor | None = None  # flows of outputs that have no maximum

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        """Images as [height, width, depth, batch]. Unless pixels are long, what comes last in memory is the
        batch or the rows of images, whichever is longer."""
        if _batch_is_last(x):
            return x.reshape(x.shape[0], -1).t().contiguous().view(*x.shape[1:], x.shape[0])
        if x.shape[3] >= _LONG:
            return x.permute(1, 2, 3, 0)
        return x.permute(3, 0, 1, 2).contiguous().permute(2, 3, 0, 1)

    def candidates(self) -> Iterator[Any]:
        """Image plus filter for each position of the filter, [rows, columns, depth, batch]."""
        offsets = self.filter.flatten(0, 1).unsqueeze(2)
        for position, offset in zip(self.positions, offsets):
            candidate = self.image[position] + offset
            if self.least is not None:
                yield candidate.nan_to_num_(self.least, math.inf, self.least)
            else:  # sums wrap around in the type of the images before they are compared
                wrapped = candidate.to(self.dtype).to(torch.int64)
                yield candidate.where(candidate < _OUTSIDE // 2, wrapped)

    def best(self) -> torch.Tensor:
        """The greatest candidates; of none, the least number."""
        if not self.positions:
            least = torch.finfo if self.image.is_floating_point() else torch.iinfo
            shape = *self.counts, *self.image.shape[2:]
            return self.image.new_full(shape, least(self.dtype).min)
        best: Any = None
        for candidate in self.candidates():
            best = candidate if best is None else torch.maximum(best, candidate, out=best)
        return best  # type: ignore[no-any-return]

    def check(self, dy: torch.Tensor) -> None:
        """Raises InvalidArgumentError unless there is a gradient for each output."""
        _, _, depth, batch = self.image.shape
        if dy.shape != (batch, *self.counts, depth):
            raise invalid(f"out_backprop has incompatible size: {list(dy.shape)}")

    def flows(self, dy: torch.Tensor) -> Iterator[torch.Tensor]:
        """For each position of the filter, the gradients of outputs whose first maximum it has, else 0."""
        dy, best = self.turned(dy), self.best()
        if self.least is not None:
            nothing = best == self.least
            self.lost, dy = torch.where(nothing, dy, 0), dy.masked_fill(nothing, 0)
        if best.device.type != "cpu" or not best.is_floating_point():
            winner = self.winners()
            yield from (torch.where(winner == number, dy, 0) for number in range(len(self.positions)))
            return
        word = _WORDS[dy.dtype.itemsize]
        rest = dy.clone().view(word)
        for candidate in self.candidates():
            mask = candidate.eq_(best).view(word).neg_()  # minus 0, or minus the bits of 1.0: negative
            flow = mask.bitwise_right_shift_(8 * dy.dtype.itemsize - 1).bitwise_and_(rest)
            rest.bitwise_xor_(flow)
            yield flow.view(dy.dtype)

    def winners(self) -> torch.Tensor:
        """The number of the filter position that has the maximum, for each output; nothing exceeds NaN."""
        candidates = enumerate(self.candidates())
        _, best = next(candidates)
        winner = torch.zeros_like(best, dtype=torch.int64)
        for number, candidate in candidates:
            wins = candidate > best
            best, winner = torch.where(wins, candidate, best), winner.masked_fill(wins, number)
        return winner


def _parts(*images: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Batches of images that are not large, at least one."""
    of_one = max(1, images[0][:1].numel()) if images[0].dim() == 4 else 1
    if any(each.shape[:1] != images[0].shape[:1] for each in images):
        raise invalid(f"out_backprop has incompatible size: {list(images[-1].shape)}")
    return zip(*[each.split(max(1, _PART // of_one)) for each in images])


@dilation2d_op.infer
def _(node: Node) -> Shapes:
    image, kernel = require_rank(node.dims(0), 4), require_rank(node.dims(1), 3)
    depth = image[3] if kernel[2] is None else kernel[2]
    if image[3] is not None and image[3] != depth:
        raise ValueError(f"Dimensions must be equal, but are {image[3]} and {kernel[2]}")
    rule = SAME if node.attributes["padding"] == "SAME" else VALID
    strides, rates = node.attributes["strides"][1:3], node.attributes["rates"][1:3]
    found = zip(image[1:3], kernel[:2], strides, rates)
    return (image[0], *[rule.count(*one, axis) for axis, one in enumerate(found)], depth)


@dilation2d_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    attributes = node.attributes

    def run(image: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
        if (found := _natively("dilated", attributes, image, kernel)) is not None:
            return found
        parts = [of(part, kernel) for (part,) in _parts(image)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def of(image: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
        best = _Dilation(attributes, image, kernel).best()
        return best.permute(3, 0, 1, 2).to(image.dtype).contiguous()

    return run


@dilation2d_backprop_input.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    attributes = node.attributes

    def run(image: torch.Tensor, kernel: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        if (found := _natively("to_images", attributes, image, kernel, dy)) is not None:
            return found
        parts = [of(part, kernel, flow) for part, flow in _parts(image, dy)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def of(image: torch.Tensor, kernel: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        windows = _Dilation(attributes, image, kernel)
        windows.check(dy)
        gradient = torch.zeros_like(windows.image, dtype=dy.dtype)
        for position, flow in zip(windows.positions, windows.flows(dy)):
            gradient[position] += flow
        if windows.lost is not None:  # the first pixel of the window has it
            axes = zip(windows.counts, windows.strides, windows.before)
            rows, columns = (
                (torch.arange(n, device=dy.device) * by).clamp_(before) for n, by, before in axes
            )
            gradient.index_put_((rows[:, None], columns), windows.lost, accumulate=True)
        top, left = windows.before
        inner = gradient[top : top + image.shape[1], left : left + image.shape[2]]
        return inner.permute(3, 0, 1, 2).contiguous()

    return in_signed(node.dtype(0), run, 2)


@dilation2d_backprop_filter.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    attributes = node.attributes

    def run(image: torch.Tensor, kernel: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        if (found := _natively("to_filter", attributes, image, kernel, dy)) is not None:
            return found
        sums = [of(part, kernel, flow) for part, flow in _parts(image, dy)]
        return (sums[0] if len(sums) == 1 else torch.stack(sums).sum(0)).view(kernel.shape).to(dy.dtype)

    def of(image: torch.Tensor, kernel: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        windows = _Dilation(attributes, image, kernel)
        windows.check(dy)
        dtype = torch.float64 if dy.is_floating_point() else None
        flows = windows.flows(dy) if windows.positions else ()
        sums = [flow.sum((0, 1, 3), dtype=dtype) for flow in flows]
        if windows.lost is not None:
            sums[0] += windows.lost.sum((0, 1, 3), dtype=dtype)
        return torch.stack(sums) if sums else torch.zeros_like(kernel)

    return in_signed(node.dtype(0), run, 2)


dilation2d_backprop_input.infer(lambda node: node.dims(0))
dilation2d_backprop_filter.infer(lambda node: node.dims(1))
dilation2d_backprop_input.no_gradient()
dilation2d_backprop_filter.no_gradient()


@dilation2d_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    attributes = {key: op.attributes[key] for key in ("strides", "rates", "padding")}
    return (
        F.Dilation2DBackpropInput(*op.inputs, dy, **attributes),
        F.Dilation2DBackpropFilter(*op.inputs, dy, **attributes),
    )


def dilation2d(
    input: Any, filter: Any = None, strides: Any = None, rates: Any = None, padding: Any = None,
    name: str | None = None, filters: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    """The grey-scale dilation of images [batch, height, width, depth] by a filter [rows, columns, depth]."""
    kernel = filter if filters is None else filters
    return dilation2d_op(
        input,
        kernel,
        strides=strides,
        rates=rates if dilations is None else dilations,
        padding=padding,
        name=name,
    )


def erosion2d(
    value: Any, kernel: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """The grey-scale erosion: minus the dilation of -value by the kernel turned by 180 degrees."""
    with get_default_graph().name_scope(name or "erosion2d") as scope:
        kernel = convert_to_tensor(kernel, name="kernel")
        turned = F.ReverseV2(kernel, [0, 1])
        dilated = dilation2d_op(
            F.Neg(value), turned, strides=strides, rates=rates, padding=padding, name=scope
        )
        return F.Neg(dilated)
