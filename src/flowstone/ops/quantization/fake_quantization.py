"""Floats rounded as quantisation would round them, to train networks that are quantised later.

The range [min, max] is divided into 2^num_bits - 1 steps, with `narrow_range` one less, and moved by part of
a step so that 0 is a step (Jacob et al., 2018). Gradients pass inside the range; those of numbers outside are
those of the range's ends. An empty range around 0 gives zeros, and passes all gradients. On a host both are
one pass of machine code, where there is the native tier.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.machine_code import StepPasses, step_passes
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.numbers.elementwise import FEW, by_pieces
from flowstone.ops.quantization.ranges import bounded, in_long_rows, passed_inside

__all__ = [
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
]

_STEPS = "num_bits: int = 8 ; narrow_range: bool = false"
_ENDS = "min: float = -6 ; max: float = 6 ; "
_BACK = "backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float"
_VARS, _CHANNELS = "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel"

args_op = op("FakeQuantWithMinMaxArgs", "inputs: float -> outputs: float", _ENDS + _STEPS, cost=6.0)
args_grad_op = op(
    "FakeQuantWithMinMaxArgsGradient",
    "gradients: float, inputs: float -> backprops: float",
    _ENDS + _STEPS,
    cost=3.0,
)
vars_op, channels_op = (
    op(name, "inputs: float, min: float, max: float -> outputs: float", _STEPS, cost=6.0)
    for name in (_VARS, _CHANNELS)
)
vars_grad_op, channels_grad_op = (
    op(
        f"{name}Gradient",
        f"gradients: float, inputs: float, min: float, max: float -> {_BACK}",
        _STEPS,
        cost=6.0,
    )
    for name in (_VARS, _CHANNELS)
)


class _Steps:
    """The steps that the attributes divide ranges into: integers from `first` to `last`."""

    def __init__(self, node: Node) -> None:
        bits = node.attributes["num_bits"]
        if not 2 <= bits <= 16:
            raise invalid(f"num_bits must be between 2 and 16, inclusive: {bits}")
        self.first, self.last = int(node.attributes["narrow_range"]), 2**bits - 1

    def over(self, low: torch.Tensor, high: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(least number, largest number, step) of ranges, moved so that 0 is a step."""
        step = (high - low) / (self.last - self.first)
        place = (self.first - low / step).clamp(self.first, self.last)
        zero = torch.floor(place + 0.5)
        return (self.first - zero) * step, (self.last - zero) * step, step

    def numbers(self, low: float, high: float) -> list[float] | None:
        """Of one range the least and the largest number, 1 / step, where 0 is, and the step, all float32 (see
        `native/arrays/step_code.py`); None if one is not finite."""
        single = np.float32
        with np.errstate(all="ignore"):
            bottom, top, half = single(self.first), single(self.last), single(0.5)
            step = (single(high) - single(low)) / (top - bottom)
            zero = np.floor(min(max(bottom - single(low) / step, bottom), top) + half)
            first, last, inverse = (bottom - zero) * step, (top - zero) * step, single(1) / step
            found = [first, last, inverse, np.floor(half - first * inverse), step]
        numbers = [float(each) for each in found]
        return numbers if all(map(math.isfinite, numbers)) else None


def _native(env: Environment) -> StepPasses | None:
    return step_passes(torch.float32) if env.device.type == "cpu" else None


def _rounded(
    x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, steps: _Steps, native: StepPasses | None
) -> torch.Tensor:
    if native is not None and x.numel():
        found = native.round_ranges(x, (low, high), (steps.first, steps.last))
        if found is not None:
            return found
    first, last, step = steps.over(low, high)
    inverse = 1 / step
    zero = torch.floor(0.5 - first * inverse)
    empty = (low == 0) & (high == 0)
    if not low.dim() and low.device.type == "cpu":

        def rounded(x: torch.Tensor) -> torch.Tensor:
            x = bounded(x, first, last).sub_(first).mul_(inverse).sub_(zero)
            return x.add_(0.5).floor_().mul_(step)

        return torch.zeros_like(x) if bool(empty) else by_pieces(rounded, x.dtype, x)
    rows, first, last, step, inverse, zero = in_long_rows(x, first, last, step, inverse, zero)
    found = torch.maximum(rows, first)
    torch.minimum(found, last, out=found)
    found = found.sub_(first).mul_(inverse).sub_(zero).add_(0.5).floor_().mul_(step).view(x.shape)
    if found.device.type == "cpu" and not bool(empty.any()):
        return found
    return found.masked_fill_(empty, 0)


def _passed(
    dy: torch.Tensor, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, steps: _Steps
) -> torch.Tensor:
    """The gradient times 1 inside the range, times 0 outside."""
    first, last, _ = steps.over(low, high)
    empty = (low == 0) & (high == 0)
    first, last = torch.where(empty, -math.inf, first), torch.where(empty, math.inf, last)
    if low.device.type != "cpu" or bool(empty.any()):
        return dy * (x >= first).logical_and_(x <= last).logical_or_(empty)
    rows, first, last = in_long_rows(x, first, last)
    return passed_inside(dy.reshape(rows.shape), rows, first, last).view(x.shape)


def _passed_to_ends(
    dy: torch.Tensor, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, steps: _Steps
) -> list[torch.Tensor]:
    """The sums of the gradient below and above the range."""
    first, last, _ = steps.over(low, high)
    width = (low != 0) | (high != 0)
    below, above = _sum_where(dy, x, torch.lt, first), _sum_where(dy, x, torch.gt, last)
    return [torch.where(width, below, 0), torch.where(width, above, 0)]


def _sum_where(dy: torch.Tensor, x: torch.Tensor, compare: Any, end: torch.Tensor) -> Any:
    """The sum, of all or by channel, of `dy` times whether `x` compares so with the ends."""
    if x.device.type == "cpu" and x.numel() >= FEW:
        rows, ends = in_long_rows(x, end)
        outside = compare(rows, ends, out=torch.empty_like(rows))
        if end.dim():
            return outside.mul_(dy.reshape(rows.shape)).sum(0).view(-1, len(end)).sum(0)
        return torch.dot(outside.view(-1), dy.reshape(-1))
    chosen = dy * compare(x, end)
    return chosen.reshape(-1, len(end)).sum(0) if end.dim() else chosen.sum()


# ---- ranges that are attributes


def _ends(node: Node) -> tuple[torch.Tensor, torch.Tensor]:
    low, high = node.attributes["min"], node.attributes["max"]
    if low >= high:
        raise invalid(f"min has to be smaller than max, was: {low} >= {high}")
    return torch.tensor(low, dtype=torch.float32), torch.tensor(high, dtype=torch.float32)


@args_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    steps, (low, high) = _Steps(node), _ends(node)
    native, numbers = _native(env), steps.numbers(low.item(), high.item())
    low, high = low.to(env.device), high.to(env.device)
    if native is not None and numbers is not None:
        return functools.partial(native.round, numbers=numbers)
    return lambda x: _rounded(x, low, high, steps, None)


@args_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    steps, (low, high) = _Steps(node), _ends(node)
    native, ends = _native(env), [each.item() for each in steps.over(low, high)[:2]]
    low, high = low.to(env.device), high.to(env.device)

    def run(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        _check_equal(dy, x)
        if native is not None:
            return native.masked(dy, x, *ends)
        return _passed(dy, x, low, high, steps)

    return run


def _check_equal(dy: torch.Tensor, x: torch.Tensor) -> None:
    if dy.shape != x.shape:
        raise invalid(f"gradient and input must be the same size: {list(dy.shape)}, {list(x.shape)}")


# ---- ranges that are inputs


def _check_ends(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, by_channel: bool) -> None:
    if not by_channel:
        if low.dim() or high.dim():
            raise invalid(f"`min` and `max` must be scalars: {list(low.shape)}, {list(high.shape)}")
    elif not x.dim() or [*low.shape, *high.shape] != [x.shape[-1]] * 2 or low.dim() != 1:
        raise invalid(
            f"min and max must be [{x.shape[-1] if x.dim() else 1}]: {list(low.shape)}, {list(high.shape)}"
        )


def _forward(node: Node, env: Environment) -> Kernel:
    steps, by_channel, native = _Steps(node), node.declaration is channels_op, _native(env)

    def run(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        _check_ends(x, low, high, by_channel)
        return _rounded(x, low, high, steps, native)

    return run


def _backward(node: Node, env: Environment) -> Kernel:
    steps, by_channel, native = _Steps(node), node.declaration is channels_grad_op, _native(env)

    def run(dy: torch.Tensor, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> list[torch.Tensor]:
        _check_equal(dy, x)
        _check_ends(x, low, high, by_channel)
        if native is not None and x.numel():
            found = native.passed_ranges(dy, x, (low, high), (steps.first, steps.last))
            if found is not None:
                return found
        return [_passed(dy, x, low, high, steps), *_passed_to_ends(dy, x, low, high, steps)]

    return run


def _infer_ends(node: Node, first: int, by_channel: bool) -> Any:
    """The dims of the input, whose last fits the ends."""
    dims = node.dims(first)
    for i in (first + 1, first + 2):
        ends = node.dims(i)
        if ends is not None and len(ends) != by_channel:
            raise ValueError(f"Shape must be rank {int(by_channel)} but is rank {len(ends)}")
        if not by_channel or dims is None:
            continue
        if not dims:
            raise ValueError("Shape must be at least rank 1 but is rank 0")
        if ends is not None and ends[0] is not None:
            if dims[-1] not in (None, ends[0]):
                raise ValueError(f"Dimensions must be equal, but are {dims[-1]} and {ends[0]}")
            dims = (*dims[:-1], ends[0])
    return dims


def _infer_backward(node: Node) -> Shapes:
    by_channel = node.declaration is channels_grad_op
    dims = merge(_infer_ends(node, 1, by_channel), node.dims(0))
    if not by_channel:
        return [dims, (), ()]
    known = [node.dims(i) for i in (2, 3)]
    ends: Dims = (None,) if dims is None else (dims[-1],)
    for each in known:
        ends = merge(ends, each)
    return [dims, ends, ends]


def _steps_of(op: Operation) -> dict[str, Any]:
    return {key: op.attributes[key] for key in ("num_bits", "narrow_range")}


args_op.infer(lambda node: node.dims(0))
args_grad_op.infer(lambda node: merge(node.dims(0), node.dims(1)))
vars_op.infer(lambda node: _infer_ends(node, 0, False))
channels_op.infer(lambda node: _infer_ends(node, 0, True))
for _each in (vars_op, channels_op):
    _each.kernel(CPU, GPU)(_forward)
for _each in (vars_grad_op, channels_grad_op):
    _each.kernel(CPU, GPU)(_backward)
    _each.infer(_infer_backward)
    _each.not_differentiable()
args_grad_op.not_differentiable()


@args_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    ends = {key: op.attributes[key] for key in ("min", "max")}
    return F.FakeQuantWithMinMaxArgsGradient(dy, op.inputs[0], **ends, **_steps_of(op))


@vars_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return F.FakeQuantWithMinMaxVarsGradient(dy, *op.inputs, **_steps_of(op))


@channels_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return F.FakeQuantWithMinMaxVarsPerChannelGradient(dy, *op.inputs, **_steps_of(op))


def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """float32 numbers rounded to the steps that integers of `num_bits` bits divide [min, max] into.

    `num_bits` is from 2 to 16; with `narrow_range` the lowest integer is left out. Numbers outside the range
    become its ends.
    """
    return args_op(inputs, min=min, max=max, num_bits=num_bits, narrow_range=narrow_range, name=name)


def fake_quant_with_min_max_args_gradient(
    gradients: Any, inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8,
    narrow_range: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of `fake_quant_with_min_max_args`: `gradients` where `inputs` are in the range."""
    return args_grad_op(
        gradients, inputs, min=min, max=max, num_bits=num_bits, narrow_range=narrow_range, name=name
    )


def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`fake_quant_with_min_max_args` over a range of two float32 scalars, which may be trained."""
    return vars_op(inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name)


def fake_quant_with_min_max_vars_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The gradients of `fake_quant_with_min_max_vars` with respect to its inputs, `min` and `max`."""
    return vars_grad_op.several(
        gradients, inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name
    )


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`fake_quant_with_min_max_vars` with a range, of two vectors, for each element of the last dimension."""
    return channels_op(inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The gradients of `fake_quant_with_min_max_vars_per_channel` with respect to its three inputs."""
    return channels_grad_op.several(
        gradients, inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name
    )
