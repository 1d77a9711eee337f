"""Functions of one number, element by element: roots, exponentials, trigonometry, error functions, rounding.

Each line of the tables declares an op with ATen's function for it; gradients follow. The operations whose
gradient is easier to tell from the result (Sqrt, Tanh ...) have a gradient op of their own, as in
TensorFlow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Input
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.composite import of_stored_values
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.dtypes import DType
from flowstone.ops.numbers.elementwise import (
    FEW,
    FLOATS,
    FLOATS_AND_COMPLEX,
    SIGNED,
    complex_call,
    conjugate,
    constant_like,
    square_call,
    unary,
    zero_where_zero,
)

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "digamma", "erf", "erfc",
    "exp", "expm1", "floor", "is_finite", "is_inf", "is_nan", "lgamma", "log", "log1p", "log_sigmoid",
    "reciprocal", "rint", "round", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip

_T = torch.Tensor


def _digamma(x: torch.Tensor) -> torch.Tensor:
    """Not a number at the pole 0, like the other poles, and at minus infinity, where ATen has another say."""
    return torch.where((x == 0) | (x == -math.inf), math.nan, torch.digamma(x))


def _is_nan(x: torch.Tensor) -> torch.Tensor:
    """By a comparison into floats, which ATen has vectorised, and that into truth values not."""
    return torch.isnan(x) if x.numel() < FEW else torch.ne(x, x, out=torch.empty_like(x)).to(torch.bool)


def _is_inf(x: torch.Tensor) -> torch.Tensor:
    return torch.isinf(x) if x.numel() < FEW else torch.abs(x).eq_(math.inf).to(torch.bool)


def _is_finite(x: torch.Tensor) -> torch.Tensor:
    return torch.abs(x).lt_(math.inf).to(torch.bool)


exp_op = unary("Exp", torch.exp, FLOATS_AND_COMPLEX, in_place=_T.exp_, cost=8, elementwise=True)
expm1_op = unary("Expm1", torch.expm1, FLOATS_AND_COMPLEX, in_place=_T.expm1_, cost=8, elementwise=True)
log_op = unary("Log", torch.log, FLOATS_AND_COMPLEX, in_place=_T.log_, cost=8, elementwise=True)
log1p_op = unary("Log1p", torch.log1p, FLOATS_AND_COMPLEX, in_place=_T.log1p_, cost=8, elementwise=True)
sqrt_op = unary("Sqrt", torch.sqrt, FLOATS_AND_COMPLEX, in_place=_T.sqrt_, cost=8, elementwise=True)
rsqrt_op = unary("Rsqrt", torch.rsqrt, FLOATS_AND_COMPLEX, in_place=_T.rsqrt_, cost=8, elementwise=True)
reciprocal_op = unary("Reciprocal", torch.reciprocal, SIGNED)
inv_op = unary("Inv", torch.reciprocal, SIGNED)
sin_op = unary("Sin", torch.sin, FLOATS_AND_COMPLEX, in_place=_T.sin_, cost=8)
cos_op = unary("Cos", torch.cos, FLOATS_AND_COMPLEX, in_place=_T.cos_, cost=8)
tan_op = unary("Tan", torch.tan, FLOATS_AND_COMPLEX)
asin_op = unary("Asin", torch.asin, FLOATS_AND_COMPLEX)
acos_op = unary("Acos", torch.acos, FLOATS_AND_COMPLEX)
atan_op = unary("Atan", torch.atan, FLOATS_AND_COMPLEX)
sinh_op = unary("Sinh", torch.sinh, FLOATS_AND_COMPLEX)
cosh_op = unary("Cosh", torch.cosh, FLOATS_AND_COMPLEX)
tanh_op = unary("Tanh", torch.tanh, FLOATS_AND_COMPLEX, in_place=_T.tanh_, cost=8, elementwise=True)
asinh_op = unary("Asinh", torch.asinh, FLOATS_AND_COMPLEX)
acosh_op = unary("Acosh", torch.acosh, FLOATS_AND_COMPLEX)
atanh_op = unary("Atanh", torch.atanh, FLOATS_AND_COMPLEX)
sigmoid_op = unary(
    "Sigmoid", torch.sigmoid, FLOATS_AND_COMPLEX, in_place=_T.sigmoid_, cost=8, elementwise=True
)
erf_op = unary("Erf", torch.erf, FLOATS, in_place=_T.erf_, cost=8)
erfc_op = unary("Erfc", torch.erfc, FLOATS, cost=8)
lgamma_op = unary("Lgamma", torch.lgamma, FLOATS, cost=8)
digamma_op = unary("Digamma", _digamma, FLOATS)
ceil_op = unary("Ceil", torch.ceil, FLOATS, in_place=_T.ceil_)
floor_op = unary("Floor", torch.floor, FLOATS, in_place=_T.floor_)
rint_op = unary("Rint", torch.round, FLOATS, in_place=_T.round_)
round_op = unary("Round", torch.round, SIGNED, in_place=_T.round_)
is_nan_op = unary("IsNan", _is_nan, FLOATS, result="bool")
is_inf_op = unary("IsInf", _is_inf, FLOATS, result="bool")
is_finite_op = unary("IsFinite", _is_finite, FLOATS, result="bool")


# ---- gradients with respect to the argument


def _gradient(
    declaration: OpDeclaration, flow: Callable[[Tensor, Tensor], Tensor], of_result: bool = False
) -> None:
    """Sets the gradient ``flow(dy, x)``, or of the result, asked for the conjugate of x once dy is there."""

    @declaration.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        with op.graph.control_dependencies([dy]):
            return (flow(dy, conjugate(op.outputs[0] if of_result else op.inputs[0])),)


def _times(x: Tensor, y: Tensor) -> Tensor:
    return F.Mul(x, y, name="mul")


def _minus_times(x: Tensor, y: Tensor) -> Tensor:
    return _times(F.Neg(x), y)


def _one_minus_square(x: Tensor) -> Tensor:
    square = F.Square(x)
    return F.Sub(constant_like(1, x), square)


def _one_and_square(x: Tensor) -> Tensor:
    square = F.Square(x)
    return F.Add(constant_like(1, x), square)


_gradient(sin_op, lambda dy, x: _times(dy, F.Cos(x)))
_gradient(cos_op, lambda dy, x: _times(F.Neg(dy), F.Sin(x)))
_gradient(sinh_op, lambda dy, x: _times(dy, F.Cosh(x)))
_gradient(cosh_op, lambda dy, x: _times(dy, F.Sinh(x)))
_gradient(expm1_op, lambda dy, x: _times(dy, F.Exp(x)))
_gradient(log_op, lambda dy, x: _times(dy, F.Reciprocal(x)))
_gradient(
    log1p_op,
    lambda dy, x: _times(dy, F.Reciprocal(F.AddV2(x.dtype.base_dtype.as_numpy_dtype(1), x, name="add"))),
)
_gradient(tan_op, lambda dy, x: _times(F.Square(F.Reciprocal(F.Cos(x))), dy))
_gradient(asin_op, lambda dy, x: _times(dy, F.Reciprocal(F.Sqrt(_one_minus_square(x)))))

_gradient(acos_op, lambda dy, x: _minus_times(dy, F.Reciprocal(F.Sqrt(_one_minus_square(x)))))
_gradient(atan_op, lambda dy, x: _times(dy, F.Reciprocal(_one_and_square(x))))
_gradient(atanh_op, lambda dy, x: _times(dy, F.Reciprocal(_one_minus_square(x))))
_gradient(lgamma_op, lambda dy, x: _times(dy, F.Digamma(x)))
_gradient(exp_op, lambda dy, y: _times(dy, y), of_result=True)
_gradient(asinh_op, lambda dy, y: F.RealDiv(dy, F.Cosh(y), name="truediv"), of_result=True)
_gradient(acosh_op, lambda dy, y: F.RealDiv(dy, F.Sinh(y), name="truediv"), of_result=True)
_gradient(digamma_op, lambda dy, x: _times(dy, F.Polygamma(constant_like(1, x), x)))
for _declaration in (ceil_op, floor_op, rint_op, round_op):
    _declaration.gradient(lambda op, dy: (None,))
for _declaration in (is_nan_op, is_inf_op, is_finite_op):
    _declaration.no_gradient()


@erf_op.gradient
@erfc_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, height = op.inputs[0], 2 / math.sqrt(math.pi)
    scaled = _times(dy, constant_like(height if op.type == "Erf" else -height, x))
    with op.graph.control_dependencies([dy]):
        return (_times(scaled, F.Exp(F.Neg(F.Square(x)))),)


# ---- gradients with respect to the result


def _gradient_given_output(
    name: str,
    declarations: list[OpDeclaration],
    call: Callable[[DType], Call],
    conjugates: bool = True,
    **traits: Any,
) -> OpDeclaration:
    """Declares ``name(y, dy)``, the gradient of `declarations` told from their output.

    `conjugates`: the op conjugates a complex y itself; else whoever uses it does.
    """
    declaration = op(name, "y: T, dy: T -> z: T", T=FLOATS_AND_COMPLEX, by_element=True, **traits)
    declaration.infer(lambda node: node.dims(0))
    declaration.kernel(CPU, GPU)(lambda n, env: complex_call(n, env, call(n.dtype(0))) or call(n.dtype(0)))
    for forward in declarations:
        if conjugates:
            forward.gradient(lambda op, dy: (getattr(F, name)(op.outputs[0], dy),))
        else:
            forward.gradient(lambda op, dy: (getattr(F, name)(conjugate(op.outputs[0]), dy),))
    return declaration


def _conj_y(dtype: DType) -> Call | Input:
    """The argument y, conjugated if it is complex."""
    return Call(torch.conj, X0) if dtype.is_complex else X0


def _call_sigmoid_gradient(dtype: DType) -> Call:
    if dtype.is_complex:
        return Call(torch.mul, X1, Call(torch.mul, X0, Call(torch.rsub, X0, 1)))
    backward = torch.ops.aten.sigmoid_backward
    return Call(backward.default, X1, X0).or_in_place(1, backward.grad_input, X1, X0, grad_input=X1)


def _call_tanh_gradient(dtype: DType) -> Call:
    if dtype.is_complex:
        return Call(torch.mul, X1, Call(torch.rsub, Call(torch.square, X0), 1))
    backward = torch.ops.aten.tanh_backward
    return Call(backward.default, X1, X0).or_in_place(1, backward.grad_input, X1, X0, grad_input=X1)


def _none_of_none(usual: Call) -> Call:
    """Zero where the gradient is, also where the derivative is infinite or NaN."""
    return Call(zero_where_zero, usual, X1)


def _call_sqrt_gradient(dtype: DType) -> Call:
    return _none_of_none(Call(torch.div, Call(torch.mul, X1, 0.5), _conj_y(dtype)))


def _call_rsqrt_gradient(dtype: DType) -> Call:
    y = _conj_y(dtype)
    cube = Call(
        torch.mul, Call(torch.mul, y, y), Call(torch.mul, y, X1)
    )  # ATen's pow costs more than all three
    return _none_of_none(Call(torch.Tensor.mul_, cube, _MINUS_HALF))


_MINUS_HALF = torch.tensor(-0.5)


def _call_reciprocal_gradient(dtype: DType) -> Call:
    square = Call(torch.square, _conj_y(dtype)) if dtype.is_complex else square_call(dtype)
    return _none_of_none(Call(torch.mul, Call(torch.neg, X1), square))


sigmoid_grad = _gradient_given_output(
    "SigmoidGrad", [sigmoid_op], _call_sigmoid_gradient, False, elementwise=True, takes_result=0
)
tanh_grad = _gradient_given_output(
    "TanhGrad", [tanh_op], _call_tanh_gradient, False, elementwise=True, takes_result=0
)
sqrt_grad = _gradient_given_output("SqrtGrad", [sqrt_op], _call_sqrt_gradient, elementwise=True)
rsqrt_grad = _gradient_given_output("RsqrtGrad", [rsqrt_op], _call_rsqrt_gradient, elementwise=True)
reciprocal_grad = _gradient_given_output("ReciprocalGrad", [reciprocal_op], _call_reciprocal_gradient)
inv_grad = _gradient_given_output("InvGrad", [inv_op], _call_reciprocal_gradient)


@sigmoid_grad.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    y, dy = conjugate(op.inputs[0]), conjugate(op.inputs[1])
    flow = F.Mul(dz, dy)
    return F.Sub(flow, F.Mul(F.Mul(constant_like(2, y), flow), y)), F.SigmoidGrad(y, dz)


@tanh_grad.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    y, dy = conjugate(op.inputs[0]), conjugate(op.inputs[1])
    return F.Mul(F.Mul(F.Mul(dz, constant_like(-2, y)), dy), y), F.TanhGrad(y, dz)


@sqrt_grad.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    flow = F.RealDiv(dz, op.inputs[0])
    return F.Mul(F.Neg(conjugate(flow)), op.outputs[0]), F.Mul(constant_like(0.5, flow), flow)


@rsqrt_grad.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    y = conjugate(op.inputs[0])
    flow = F.Mul(F.Mul(constant_like(-1.5, y), conjugate(dz)), op.inputs[1])
    return F.Mul(flow, F.Square(y)), F.RsqrtGrad(y, dz)


@reciprocal_grad.gradient
@inv_grad.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    y = conjugate(op.inputs[0])
    flow = F.Mul(F.Mul(constant_like(-2, y), conjugate(dz)), op.inputs[1])
    return F.Mul(flow, y), F.ReciprocalGrad(y, dz)


# ---- public functions


def exp(x: Any, name: str | None = None) -> Tensor:
    """e to the power of x, element-wise."""
    return exp_op(x, name=name)


def expm1(x: Any, name: str | None = None) -> Tensor:
    """exp(x) - 1, exact near 0."""
    return expm1_op(x, name=name)


def log(x: Any, name: str | None = None) -> Tensor:
    """The natural logarithm, element-wise."""
    return log_op(x, name=name)


def log1p(x: Any, name: str | None = None) -> Tensor:
    """log(1 + x), exact near 0."""
    return log1p_op(x, name=name)


def sqrt(x: Any, name: str | None = None) -> Tensor:
    """The square root, element-wise; NaN of negative numbers."""
    return sqrt_op(x, name=name)


def rsqrt(x: Any, name: str | None = None) -> Tensor:
    """1 / sqrt(x), element-wise."""
    return rsqrt_op(x, name=name)


def reciprocal(x: Any, name: str | None = None) -> Tensor:
    """1 / x, element-wise."""
    return reciprocal_op(x, name=name)


def sin(x: Any, name: str | None = None) -> Tensor:
    """The sine, element-wise; x in radians."""
    return sin_op(x, name=name)


def cos(x: Any, name: str | None = None) -> Tensor:
    """The cosine, element-wise; x in radians."""
    return cos_op(x, name=name)


def tan(x: Any, name: str | None = None) -> Tensor:
    """The tangent, element-wise; x in radians."""
    return tan_op(x, name=name)


def asin(x: Any, name: str | None = None) -> Tensor:
    """The inverse sine, in radians."""
    return asin_op(x, name=name)


def acos(x: Any, name: str | None = None) -> Tensor:
    """The inverse cosine, in radians."""
    return acos_op(x, name=name)


def atan(x: Any, name: str | None = None) -> Tensor:
    """The inverse tangent, in radians."""
    return atan_op(x, name=name)


def sinh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic sine, element-wise."""
    return sinh_op(x, name=name)


def cosh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic cosine, element-wise."""
    return cosh_op(x, name=name)


def tanh(x: Any, name: str | None = None) -> Tensor:
    """The hyperbolic tangent, element-wise."""
    return tanh_op(x, name=name)


def asinh(x: Any, name: str | None = None) -> Tensor:
    """The inverse hyperbolic sine, element-wise."""
    return asinh_op(x, name=name)


def acosh(x: Any, name: str | None = None) -> Tensor:
    """The inverse hyperbolic cosine, element-wise."""
    return acosh_op(x, name=name)


def atanh(x: Any, name: str | None = None) -> Tensor:
    """The inverse hyperbolic tangent, element-wise."""
    return atanh_op(x, name=name)


def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """1 / (1 + exp(-x)), element-wise."""
    return sigmoid_op(x, name=name)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(sigmoid(x)) = -softplus(-x), element-wise."""
    x = convert_to_tensor(x, name="x")
    with x.graph.name_scope(name or "LogSigmoid") as scope:
        return F.Neg(F.Softplus(F.Neg(x)), name=scope)


def erf(x: Any, name: str | None = None) -> Tensor:
    """The Gauss error function, element-wise."""
    return erf_op(x, name=name)


def erfc(x: Any, name: str | None = None) -> Tensor:
    """1 - erf(x), element-wise."""
    return erfc_op(x, name=name)


def lgamma(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""
    return lgamma_op(x, name=name)


def digamma(x: Any, name: str | None = None) -> Tensor:
    """The derivative of lgamma."""
    return digamma_op(x, name=name)


def ceil(x: Any, name: str | None = None) -> Tensor:
    """The smallest integer not less than x, in the type of x."""
    return ceil_op(x, name=name)


def floor(x: Any, name: str | None = None) -> Tensor:
    """The greatest integer not above x, in the type of x."""
    return floor_op(x, name=name)


def rint(x: Any, name: str | None = None) -> Tensor:
    """The nearest integer, the even one of two, in the type of x."""
    return rint_op(x, name=name)


def round(x: Any, name: str | None = None) -> Tensor:
    """The nearest integer, the even one of two; integers are returned as they are."""
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else round_op(x, name=name)


def is_nan(x: Any, name: str | None = None) -> Tensor:
    """Which elements are NaN, as bool."""
    return is_nan_op(x, name=name)


def is_inf(x: Any, name: str | None = None) -> Tensor:
    """Which elements are infinite, as bool."""
    return is_inf_op(x, name=name)


def is_finite(x: Any, name: str | None = None) -> Tensor:
    """Which elements are neither infinite nor NaN, as bool."""
    return is_finite_op(x, name=name)


for _name in __all__:
    globals()[_name] = dispatched("unary")(globals()[_name])
sqrt, tanh, erf = map(of_stored_values, (sqrt, tanh, erf))
