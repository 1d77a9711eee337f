"""Floats rounded to the steps of signed or unsigned integers, by a scale alone: 0 stays 0.

The integers of `num_bits` bits are scaled so that both ends of the range are among them; where no range is
given it is that of the input, or of its slices along `axis`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.machine_code import step_passes
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.quantization.ranges import bounded, passed_inside

__all__ = ["quantize_and_dequantize", "quantize_and_dequantize_v2"]

_SIGNED, _BITS = "signed_input: bool = true", "num_bits: int = 8"
_LATER = (
    "round_mode: string in ['HALF_TO_EVEN', 'HALF_UP'] = 'HALF_TO_EVEN' ; "
    "narrow_range: bool = false ; axis: int = -1"
)
_TYPES = dtypes.FLOATS_WITH_BFLOAT16
_RANGE = "input: T, input_min: T, input_max: T"

first_op = op(
    "QuantizeAndDequantize",
    "input: T -> output: T",
    f"{_SIGNED} ; {_BITS} ; range_given: bool = false ; input_min: float = 0 ; input_max: float = 0",
    T=_TYPES,
    deprecated=(22, "QuantizeAndDequantizeV2"),
    cost=6.0,
)
second_op, fourth_op = (
    op(
        f"QuantizeAndDequantizeV{version}",
        f"{_RANGE} -> output: T",
        f"{_SIGNED} ; {_BITS} ; range_given: bool = false ; {_LATER}",
        T=_TYPES,
        capturable=False,
        cost=6.0,
    )
    for version in (2, 4)
)
third_op = op(
    "QuantizeAndDequantizeV3",
    f"{_RANGE}, num_bits: int32 -> output: T",
    f"{_SIGNED} ; range_given: bool = true ; narrow_range: bool = false ; axis: int = -1",
    T=_TYPES,
    host=("num_bits",),
    capturable=False,
    cost=6.0,
)
fourth_grad_op = op(
    "QuantizeAndDequantizeV4Grad",
    f"gradients: T, {_RANGE} -> input_backprop: T, input_min_backprop: T, input_max_backprop: T",
    "axis: int = -1",
    T=_TYPES,
    cost=4.0,
)


class _Form:
    """What the attributes say: whether integers are `signed`, the range `given`, how halves go."""

    def __init__(self, node: Node) -> None:
        get = node.attributes.get
        self.signed, self.given = bool(get("signed_input")), bool(get("range_given"))
        self.narrow, self.axis = get("narrow_range", False), get("axis", -1)
        self.half_up = get("round_mode") == "HALF_UP"
        self._native = step_passes(torch.float32) if node.outputs[0].dtype.name == "float32" else None

    def limits(self, bits: int) -> tuple[int, int]:
        """The lowest and highest integer of so many bits."""
        if not 1 <= bits - self.signed <= 62:
            raise invalid(f"num_bits is out of range: {bits} with signed_input {self.signed}")
        if not self.signed:
            return 0, 2**bits - 1
        return -(2 ** (bits - 1)) + int(self.narrow), 2 ** (bits - 1) - 1

    def ends_of(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The range of the input, or of its slices."""
        if not x.numel():
            return x.new_zeros(()), x.new_zeros(())
        if self.axis == -1:
            return x.aminmax()
        others = [axis for axis in range(x.dim()) if axis != self.axis]
        return (x.amin(others), x.amax(others)) if others else (x, x)

    def spread(self, ends: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """The ends, so that they broadcast against `x`."""
        if self.axis == -1 or not ends.dim():
            return ends.reshape(())
        return ends.view([-1 if axis == self.axis else 1 for axis in range(x.dim())])

    def passed(
        self, dy: torch.Tensor, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor
    ) -> torch.Tensor:
        """`dy` where `x` is in the range, else 0."""
        if self.axis == -1 and self._native is not None and x.device.type == "cpu":
            return self._native.masked(dy, x, low.item(), high.item())
        return passed_inside(dy, x, self.spread(low, x), self.spread(high, x))

    def rounded(self, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, bits: int) -> torch.Tensor:
        """The nearest steps."""
        lowest, highest = self.limits(bits)
        if self._native is not None and not (low.dim() or high.dim()) and x.device.type == "cpu":
            numbers = _scalar_steps(low.item(), high.item(), lowest, highest)
            if not any(map(math.isnan, numbers)):
                numbers = numbers if self.given else [-math.inf, math.inf, *numbers[2:]]
                return self._native.scaled(x, numbers, not self.half_up)
        largest = torch.finfo(x.dtype).max
        by_low = torch.where(lowest * low > 0, lowest / low, largest)
        by_high = torch.where(highest * high > 0, highest / high, largest)
        low_first = by_low < by_high
        scale = torch.where(low_first, by_low, by_high)
        step = torch.where(low_first, low / lowest if lowest else low, high / highest)
        low, high = torch.where(low_first, low, lowest * step), torch.where(low_first, highest * step, high)
        if self.given:
            product = bounded(x, self.spread(low, x), self.spread(high, x)).mul_(self.spread(scale, x))
        else:
            product = x * self.spread(scale, x)
        whole = product.add_(0.5).floor_() if self.half_up else product.round_()
        return whole.mul_(self.spread(step, x))


def _scalar_steps(low: float, high: float, lowest: int, highest: int) -> list[float]:
    """What `_Form.rounded` makes of one range: [least number, largest number, scale, step], each operation
    rounded to float32 as its are."""
    one, ends = np.float32(1), (np.float32(low), np.float32(high))
    limits = (np.float32(lowest), np.float32(highest))
    with np.errstate(all="ignore"):
        scales = [
            limit * (one / end) if limit * end > 0 else np.finfo(np.float32).max
            for limit, end in zip(limits, ends)
        ]
        if scales[0] < scales[1]:
            step = ends[0] / limits[0] if lowest else ends[0]
            return [*map(float, (ends[0], limits[1] * step, scales[0], step))]
        step = ends[1] / limits[1]
        return [*map(float, (limits[0] * step, ends[1], scales[1], step))]


def _check_axis(form: _Form, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> None:
    if form.axis < -1 or form.axis >= max(x.dim(), 1):
        raise invalid(
            f"Axis should be -1 or 0 or a positive value less than {x.dim()} but given axis {form.axis}"
        )
    for name, ends in (("input_min", low), ("input_max", high)):
        if form.axis == -1 and ends.numel() != 1:
            raise invalid(f"{name} must be a scalar if axis is -1, but its shape is {list(ends.shape)}")
        if form.axis >= 0 and form.given and list(ends.shape) != [x.shape[form.axis]]:
            raise invalid(f"{name} must be [{x.shape[form.axis]}], but its shape is {list(ends.shape)}")


@first_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    form, bits = _Form(node), node.attributes["num_bits"]
    low, high = node.attributes["input_min"], node.attributes["input_max"]

    def run(x: torch.Tensor) -> torch.Tensor:
        ends = (x.new_tensor(low), x.new_tensor(high)) if form.given else form.ends_of(x)
        return form.rounded(x, *ends, bits)

    return run


def _kernel(node: Node, env: Environment) -> Kernel:
    form = _Form(node)
    known = node.attributes.get("num_bits")

    def run(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, bits: Any = known) -> torch.Tensor:
        _check_axis(form, x, low, high)
        if form.given and (low > high if low.numel() == high.numel() == 1 else (low > high).any()):
            raise invalid(f"Invalid range: input_min {low.tolist()} > input_max {high.tolist()}")
        ends = (low, high) if form.given else form.ends_of(x)
        shape = () if form.axis == -1 else (-1,)
        return form.rounded(x, ends[0].reshape(shape), ends[1].reshape(shape), int(bits))

    return run


@fourth_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    form = _Form(node)

    def run(dy: torch.Tensor, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> list[torch.Tensor]:
        if dy.shape != x.shape:
            raise invalid(f"gradient and input must be the same size: {list(dy.shape)}, {list(x.shape)}")
        form.given = True
        _check_axis(form, x, low, high)
        passed = form.passed(dy, x, low, high)
        return [passed, torch.zeros_like(low), torch.zeros_like(high)]

    return run


def _infer(node: Node) -> Shapes:
    axis, dims = node.attributes["axis"], node.dims(0)
    for i in (1, 2):
        ends = node.dims(i)
        if ends is not None and len(ends) != (axis != -1):
            raise ValueError(f"Shape must be rank {int(axis != -1)} but is rank {len(ends)}")
    if axis < -1:
        raise ValueError(f"axis should be at least -1, got {axis}")
    return dims


def _infer_gradient(node: Node) -> Shapes:
    ends: Dims = () if node.attributes["axis"] == -1 else (None,)
    for i in (2, 3):
        ends = merge(ends, node.dims(i))
    return [merge(node.dims(0), node.dims(1)), ends, ends]


def _declare(declaration: OpDeclaration) -> None:
    declaration.infer(_infer)
    declaration.kernel(CPU, GPU)(_kernel)


for _each in (second_op, third_op, fourth_op):
    _declare(_each)
first_op.infer(lambda node: node.dims(0))
fourth_grad_op.infer(_infer_gradient)
first_op.gradient(lambda op, dy: dy)
second_op.gradient(lambda op, dy: (dy, None, None))
third_op.gradient(lambda op, dy: (dy, None, None, None))
fourth_grad_op.no_gradient()


@fourth_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return F.QuantizeAndDequantizeV4Grad(dy, *op.inputs, axis=op.attributes["axis"])


def quantize_and_dequantize(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Numbers rounded to the steps of integers of `num_bits` bits, scaled to [input_min, input_max].

    Args:
        input: floats of any shape.
        input_min, input_max: the range's ends, scalars, or vectors with one element a slice along `axis`.
        signed_input: whether the integers are signed.
        range_given: whether the range counts; otherwise it is that of the input.
        round_mode: "HALF_TO_EVEN" or "HALF_UP".
        narrow_range: whether the lowest signed integer is left out.
        axis: along which ranges differ.

    Gradients pass unchanged. Raises InvalidArgumentError, while running, for a range the wrong way round.
    """
    return second_op(
        input, input_min, input_max, signed_input=signed_input, num_bits=num_bits, range_given=range_given,
        round_mode=round_mode, narrow_range=narrow_range, axis=-1 if axis is None else axis, name=name,
    )  # fmt: skip


def quantize_and_dequantize_v2(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """`quantize_and_dequantize` whose gradients pass inside the range only."""
    return fourth_op(
        input, input_min, input_max, signed_input=signed_input, num_bits=num_bits, range_given=range_given,
        round_mode=round_mode, narrow_range=narrow_range, axis=-1 if axis is None else axis, name=name,
    )  # fmt: skip
