"""Floats to quantised integers and back.

Three modes say how the type's integers cover the range [min_range, max_range]: MIN_COMBINED scales the range
onto them, MIN_FIRST too but so that zero is an integer, and SCALED keeps zero as 0 and scales both sides
alike, by the side that would leave the integers first. With one range on a host they are one pass of machine
code, where there is the native tier.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.machine.machine_code import step_passes
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.numbers.elementwise import by_pieces
from flowstone.ops.quantization.ranges import bounded, limits, narrowed, rounded_away, rounded_up

__all__ = ["dequantize", "quantize", "quantize_v2"]

_MODE = "mode: string in ['MIN_COMBINED', 'MIN_FIRST', 'SCALED'] = 'MIN_COMBINED'"
_RANGE = ("min_range", "max_range")
_LARGEST = torch.finfo(torch.float32).max

quantize_op = op(
    "QuantizeV2",
    "input: float, min_range: float, max_range: float -> output: T, output_min: float, output_max: float",
    f"{_MODE} ; round_mode: string in ['HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'] = 'HALF_AWAY_FROM_ZERO' ; "
    "narrow_range: bool = false ; axis: int = -1 ; ensure_minimum_range: float = 0.01",
    T=dtypes.QUANTIZED,
    host=(*_RANGE, "output_min", "output_max"),
    capturable=False,
    cost=6.0,
)
dequantize_op = op(
    "Dequantize",
    "input: T, min_range: float, max_range: float -> output: dtype",
    f"{_MODE} ; narrow_range: bool = false ; axis: int = -1 ; dtype: type in [bfloat16, float32] = float32",
    T=dtypes.QUANTIZED,
    host=_RANGE,
    cost=2.0,
)


def _check_ranges(node: Node) -> tuple[int | None, ...] | None:
    """The dims of the ends: none, or one a slice along the axis. ValueError if they do not fit."""
    axis, dims = node.attributes["axis"], node.dims(0)
    if axis < -1:
        raise ValueError(f"axis should be at least -1, got {axis}")
    if axis >= 0 and dims is not None and axis >= len(dims):
        raise ValueError(f"Axis must be less than input dimension({len(dims)}), got {axis}")
    found: tuple[int | None, ...] | None = None
    for i in (1, 2):
        ends = node.dims(i)
        if ends is None:
            continue
        if len(ends) != (axis != -1):
            raise ValueError(f"Shape must be rank {int(axis != -1)} but is rank {len(ends)}")
        size = dims[axis] if dims is not None and axis >= 0 else None
        if ends and None not in (ends[0], size) and ends[0] != size:
            raise ValueError(f"Dimensions must be equal, but are {ends[0]} and {size}")
        found = ends
    if axis == -1:
        return ()
    return (dims[axis],) if dims is not None else found or (None,)


@quantize_op.infer
def _(node: Node) -> Shapes:
    ends = _check_ranges(node)
    return [node.dims(0), ends, ends]


@dequantize_op.infer
def _(node: Node) -> Shapes:
    _check_ranges(node)
    return node.dims(0)


class _Form(NamedTuple):
    """What the attributes say."""

    dtype: DType
    mode: str
    narrow: bool
    axis: int

    @staticmethod
    def of(node: Node, dtype: DType) -> _Form:
        attributes = node.attributes
        return _Form(dtype, attributes["mode"], attributes["narrow_range"], attributes["axis"])

    @property
    def lowest(self) -> int:
        return limits(self.dtype)[0] + self.narrow

    @property
    def highest(self) -> int:
        return limits(self.dtype)[1]

    @property
    def half(self) -> float:
        """What is added to signed integers to make them start at 0."""
        lowest, highest = limits(self.dtype)
        return (highest - lowest + 1) / 2 if lowest < 0 else 0.0

    def spread(self, ends: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """The ends, so that they broadcast against `x`."""
        if self.axis == -1:
            return ends
        return ends.view([-1 if i == self.axis else 1 for i in range(x.dim())]).to(x.device)

    def check(self, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> None:
        """InvalidArgumentError unless the ends fit the input."""
        for name, ends in (("min_range", low), ("max_range", high)):
            if self.axis == -1 and ends.numel() != 1:
                raise invalid(f"{name} must be a scalar, but its shape is {list(ends.shape)}")
            if self.axis >= 0 and (
                self.axis >= x.dim() or ends.dim() != 1 or len(ends) != x.shape[self.axis]
            ):
                raise invalid(f"{name} must have one element a slice along {self.axis}: {list(ends.shape)}")


# ---- floats to integers


def _widened(low: torch.Tensor, high: torch.Tensor, least: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The range with zero in it, and not too narrow."""
    if not low.dim() and not high.dim() and low.device.type == "cpu":
        return _widened_scalars(low.item(), high.item(), least)
    if bool((low > high).any()):
        raise invalid(f"input_max_range must be larger than input_min_range: {low.tolist()}, {high.tolist()}")
    margin = torch.maximum(low.abs(), high.abs()).nan_to_num(1.0).clamp(min=1.0) * least
    low = torch.where(low < 0, low, 0)
    high = torch.maximum(high, low + margin)
    return low, high.clamp(min=0)


def _widened_scalars(low: float, high: float, least: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of one range: a tenth of the time."""
    if low > high:
        raise invalid(f"input_max_range must be larger than input_min_range: {low}, {high}")
    largest = _LARGEST if math.isinf(low) or math.isinf(high) else max(abs(low), abs(high))
    margin = np.float32(1.0 if math.isnan(low + high) else max(largest, 1.0)) * np.float32(least)
    low = low if low < 0 else 0.0
    above = float(np.float32(low) + margin)
    high = max(high if math.isnan(high) else max(high, above), 0.0)
    return torch.scalar_tensor(low), torch.scalar_tensor(high)


def _over(number: float, x: torch.Tensor) -> torch.Tensor:
    """number / x, rounded once; ATen would multiply by 1 / x."""
    return torch.full_like(x, number) / x


def _scaled_range(form: _Form, low: torch.Tensor, high: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """(integers a unit, least number, largest number) of the mode SCALED."""
    by_low = torch.where(form.lowest * low > 0, _over(form.lowest, low), _LARGEST)
    by_high = torch.where(form.highest * high > 0, _over(form.highest, high), _LARGEST)
    scale = torch.minimum(by_low, by_high)
    return scale, _over(form.lowest, scale), _over(form.highest, scale)


@quantize_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    form = _Form.of(node, node.outputs[0].dtype)
    least, even = node.attributes["ensure_minimum_range"], node.attributes["round_mode"] == "HALF_TO_EVEN"
    if even and form.mode != "SCALED":
        raise invalid(
            f"Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{form.mode}'."
        )
    if form.mode == "MIN_FIRST" and form.axis != -1:
        raise errors.UnimplementedError(
            None, None, "MIN_FIRST mode is not implemented for Quantize with axis != -1."
        )

    is_native = env.device.type == "cpu" and form.axis == -1 and form.highest < 2**16 and not even
    native = step_passes(form.dtype.torch) if is_native else None

    @functools.lru_cache(maxsize=1)  # ranges are often constants
    def numbers_of(low: float, high: float) -> tuple[list[float], list[float]]:
        numbers, *found = _numbers(form, *_widened(torch.tensor(low), torch.tensor(high), least))
        return numbers, [each.item() for each in found]

    def run(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> list[torch.Tensor]:
        form.check(x, low, high)
        assert form.dtype.torch is not None
        if native is not None:
            numbers, ends = numbers_of(low.item(), high.item())
            if not any(map(math.isnan, numbers)):
                return [native.quantize(x, numbers, form.dtype.torch), *map(torch.scalar_tensor, ends)]
        shape = low.shape if form.axis != -1 else ()
        low, high = _widened(low.reshape(shape), high.reshape(shape), least)
        if form.mode == "SCALED":
            scale, low, high = _scaled_range(form, low, high)
            convert = _by_scale(form, x, low, high, scale, even)
        elif form.mode == "MIN_FIRST":
            convert = _by_steps(form, low, high)
        else:
            convert = _by_range(form, x, low, high)
        if form.axis != -1:
            return [convert(x), low, high]
        return [by_pieces(convert, form.dtype.torch, x), low, high]

    return run


def _numbers(
    form: _Form, low: torch.Tensor, high: torch.Tensor
) -> tuple[list[float], torch.Tensor, torch.Tensor]:
    """What machine code quantises by (`native/arrays/step_code.py`), and the range of the results."""
    ends = limits(form.dtype)
    if form.mode == "SCALED":
        scale, low, high = _scaled_range(form, low, high)
        return [low.item(), high.item(), 0, scale.item(), 0, 0, *ends], low, high
    if form.mode == "MIN_FIRST":
        scale, offset = _scale_and_offset(form, low, high)
        return [-math.inf, math.inf, 0, scale.item(), 0, offset.item(), *ends], low, high
    first, last = low.item(), high.item()
    with np.errstate(all="ignore"):  # by numbers, a fifth of the time of tensors
        steps = float(np.float32(ends[1] - ends[0]) / (np.float32(last) - np.float32(first)))
    return [first, last, first, steps, form.half, 0, *ends], low, high


_Convert = Callable[[torch.Tensor], torch.Tensor]


def _by_scale(
    form: _Form, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, scale: torch.Tensor, even: bool
) -> _Convert:
    """The integers of the mode SCALED, of `x` or, without an axis, of any part of it."""
    low, high, scale = form.spread(low, x), form.spread(high, x), form.spread(scale, x)

    def convert(x: torch.Tensor) -> torch.Tensor:
        product = bounded(x, low, high).mul_(scale)
        return narrowed(product.round_() if even else rounded_away(product), form.dtype)

    return convert


def _by_range(form: _Form, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> _Convert:
    """The integers of the mode MIN_COMBINED."""
    lowest, highest = limits(form.dtype)
    scale = form.spread(_over(highest - lowest, high - low), x)
    low, high = form.spread(low, x), form.spread(high, x)

    def convert(x: torch.Tensor) -> torch.Tensor:
        product = bounded(x, low, high).sub_(low).mul_(scale)
        if not form.half:
            return rounded_up(product).to(torch.int32).to(form.dtype.torch)
        return narrowed(rounded_away(product.sub_(form.half)), form.dtype)

    return convert


def _by_steps(form: _Form, low: torch.Tensor, high: torch.Tensor) -> _Convert:
    """The integers of the mode MIN_FIRST, whose steps include 0."""
    scale, offset = _scale_and_offset(form, low, high)
    return lambda x: narrowed(rounded_away(x * scale).sub_(offset), form.dtype)


def _scale_and_offset(
    form: _Form, low: torch.Tensor, high: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Steps a unit in the mode MIN_FIRST, and how many the lowest integer is from 0."""
    lowest, highest = limits(form.dtype)
    steps = float(highest - lowest + 1)
    scale = (steps / ((high - low).double() * (steps / (steps - 1.0)))).float()
    return scale, rounded_away(low * scale) - lowest


# ---- integers to floats


@dequantize_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    form = _Form.of(node, node.dtype(0))
    result = node.outputs[0].dtype.torch
    lowest, highest = limits(form.dtype)
    if form.mode == "MIN_FIRST" and form.axis != -1:
        raise errors.UnimplementedError(
            None, None, "MIN_FIRST mode is not implemented for Dequantize with axis != -1."
        )
    if form.mode == "MIN_COMBINED" and form.axis != -1:
        raise errors.UnimplementedError(
            None, None, "MIN_COMBINED mode is not implemented for Dequantize with axis != -1."
        )

    is_native = env.device.type == "cpu" and form.axis == -1 and result is torch.float32
    native = step_passes(form.dtype.torch) if is_native else None

    def floats(convert: _Convert, x: torch.Tensor) -> torch.Tensor:
        assert result is not None
        return by_pieces(lambda part: convert(part).to(result), result, x)

    def run(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        form.check(x, low, high)
        shape = low.shape if form.axis != -1 else ()
        low, high = low.reshape(shape), high.reshape(shape)
        if form.mode == "SCALED":
            factor = (
                high / form.highest if lowest == 0 else torch.maximum(low / form.lowest, high / form.highest)
            )
            if native is not None:
                return native.dequantize(x, [0, factor.item(), 0], False)
            factor = form.spread(factor, x)
            if factor.dim():
                return (x.float() * factor).to(result)
            return floats(lambda x: x.float().mul_(factor), x)
        if form.mode == "MIN_FIRST":
            if float(low) == float(high):
                return torch.full(x.shape, float(low), dtype=result, device=x.device)
            step = (high - low).double() / (highest - lowest)
            steps = rounded_away((low / step.float()).double())
            first = steps * step
            if native is not None and math.isfinite(steps.item()):
                found = native.dequantize_multiples(x, lowest - int(steps.item()), step.item())
                if found is not None:
                    return found
                return native.dequantize(x, [-lowest, step.item(), first.item()], True)
            return floats(lambda x: x.double().sub_(lowest).mul_(step).add_(first).float(), x)
        factor, half = (high - low) / (highest - lowest), form.half
        if native is not None:
            return native.dequantize(x, [half, factor.item(), low.item()], False)
        return floats(lambda x: (x.float().add_(half) if half else x.float()).mul_(factor).add_(low), x)

    return run


quantize_op.no_gradient()
dequantize_op.no_gradient()


def quantize_v2(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> Any:
    """(integers, least number, largest number) that stand for floats.

    Args:
        input: float32 numbers of any shape.
        min_range, max_range: the ends of the numbers' range, float32 scalars, or vectors with one element a
            slice along `axis`. Zero is taken in.
        T: the quantised type: qint8, quint8, qint16, quint16 or qint32.
        mode: "MIN_COMBINED", "MIN_FIRST" or "SCALED".
        round_mode: "HALF_AWAY_FROM_ZERO", or "HALF_TO_EVEN" of the mode "SCALED".
        narrow_range: whether "SCALED" leaves the lowest integer out.
        axis: along which ranges differ, not of the mode "MIN_FIRST".
        ensure_minimum_range: how wide the range is at least, relative to its larger end.

    Raises InvalidArgumentError, while running, if the largest number is below the least.
    """
    return quantize_op.several(
        input, min_range, max_range, T=dtypes.as_dtype(T), mode=mode, round_mode=round_mode,
        narrow_range=narrow_range, axis=-1 if axis is None else axis,
        ensure_minimum_range=ensure_minimum_range, name=name,
    )  # fmt: skip


def quantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> Any:
    """`quantize_v2` with the name after the rounding."""
    return quantize_v2(
        input, min_range, max_range, T, mode, name, round_mode, narrow_range, axis, ensure_minimum_range
    )


def dequantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    axis: int | None = None,
    narrow_range: bool = False,
    dtype: Any = dtypes.float32,
) -> Tensor:
    """The numbers, float32 or bfloat16, that quantised integers over [min_range, max_range] stand for.

    `axis` and `narrow_range` are of the mode "SCALED", as in `quantize_v2`.
    """
    return dequantize_op(
        input, min_range, max_range, mode=mode, axis=-1 if axis is None else axis,
        narrow_range=narrow_range, dtype=dtypes.as_dtype(dtype), name=name,
    )  # fmt: skip
