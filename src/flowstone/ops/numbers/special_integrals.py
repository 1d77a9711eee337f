"""Functions that are integrals: Dawson's, Fresnel's two, the exponential integral and the dilogarithm.

They are computed in float64. Chebyshev series were fitted with 40 digits to the functions' smooth factors
(DLMF 7.5, 7.12, 6.12 give their expansions far out), each on a segment of the arguments or of their
reciprocals. The dilogarithm is its series in -log(1 - z) with Bernoulli numbers, after the reflections of
DLMF 25.12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.numbers.chebyshev_series import (
    DAWSON_2_TO_4,
    DAWSON_FAR,
    DAWSON_NEAR,
    EXPONENTIAL_6_TO_16,
    EXPONENTIAL_16_TO_40,
    EXPONENTIAL_FAR,
    EXPONENTIAL_NEAR,
    FRESNEL_F,
    FRESNEL_G,
    chebyshev_sum,
)
from flowstone.ops.numbers.elementwise import FLOATS, constant_like, same_shape

__all__ = ["dawsn", "expint", "fresnel_cos", "fresnel_sin", "spence"]

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
_FRESNEL_TERMS = 24


def _integral(name: str, function: Callable[[torch.Tensor], torch.Tensor]) -> OpDeclaration:
    declaration = op(name, "x: T -> y: T", T=FLOATS, elementwise=True, by_element=True, cost=80)
    declaration.infer(same_shape)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        return lambda x: function(x.double()).to(x.dtype)

    return declaration


# ---- Dawson's integral


def _dawson(x: torch.Tensor) -> torch.Tensor:
    size = x.abs()
    square = size.clamp_max(4.0).square()
    near = x * chebyshev_sum(DAWSON_NEAR, square.clamp_max(4.0) / 2 - 1)
    between = x * chebyshev_sum(DAWSON_2_TO_4, (square.clamp_min(4.0) - 10) / 6)
    far = chebyshev_sum(DAWSON_FAR, 2 * (4 / size.clamp_min(4.0)).square() - 1) / (2 * x)
    return torch.where(size <= 2, near, torch.where(size <= 4, between, far))


dawsn_op = _integral("Dawsn", _dawson)


@dawsn_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, y = op.inputs[0], op.outputs[0]
    return F.Mul(dy, F.Sub(constant_like(1, x), F.Mul(constant_like(2, x), F.Mul(x, y))))


# ---- the exponential integral


def _exponential_integral(x: torch.Tensor) -> torch.Tensor:
    """NaN below zero and at infinity, as TensorFlow's."""
    low = x.clamp_max(6.0)
    near = _EULER + torch.log(low) + low * chebyshev_sum(EXPONENTIAL_NEAR, low / 3 - 1)
    inverse = 1 / x.clamp_min(6.0)
    steps = (
        (EXPONENTIAL_6_TO_16, 1 / 16, 1 / 6),
        (EXPONENTIAL_16_TO_40, 1 / 40, 1 / 16),
        (EXPONENTIAL_FAR, 0.0, 1 / 40),
    )
    far = near
    for series, least, most in steps:
        inside = (2 * inverse - (least + most)) / (most - least)
        far = torch.where(inverse <= most, chebyshev_sum(series, inside.clamp(-1, 1)), far)
    far = far * torch.exp(x) * inverse
    result = torch.where(x <= 6, near, far)
    return torch.where((x < 0) | (x == math.inf), math.nan, result)


_EULER = 0.5772156649015329
expint_op = _integral("Expint", _exponential_integral)


@expint_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[0]
    return F.RealDiv(F.Mul(dy, F.Exp(x)), x)


# ---- Fresnel's integrals


def _fresnel_series(x: torch.Tensor, sine: bool) -> torch.Tensor:
    """The power series in the fourth power of x, for |x| <= 2 (DLMF 7.6.4, 7.6.6)."""
    step = -((math.pi / 2) ** 2) * x.square().square()
    coefficients, factor = [], 1.0
    for n in range(_FRESNEL_TERMS):
        coefficients.append(factor / (4 * n + (3 if sine else 1)))
        factor /= (2 * n + 2) * (2 * n + 3) if sine else (2 * n + 1) * (2 * n + 2)
    total = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total.mul_(step).add_(coefficient)
    return total * (math.pi / 2) * x**3 if sine else total * x


def _fresnel(sine: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    """From 2 on the auxiliary functions f and g (DLMF 7.5.3, 7.5.4)."""

    def integral(x: torch.Tensor) -> torch.Tensor:
        size = x.abs()
        near = _fresnel_series(x.clamp(-2.0, 2.0), sine)
        beyond = size.clamp(2.0, 1e9)
        inside = 2 * (2 / beyond).square().square() - 1
        f = chebyshev_sum(FRESNEL_F, inside) / (math.pi * beyond)
        g = chebyshev_sum(FRESNEL_G, inside) / (math.pi**2 * beyond**3)
        # The angle pi x² / 2, less whole turns.
        angle = math.pi / 2 * torch.fmod(beyond.square(), 4.0)
        sines, cosines = angle.sin(), angle.cos()
        far = 0.5 - f * cosines - g * sines if sine else 0.5 + f * sines - g * cosines
        far = torch.where(size > 1e9, 0.5, far)
        return torch.where((size <= 2) | size.isnan(), near, far.copysign(x))

    return integral


fresnel_cos_op = _integral("FresnelCos", _fresnel(sine=False))
fresnel_sin_op = _integral("FresnelSin", _fresnel(sine=True))


@fresnel_cos_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[0]
    return F.Mul(dy, F.Cos(F.Mul(constant_like(math.pi / 2, x), F.Square(x))))


@fresnel_sin_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[0]
    return F.Mul(dy, F.Sin(F.Mul(constant_like(math.pi / 2, x), F.Square(x))))


# ---- the dilogarithm


def _near_one(x: torch.Tensor) -> torch.Tensor:
    """Spence's function of [1/2, 2]: the dilogarithm of 1 - x in powers of u = -log x."""
    u = -torch.log(x)
    square = u.square()
    total = torch.zeros_like(u)
    for k in range(len(_BERNOULLI), 0, -1):
        total = (total + _BERNOULLI[k - 1] / math.factorial(2 * k + 1)) * square
    return u * (1 - u / 4 + total)


def _spence(x: torch.Tensor) -> torch.Tensor:
    """NaN below zero and at infinity, as TensorFlow's."""
    above = x > 2
    y = torch.where(above, 1 / x, x)
    below = y < 0.5
    result = _near_one(torch.where(below, 1 - y, y).clamp(0.5, 2.0))
    products = torch.log(y.clamp_min(1e-307)) * torch.log1p(-y)
    result = torch.where(below, math.pi**2 / 6 - products - result, result)
    result = torch.where(above, -0.5 * torch.log(x).square() - result, result)
    return torch.where((x < 0) | (x == math.inf) | x.isnan(), math.nan, result)


spence_op = _integral("Spence", _spence)


@spence_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[0]
    one = constant_like(1, x)
    slope = F.RealDiv(F.Log(x), F.Sub(one, x))
    return F.Mul(dy, F.SelectV2(F.Equal(x, one), constant_like(-1, x), slope))


# ---- public functions


def _function(declaration: OpDeclaration, label: str, x: Any, name: str | None) -> Tensor:
    with get_default_graph().name_scope(name or label):
        return declaration(convert_to_tensor(x, name="x"))


def dawsn(x: Any, name: str | None = None) -> Tensor:
    """Dawson's integral, exp(-x²) times the integral of exp(t²) from 0 to `x`, element-wise."""
    return _function(dawsn_op, "dawsn", x, name)


def expint(x: Any, name: str | None = None) -> Tensor:
    """The exponential integral Ei, element-wise: the principal value of the integral of exp(t) / t up to `x`.

    NaN below zero.
    """
    return _function(expint_op, "expint", x, name)


def fresnel_cos(x: Any, name: str | None = None) -> Tensor:
    """The integral of cos(pi t² / 2) from 0 to `x`, element-wise."""
    return _function(fresnel_cos_op, "fresnel_cos", x, name)


def fresnel_sin(x: Any, name: str | None = None) -> Tensor:
    """The integral of sin(pi t² / 2) from 0 to `x`, element-wise."""
    return _function(fresnel_sin_op, "fresnel_sin", x, name)


def spence(x: Any, name: str | None = None) -> Tensor:
    """The integral of log(t) / (1 - t) from 1 to `x`, the dilogarithm of 1 - x: NaN below zero."""
    return _function(spence_op, "spence", x, name)
