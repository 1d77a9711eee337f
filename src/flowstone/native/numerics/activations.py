"""Activations and their gradients for one vector: what `elements.py` says of their operations."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from flowstone.native.codegen.emitter import FLOATS, Attributes, Emit, Emitter
from flowstone.native.numerics import exponential_functions as functions

__all__ = [
    "SELU_ALPHA", "SELU_SCALE", "clamped", "elu", "elu_grad", "leaky", "reciprocal_grad", "relu",
    "relu6_grad", "relu_grad", "rsqrt_grad", "selu_grad", "sigmoid_grad", "softplus", "softplus_grad",
    "softsign", "softsign_grad", "sqrt_grad", "tanh_grad",
]  # fmt: skip

SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def _squared(e: Emitter, dtype: str, x: str) -> str:
    return e.binary("fmul", dtype, x, x)


def _number(value: float) -> float:
    """A float attribute in the single precision that it has on the wire."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def relu(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    zero = e.constant(dtype, 0)
    if dtype in FLOATS:
        return e.select(e.compare("fcmp ule", dtype, zero, x[0]), dtype, x[0], zero)
    return e.select(e.compare("icmp sgt", dtype, x[0], zero), dtype, x[0], zero)


def clamped(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    six = e.constant(dtype, 6)
    y = relu(e, dtype, x, attributes)
    return e.select(e.compare("fcmp ogt", dtype, y, six), dtype, six, y)


def relu_grad(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    """The gradient, times 0 unless the features are positive."""
    zero = e.constant(dtype, 0)
    above = e.compare("fcmp ogt", dtype, x[1], zero)
    return e.select(above, dtype, x[0], e.binary("fmul", dtype, x[0], zero))


def relu6_grad(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    below = e.compare("fcmp olt", dtype, x[1], e.constant(dtype, 6))
    passed = relu_grad(e, dtype, x, attributes)
    return e.select(below, dtype, passed, e.binary("fmul", dtype, x[0], e.constant(dtype, 0)))


def leaky(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    """x, or a gradient, times alpha where the features, the last operand, are not positive."""
    slope = e.constant(dtype, _number(attributes["alpha"]))
    above = e.compare("fcmp ogt", dtype, x[-1], e.constant(dtype, 0))
    return e.select(above, dtype, x[0], e.binary("fmul", dtype, x[0], slope))


def elu(scale: float, alpha: float) -> Emit:
    def emit(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
        below = functions.expm1(e, dtype, x[0])
        below = e.binary("fmul", dtype, below, e.constant(dtype, scale * alpha))
        above = x[0] if scale == 1 else e.binary("fmul", dtype, x[0], e.constant(dtype, scale))
        return e.select(e.compare("fcmp ole", dtype, x[0], e.constant(dtype, 0)), dtype, below, above)

    return emit


def elu_grad(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    below = e.binary("fmul", dtype, x[0], e.binary("fadd", dtype, x[1], e.constant(dtype, 1)))
    return e.select(e.compare("fcmp ole", dtype, x[1], e.constant(dtype, 0)), dtype, below, x[0])


def selu_grad(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    below = e.binary("fadd", dtype, x[1], e.constant(dtype, SELU_SCALE * SELU_ALPHA))
    factor = e.select(
        e.compare("fcmp olt", dtype, x[1], e.constant(dtype, 0)), dtype, below, e.constant(dtype, SELU_SCALE)
    )
    return e.binary("fmul", dtype, x[0], factor)


def softplus(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    soft = e.sleef("log1p", dtype, functions.exp(e, dtype, x[0]))
    return e.select(e.compare("fcmp ogt", dtype, x[0], e.constant(dtype, 40)), dtype, x[0], soft)


def softplus_grad(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    return e.binary("fmul", dtype, functions.sigmoid(e, dtype, x[1]), x[0])


def _size_and_one(e: Emitter, dtype: str, x: str) -> str:
    return e.binary("fadd", dtype, e.intrinsic("fabs", dtype, x), e.constant(dtype, 1))


def softsign(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    return e.binary("fdiv", dtype, x[0], _size_and_one(e, dtype, x[0]))


def softsign_grad(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    return e.binary("fdiv", dtype, x[0], _squared(e, dtype, _size_and_one(e, dtype, x[1])))


def sigmoid_grad(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    """dy (1 - y) y, of y and dy."""
    rest = e.binary("fsub", dtype, e.constant(dtype, 1), x[0])
    return e.binary("fmul", dtype, e.binary("fmul", dtype, x[1], rest), x[0])


def tanh_grad(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    """dy (1 - y^2), of y and dy."""
    rest = e.intrinsic("fma", dtype, e.negate(dtype, x[0]), x[0], e.constant(dtype, 1))  # rounded once
    return e.binary("fmul", dtype, x[1], rest)


def _none_of_none(e: Emitter, dtype: str, dy: str, usual: str) -> str:
    """Zero where the gradient `dy` is, also where the derivative is infinite or NaN."""
    zero = e.constant(dtype, 0)
    return e.select(e.compare("fcmp oeq", dtype, dy, zero), dtype, zero, usual)


def sqrt_grad(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    half = e.binary("fmul", dtype, x[1], e.constant(dtype, 0.5))
    return _none_of_none(e, dtype, x[1], e.binary("fdiv", dtype, half, x[0]))


def rsqrt_grad(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    cube = e.binary("fmul", dtype, _squared(e, dtype, x[0]), e.binary("fmul", dtype, x[0], x[1]))
    return _none_of_none(e, dtype, x[1], e.binary("fmul", dtype, cube, e.constant(dtype, -0.5)))


def reciprocal_grad(e: Emitter, dtype: str, x: Sequence[str], attributes: Attributes) -> str:
    usual = e.binary("fmul", dtype, e.negate(dtype, x[1]), _squared(e, dtype, x[0]))
    return _none_of_none(e, dtype, x[1], usual)
