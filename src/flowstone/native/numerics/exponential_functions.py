"""Exponential functions of either floating type: polynomials of ours, or functions of SLEEF.

Those of float32 are polynomials (`transcendental.py`) unless ``FLOWSTONE_NATIVE_EXACT`` asks for SLEEF.
"""

from __future__ import annotations

import math

from flowstone.framework import flags
from flowstone.native.codegen.emitter import Emitter
from flowstone.native.numerics import transcendental

__all__ = ["exp", "expm1", "inverse_hyperbolic", "is_polynomial", "log", "sigmoid"]

_FAR = {"float32": 2.0**60, "float64": 2.0**500}  # squares of what is not above them are finite


def is_polynomial(dtype: str) -> bool:
    """Whether exponential functions of this type are polynomials of ours, not functions of SLEEF."""
    return dtype == "float32" and not flags.NATIVE_EXACT


def exp(e: Emitter, dtype: str, x: str) -> str:
    """e^x."""
    return transcendental.exp(e, x) if is_polynomial(dtype) else e.sleef("exp", dtype, x)


def expm1(e: Emitter, dtype: str, x: str) -> str:
    """e^x - 1."""
    return transcendental.expm1(e, x) if is_polynomial(dtype) else e.sleef("expm1", dtype, x)


def log(e: Emitter, dtype: str, x: str) -> str:
    """The natural logarithm."""
    return transcendental.log(e, x) if is_polynomial(dtype) else e.sleef("log", dtype, x)


def sigmoid(e: Emitter, dtype: str, x: str) -> str:
    """1 / (1 + e^-x)."""
    if is_polynomial(dtype):
        return transcendental.sigmoid(e, x)
    one = e.constant(dtype, 1)
    return e.binary("fdiv", dtype, one, e.binary("fadd", dtype, exp(e, dtype, e.negate(dtype, x)), one))


def inverse_hyperbolic(e: Emitter, name: str, dtype: str, x: str) -> str:
    """asinh or acosh. SLEEF's square x: where that would overflow, log |x| + log 2 with x's sign."""
    is_odd = name == "asinh"
    size = e.intrinsic("fabs", dtype, x) if is_odd else x
    far = e.binary("fadd", dtype, log(e, dtype, size), e.constant(dtype, math.log(2)))
    far = e.intrinsic("copysign", dtype, far, x) if is_odd else far
    is_far = e.compare("fcmp ogt", dtype, size, e.constant(dtype, _FAR[dtype]))
    return e.select(is_far, dtype, far, e.sleef(name, dtype, x))
