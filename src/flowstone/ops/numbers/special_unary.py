"""Special functions of one number: the inverse error function, normal quantiles, scaled Bessel functions.

ATen computes them in float32 and float64; shorter types go through float32.
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
from flowstone.ops.numbers.elementwise import FLOATS, constant_like, same_shape

__all__ = ["bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "erfcinv", "erfinv", "ndtri"]

_SHORT = (dtypes.float16, dtypes.bfloat16)


def _special(name: str, function: Callable[[torch.Tensor], torch.Tensor]) -> OpDeclaration:
    declaration = op(name, "x: T -> y: T", T=FLOATS, elementwise=True, by_element=True, cost=30)
    declaration.infer(same_shape)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        if node.dtype(0) not in _SHORT:
            return Call(function, X0)
        return lambda x: function(x.float()).to(x.dtype)

    return declaration


erfinv_op = _special("Erfinv", torch.erfinv)
ndtri_op = _special("Ndtri", torch.special.ndtri)
bessel_i0e_op = _special("BesselI0e", torch.special.i0e)
bessel_i1e_op = _special("BesselI1e", torch.special.i1e)


@erfinv_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    y = op.outputs[0]
    return F.Mul(F.Mul(dy, constant_like(math.sqrt(math.pi) / 2, y)), F.Exp(F.Square(y)))


@ndtri_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    y = op.outputs[0]
    power = F.Exp(F.Mul(F.Square(y), constant_like(0.5, y)))
    return F.Mul(F.Mul(dy, constant_like(math.sqrt(2 * math.pi), y)), power)


@bessel_i0e_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, y = op.inputs[0], op.outputs[0]
    return F.Mul(dy, F.Sub(F.BesselI1e(x), F.Mul(F.Sign(x), y)))


@bessel_i1e_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """At zero the limit, one half."""
    x, y = op.inputs[0], op.outputs[0]
    zero = F.Equal(x, constant_like(0, x))
    other = F.SelectV2(zero, F.OnesLike(x), x)
    slope = F.Sub(F.BesselI0e(other), F.Mul(y, F.AddV2(F.Sign(other), F.Reciprocal(other))))
    return F.Mul(dy, F.SelectV2(zero, constant_like(0.5, x), slope))


def erfinv(x: Any, name: str | None = None) -> Tensor:
    """The number whose error function is `x`, element-wise: NaN outside of [-1, 1]."""
    return erfinv_op(x, name=name)


def erfcinv(x: Any, name: str | None = None) -> Tensor:
    """The number whose complementary error function is `x`, element-wise: NaN outside of [0, 2]."""
    with get_default_graph().name_scope(name or "erfcinv"):
        x = convert_to_tensor(x, name="start")
        return F.Mul(F.Neg(F.Ndtri(F.Mul(x, constant_like(0.5, x)))), constant_like(math.sqrt(0.5), x))


def ndtri(x: Any, name: str | None = None) -> Tensor:
    """The quantile of the standard normal distribution, element-wise: NaN outside of [0, 1]."""
    return ndtri_op(x, name=name)


def bessel_i0e(x: Any, name: str | None = None) -> Tensor:
    """exp(-|x|) times the modified Bessel function of order 0, element-wise."""
    return bessel_i0e_op(x, name=name)


def bessel_i1e(x: Any, name: str | None = None) -> Tensor:
    """exp(-|x|) times the modified Bessel function of order 1, element-wise."""
    return bessel_i1e_op(x, name=name)


def bessel_i0(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 0, element-wise."""
    with get_default_graph().name_scope(name or "bessel_i0"):
        x = convert_to_tensor(x)
        return F.Mul(F.Exp(F.Abs(x)), F.BesselI0e(x))


def bessel_i1(x: Any, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 1, element-wise."""
    with get_default_graph().name_scope(name or "bessel_i1"):
        x = convert_to_tensor(x)
        return F.Mul(F.Exp(F.Abs(x)), F.BesselI1e(x))
