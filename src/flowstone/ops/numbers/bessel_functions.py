"""Bessel functions of orders 0 and 1: of both kinds, modified, and modified and scaled.

ATen's J and Y are used up to 2 only, since beyond their float64 values are right to eight digits at most.
Outside of their domains the functions are TensorFlow's: the K are infinity below zero, the Y minus infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.numbers.bessel_series import BESSEL_P0, BESSEL_P1, BESSEL_Q0, BESSEL_Q1
from flowstone.ops.numbers.chebyshev_series import chebyshev_sum
from flowstone.ops.numbers.elementwise import FLOATS, constant_like, same_shape
from flowstone.ops.numbers.special_unary import bessel_i0e, bessel_i1e

__all__ = [
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "bessel_j0",
    "bessel_j1",
    "bessel_k0",
    "bessel_k0e",
    "bessel_k1",
    "bessel_k1e",
    "bessel_y0",
    "bessel_y1",
]

Function = Callable[[torch.Tensor], torch.Tensor]


def _bessel(name: str, function: Function, below_zero: float | None = None) -> OpDeclaration:
    declaration = op(name, "x: T -> y: T", T=FLOATS, elementwise=True, by_element=True, cost=60)
    declaration.infer(same_shape)

    def whole(x: torch.Tensor) -> torch.Tensor:
        return function(x) if below_zero is None else torch.where(x < 0, below_zero, function(x))

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        if node.dtype(0) not in (dtypes.float16, dtypes.bfloat16):
            return Call(whole, X0)
        return lambda x: whole(x.float()).to(x.dtype)

    return declaration


_i0_op = _bessel("BesselI0", torch.special.i0)
_i1_op = _bessel("BesselI1", torch.special.i1)


def _oscillating(near: Function, order: int, second_kind: bool) -> Function:
    """J or Y: `near` up to 2, the series P and Q beyond."""
    cosines, sines = ((BESSEL_P0, BESSEL_Q0), (BESSEL_P1, BESSEL_Q1))[order]

    def function(x: torch.Tensor) -> torch.Tensor:
        size = x.abs()
        beyond = size.double().clamp_min(2.0)
        inside = 2 * (2 / beyond).square() - 1
        p, q = chebyshev_sum(cosines, inside), chebyshev_sum(sines, inside) / beyond
        angle = beyond - (order / 2 + 0.25) * math.pi
        cosine, sine = angle.cos(), angle.sin()
        wave = p * sine + q * cosine if second_kind else p * cosine - q * sine
        far = ((2 / math.pi / beyond).sqrt_() * wave).to(x.dtype)
        if order and not second_kind:
            far = far.copysign(far * x)
        return torch.where(size > 2, far, near(x))

    return function


_j0_op = _bessel("BesselJ0", _oscillating(torch.special.bessel_j0, 0, second_kind=False))
_j1_op = _bessel("BesselJ1", _oscillating(torch.special.bessel_j1, 1, second_kind=False))
_y0_op = _bessel("BesselY0", _oscillating(torch.special.bessel_y0, 0, second_kind=True), -math.inf)
_y1_op = _bessel("BesselY1", _oscillating(torch.special.bessel_y1, 1, second_kind=True), -math.inf)
_k0_op = _bessel("BesselK0", torch.special.modified_bessel_k0, math.inf)
_k1_op = _bessel("BesselK1", torch.special.modified_bessel_k1, math.inf)
_k0e_op = _bessel("BesselK0e", torch.special.scaled_modified_bessel_k0, math.inf)
_k1e_op = _bessel("BesselK1e", torch.special.scaled_modified_bessel_k1, math.inf)


_i0_op.gradient(lambda op, dy: F.Mul(dy, F.BesselI1(op.inputs[0])))
_j0_op.gradient(lambda op, dy: F.Mul(dy, F.Neg(F.BesselJ1(op.inputs[0]))))
_y0_op.gradient(lambda op, dy: F.Mul(dy, F.Neg(F.BesselY1(op.inputs[0]))))
_k0_op.gradient(lambda op, dy: F.Mul(dy, F.Neg(F.BesselK1(op.inputs[0]))))
_k0e_op.gradient(lambda op, dy: F.Mul(dy, F.Sub(op.outputs[0], F.BesselK1e(op.inputs[0]))))


@_y1_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, y = op.inputs[0], op.outputs[0]
    return F.Mul(dy, F.Sub(F.BesselY0(x), F.RealDiv(y, x)))


@_k1_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, y = op.inputs[0], op.outputs[0]
    return F.Mul(dy, F.Sub(F.Neg(F.BesselK0(x)), F.RealDiv(y, x)))


@_k1e_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, y = op.inputs[0], op.outputs[0]
    kept = F.Mul(y, F.Sub(constant_like(1, x), F.Reciprocal(x)))
    return F.Mul(dy, F.Sub(kept, F.BesselK0e(x)))


def _half_at_zero(zeroth: str) -> Callable[[Operation, Tensor], Gradients]:
    """The slope zeroth(x) - y / x; at zero its limit, one half."""

    def gradient(op: Operation, dy: Tensor) -> Gradients:
        x, y = op.inputs[0], op.outputs[0]
        slope = F.Sub(getattr(F, zeroth)(x), F.RealDiv(y, x))
        zero = F.Equal(x, constant_like(0, x))
        return F.Mul(dy, F.SelectV2(zero, constant_like(0.5, x), slope))

    return gradient


_i1_op.gradient(_half_at_zero("BesselI0"))
_j1_op.gradient(_half_at_zero("BesselJ0"))


# ---- public functions


def _function(declaration: OpDeclaration, label: str, x: Any, name: str | None) -> Tensor:
    with get_default_graph().name_scope(name or label):
        return declaration(convert_to_tensor(x, name="x"))


def bessel_i0(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0, element-wise."""
    return _function(_i0_op, "bessel_i0", x, name)


def bessel_i1(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1, element-wise."""
    return _function(_i1_op, "bessel_i1", x, name)


def bessel_j0(x: Any, name: str | None = None) -> Tensor:
    """The Bessel function of the first kind of order 0, element-wise."""
    return _function(_j0_op, "bessel_j0", x, name)


def bessel_j1(x: Any, name: str | None = None) -> Tensor:
    """The Bessel function of the first kind of order 1, element-wise."""
    return _function(_j1_op, "bessel_j1", x, name)


def bessel_k0(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 0, element-wise: infinite up to zero."""
    return _function(_k0_op, "bessel_k0", x, name)


def bessel_k0e(x: Any, name: str | None = None) -> Tensor:
    """exp(x) times the modified Bessel function of the second kind of order 0, element-wise."""
    return _function(_k0e_op, "bessel_k0e", x, name)


def bessel_k1(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 1, element-wise: infinite up to zero."""
    return _function(_k1_op, "bessel_k1", x, name)


def bessel_k1e(x: Any, name: str | None = None) -> Tensor:
    """exp(x) times the modified Bessel function of the second kind of order 1, element-wise."""
    return _function(_k1e_op, "bessel_k1e", x, name)


def bessel_y0(x: Any, name: str | None = None) -> Tensor:
    """The Bessel function of the second kind of order 0, element-wise: minus infinity up to zero."""
    return _function(_y0_op, "bessel_y0", x, name)


def bessel_y1(x: Any, name: str | None = None) -> Tensor:
    """The Bessel function of the second kind of order 1, element-wise: minus infinity up to zero."""
    return _function(_y1_op, "bessel_y1", x, name)
