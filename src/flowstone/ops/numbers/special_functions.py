"""Special functions of several numbers: incomplete gamma and beta functions, zeta, polygamma; atan2, xlogy,
cross.

What ATen lacks is computed here in float64 with fixed recipes: the incomplete beta function by its
continued fraction (DLMF 8.17.22, modified Lentz), the derivative of the incomplete gamma function by its
parameter from the power series (DLMF 8.7.1) term by term.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.machine_code import beta_fraction, gamma_series
from flowstone.framework.machine.machine_code import zeta as native_zeta
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import merge
from flowstone.ops.numbers.elementwise import (
    FLOATS,
    FLOATS_AND_COMPLEX,
    REAL,
    binary,
    broadcast_shape,
    constant_like,
    sum_to,
    zero_where_zero,
)
from flowstone.ops.numbers.unsigned_integers import SIGNED

__all__ = ["atan2", "betainc", "cross", "igamma", "igammac", "lbeta", "polygamma", "zeta"]

_REAL_FLOATS = (dtypes.float32, dtypes.float64)
_MOST_TERMS = 10_000
_LARGE_BLOCK = 1 << 16  # elements, of which threads share the logarithms
_BLOCK = 1 << 13  # elements, whose series stay in the processor's cache and end when they have converged
_PRECISE = {torch.float32: 1e-10, torch.float64: 4e-16}  # changes of a fraction that no result shows


def _in_blocks(function: Callable[..., torch.Tensor], size: int = _BLOCK) -> Callable[..., torch.Tensor]:
    """`function` of tensors of one shape, on the processor of so many elements at a time."""

    def compute(*tensors: torch.Tensor) -> torch.Tensor:
        tensors = torch.broadcast_tensors(*tensors)
        first = tensors[0]
        if first.device.type != "cpu" or first.numel() <= size:
            return function(*tensors)
        result = torch.empty(first.numel(), dtype=first.dtype)
        blocks = zip(*(each.reshape(-1).split(size) for each in (result, *tensors)))
        for into, *parts in blocks:
            into.copy_(function(*parts))
        return result.reshape(first.shape)

    return compute


def _two(
    name: str,
    first: str,
    second: str,
    function: Callable[..., torch.Tensor],
    types: tuple[DType, ...],
    capturable: bool | None = None,
) -> OpDeclaration:
    """Declares ``z = function(first, second)`` with broadcasting."""
    declaration = op(name, f"{first}: T, {second}: T -> z: T", T=types, capturable=capturable)
    declaration.infer(broadcast_shape)
    declaration.kernel(CPU, GPU)(lambda node, env: Call(function, X0, X1))
    return declaration


# ---- atan2, x / y and x log y

atan2_op = _two("Atan2", "y", "x", torch.atan2, FLOATS)


@atan2_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    y, x = op.inputs
    flow = F.RealDiv(dz, F.AddV2(F.Square(x), F.Square(y)))
    return sum_to(F.Mul(x, flow), y, x), sum_to(F.Mul(F.Neg(y), flow), x, y)


def _zero_where_first_is(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda x, y: zero_where_zero(function(x, y), x, signed=True)


xdivy_op = binary("Xdivy", _zero_where_first_is(torch.div), types=FLOATS_AND_COMPLEX)
xlogy_op = binary("Xlogy", _zero_where_first_is(lambda x, y: x * torch.log(y)), types=FLOATS_AND_COMPLEX)


@xdivy_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    present = F.Cast(F.NotEqual(x, constant_like(0, x)), DstT=x.dtype)
    dx = F.Mul(dz, F.Xdivy(present, y))
    return sum_to(dx, x, y), sum_to(F.Mul(dz, F.Xdivy(F.Neg(x), F.Square(y))), y, x)


@xlogy_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    present = F.Cast(F.NotEqual(x, constant_like(0, x)), DstT=x.dtype)
    return sum_to(F.Mul(dz, F.Xlogy(present, y)), x, y), sum_to(F.Mul(dz, F.Xdivy(x, y)), y, x)


# ---- incomplete gamma functions


def _for_positive_parameter(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda a, x: torch.where(a == 0, math.nan, function(a, x))


igamma_op = _two("Igamma", "a", "x", _for_positive_parameter(torch.special.gammainc), FLOATS)
igammac_op = _two("Igammac", "a", "x", _for_positive_parameter(torch.special.gammaincc), FLOATS)


def _gamma_series(a: torch.Tensor, x: torch.Tensor, least: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum of x^n / ((a + 1) … (a + n)) and its derivative by a, until a step changes the latter by no
    more than `least` of the sum in any element. Machine code goes on until no float64 shows a step, since it
    asks a few elements at a time, where ATen's kernels take most of them further than they need.
    """
    native = gamma_series() if x.device.type == "cpu" else None
    if native is not None:
        return native(a, x, _PRECISE[torch.float64] / 16, _MOST_TERMS)
    term, total = torch.ones_like(a), torch.ones_like(a)
    slope, harmonic = torch.zeros_like(a), torch.zeros_like(a)
    divisor = a.clone()
    for n in range(1, _MOST_TERMS):
        share = divisor.add_(1).reciprocal()
        term.mul_(x).mul_(share)
        harmonic.add_(share)
        total.add_(term)
        slope.addcmul_(term, harmonic, value=-1)
        if n % 8 == 0 and not bool((term * harmonic > least * total).any()):
            break
    return total, slope


def _gamma_derivative(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """d P(a, x) / da, where P is the regularised lower incomplete gamma function."""
    kind = a.dtype
    a, x = a.to(torch.float64), x.to(torch.float64)
    log, next_a = torch.log(x), a + 1
    front = torch.exp(a * log - x - torch.lgamma(next_a))
    total, slope = _gamma_series(a, x, _PRECISE[kind] / 16)
    result = front * (total * (log - torch.digamma(next_a)) + slope)
    far = (x == math.inf) | ((front == 0) & (x > next_a))
    result = torch.where((x == 0) | far, 0.0, result)  # P is 0, or 1 to all digits
    return torch.where((a <= 0) | (x < 0) | torch.isnan(a), float("nan"), result).to(kind)


def gamma_sample_slope(a: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
    """The derivative by a of a sample of the gamma distribution, along which P(a, sample) stays as it is.
    ATen's has three digits; it is left for samples so far out that P's series loses them all."""
    kind = a.dtype
    a, x = (each.to(torch.float64).contiguous() for each in torch.broadcast_tensors(a, sample))
    total, slope = _gamma_series(a, x, _PRECISE[kind] / 16)
    found = -x / a * (total * (torch.log(x) - torch.digamma(a + 1)) + slope)
    far = (x > a + 8 * torch.sqrt(a) + 12) | ~torch.isfinite(found)
    return torch.where(far, torch._standard_gamma_grad(a, x), found).to(kind)


igamma_grad_a_op = op("IgammaGradA", "a: T, x: T -> z: T", T=_REAL_FLOATS, capturable=False).no_gradient()
igamma_grad_a_op.infer(broadcast_shape)


@igamma_grad_a_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    is_native = env.device.type == "cpu" and gamma_series() is not None
    return Call(_in_blocks(_gamma_derivative, _LARGE_BLOCK if is_native else _BLOCK), X0, X1)


def _gamma_gradients(op: Operation, dz: Tensor, sign: int) -> Gradients:
    a, x = op.inputs
    da = F.IgammaGradA(a, x)
    density = F.Exp(F.Sub(F.Sub(F.Mul(F.Sub(a, constant_like(1, a)), F.Log(x)), x), F.Lgamma(a)))
    da, dx = F.Mul(da, dz), F.Mul(density, dz)
    if sign < 0:
        da, dx = F.Neg(da), F.Neg(dx)
    return sum_to(da, a, x), sum_to(dx, x, a)


igamma_op.gradient(lambda op, dz: _gamma_gradients(op, dz, 1))
igammac_op.gradient(lambda op, dz: _gamma_gradients(op, dz, -1))


# ---- zeta and polygamma


def _zeta(x: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """0 at infinity, where ATen has NaN; NaN at poles that have two signs, where ATen has infinity."""
    has_poles = bool((q <= 0).any())
    is_short = q.dtype is not torch.float64
    code = native_zeta(is_short) if q.device.type == "cpu" and not has_poles else None
    if code is None:
        found = torch.special.zeta(x, q)
    else:
        x, q = torch.broadcast_tensors(x, q)
        found = code(x.double(), q.double()).to(q.dtype)
    result = torch.where((q == math.inf) & (x > 1), 0.0, found)
    if not has_poles:
        return result
    two_signs = (q <= 0) & (q == torch.floor(q)) & (torch.remainder(x, 2) != 0) & (x > 1)
    return torch.where(two_signs, math.nan, result)


zeta_op = _two("Zeta", "x", "q", _zeta, _REAL_FLOATS, capturable=False)


@zeta_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, q = op.inputs
    dq = F.Mul(F.Neg(x), F.Zeta(F.AddV2(x, constant_like(1, x)), q))
    return None, sum_to(F.Mul(dz, dq), q, x)


def _trigamma(x: torch.Tensor) -> torch.Tensor:
    """The derivative of digamma, of positive float32: ATen's, in float64, is right to eight digits."""
    return torch.polygamma(1, x.double()).float()


def _polygamma(n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    if x.is_cpu and x.dtype is torch.float32 and not n.ndim and n.item() == 1 and bool((x > 0).all()):
        return _trigamma(x)
    order = n + 1
    sign = torch.where(torch.remainder(n, 2) == 0, -1.0, 1.0).to(x.dtype)
    derivative = sign * torch.exp(torch.lgamma(order)) * _zeta(order, x)
    result = torch.where(n == 0, torch.digamma(x), derivative)
    return torch.where((n == torch.floor(n)) & (n >= 0), result, float("nan"))


polygamma_op = _two("Polygamma", "a", "x", _polygamma, _REAL_FLOATS, capturable=False)


@polygamma_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    n, x = op.inputs
    return None, sum_to(F.Mul(dz, F.Polygamma(F.AddV2(n, constant_like(1, n)), x)), x, n)


# ---- the incomplete beta function

betainc_op = op("Betainc", "a: T, b: T, x: T -> z: T", T=_REAL_FLOATS, capturable=False)


@betainc_op.infer
def _(node: Node) -> Shapes:
    dims = None
    for i in range(3):
        if node.dims(i) != ():
            dims = merge(dims, node.dims(i))
    unknown = any(node.dims(i) is None for i in range(3))
    return () if dims is None and not unknown else dims


def _beta_fraction(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor, precise: float) -> torch.Tensor:
    """The continued fraction of DLMF 8.17.22, by Lentz's method; it converges fast for x < (a + 1) / (a + b
    + 2). It ends where two steps change no element by more than `precise`, which machine code asks of a few
    elements at a time.
    """
    native = beta_fraction() if x.device.type == "cpu" else None
    if native is not None:
        return native(a, b, x, precise, _MOST_TERMS)
    numerator, fraction = torch.ones_like(x), _away_from_zero(1 - (a + b) * x / (a + 1)).reciprocal_()
    denominator, both = fraction.clone(), a + b
    for m in range(1, _MOST_TERMS):
        at = a + 2 * m
        first, second = m * (b - m) * x, (a + m) * (both + m) * x
        change = torch.ones_like(x)
        for step in (first.div_(at - 1).div_(at), second.neg_().div_(at).div_(at + 1)):
            denominator = _away_from_zero(denominator.mul_(step).add_(1)).reciprocal_()
            numerator = _away_from_zero(step.div_(numerator).add_(1))
            change.mul_(numerator).mul_(denominator)
        fraction.mul_(change)
        if not bool((change.sub_(1).abs_() > precise).any()):
            break
    return fraction


def _away_from_zero(x: torch.Tensor) -> torch.Tensor:
    """x, where it is so small that it could not be divided by, a small number instead; in place."""
    return x.masked_fill_(x.abs() < 1e-300, 1e-300)


def _incomplete_beta(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    kind = x.dtype
    a, b, x = (value.to(torch.float64) for value in (a, b, x))
    valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    one = torch.ones_like(x)
    a, b, inner = torch.where(valid, a, one), torch.where(valid, b, one), torch.where(valid, x, one / 2)
    swap = inner > (a + 1) / (a + b + 2)
    p, q, y = torch.where(swap, b, a), torch.where(swap, a, b), torch.where(swap, 1 - inner, inner)
    logarithm = (
        torch.lgamma(p + q) - torch.lgamma(p) - torch.lgamma(q) + torch.xlogy(p, y) + torch.xlogy(q, 1 - y)
    )
    value = torch.exp(logarithm) * _beta_fraction(p, q, y, _PRECISE[kind]) / p
    value = torch.where(swap, 1 - value, value)
    return torch.where(valid, value, float("nan")).to(kind)


@betainc_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def compute(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        shapes = {tuple(value.shape) for value in (a, b, x) if value.ndim}
        if len(shapes) > 1:
            raise ValueError(f"Shapes of a, b and x must be equal or scalar, got {sorted(shapes)}")
        return incomplete_beta(a, b, x)

    is_native = env.device.type == "cpu" and beta_fraction() is not None
    incomplete_beta = _in_blocks(_incomplete_beta, _LARGE_BLOCK if is_native else _BLOCK)
    return compute


@betainc_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    a, b, x = op.inputs
    one = constant_like(1, x)
    log_beta = F.Sub(F.AddV2(F.Lgamma(a), F.Lgamma(b)), F.Lgamma(F.AddV2(a, b)))
    log_density = F.Sub(F.AddV2(F.Xlogy(F.Sub(b, one), F.Sub(one, x)), F.Xlogy(F.Sub(a, one), x)), log_beta)
    return None, None, sum_to(F.Mul(F.Exp(log_density), dz), x)


# ---- the cross product, buckets

cross_op = op("Cross", "a: T, b: T -> product: T", T=REAL)


@cross_op.infer
def _(node: Node) -> Shapes:
    dims = merge(node.dims(0), node.dims(1))
    if dims is None:
        return None
    if not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if dims[-1] not in (None, 3):
        raise ValueError(f"Dimension must be 3 but is {dims[-1]}")
    return (*dims[:-1], 3)


@cross_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.dtype(0)
    kind = dtype.torch
    assert kind is not None  # of a number

    def cross(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        shapes = f"{list(a.shape)} vs. {list(b.shape)}"
        if a.shape != b.shape:
            raise ValueError(f"Both inputs must be of same shape: {shapes}")
        if not a.ndim or a.shape[-1] != 3:
            raise errors.FailedPreconditionError(None, None, f"Cross-products need 3 elements: {shapes}")
        if dtype in SIGNED:
            a, b = a.view(SIGNED[dtype]), b.view(SIGNED[dtype])
        product = a.roll(-1, -1) * b.roll(1, -1) - a.roll(1, -1) * b.roll(-1, -1)
        return product.view(kind)

    return cross


@cross_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    a, b = op.inputs
    return F.Cross(b, dz), F.Cross(dz, a)


bucketize_op = op(
    "Bucketize",
    "input: T -> output: int32",
    "boundaries: list(float)",
    T=(dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64),
).no_gradient()
bucketize_op.infer(lambda node: node.dims(0))


@bucketize_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    boundaries = np.array(node.attributes["boundaries"], np.float32)
    if (boundaries[1:] < boundaries[:-1]).any():
        raise errors.InvalidArgumentError(None, None, "Expected sorted boundaries")
    edges = torch.from_numpy(boundaries.astype(np.float64)).to(env.device)
    return lambda x: torch.bucketize(x.to(torch.float64), edges, right=True, out_int32=True)


# ---- public functions


@dispatched("binary")
def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """The angle of the point (x, y) in radians, in [-pi, pi], element-wise with broadcasting."""
    return atan2_op(y, x, name=name)


def igamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularised lower incomplete gamma function P(a, x)."""
    return igamma_op(a, x, name=name)


def igammac(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    return igammac_op(a, x, name=name)


def zeta(x: Any, q: Any, name: str | None = None) -> Tensor:
    """The Hurwitz zeta function, the sum of (q + n) ** -x over n >= 0."""
    return zeta_op(x, q, name=name)


def polygamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The derivative of order `a` of digamma at x; `a` holds whole numbers."""
    return polygamma_op(a, x, name=name)


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularised incomplete beta function; inputs of one shape, or scalars. NaN outside a, b > 0 and
    [0, 1].
    """
    return betainc_op(a, b, x, name=name)


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross products of the vectors [..., 3] in `a` and `b`, of one shape."""
    return cross_op(a, b, name=name)


def lbeta(x: Any, name: str = "lbeta") -> Tensor:
    """The logarithm of the absolute value of the beta function over the last dimension [..., n]."""
    x = convert_to_tensor(x, name="x")
    with x.graph.name_scope(name):
        last = np.array([-1], np.int32)
        return F.Sum(F.Lgamma(x), last) - F.Lgamma(F.Sum(x, last))
