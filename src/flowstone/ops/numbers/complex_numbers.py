"""Complex numbers and their parts, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations.building import graph_of
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.numbers.elementwise import broadcast_shape, same_shape, sum_to, undone

__all__ = ["angle", "complex", "conj", "imag", "real"]

_COMPLEX = "T: type in [complex64, complex128] = complex64"
_REAL_RESULT = f"{_COMPLEX} ; Tout: type in [float, double] = float"


def _part(
    name: str, argument: str, output: str, kernel: Callable[[torch.dtype], Call], cost: int = 1
) -> OpDeclaration:
    declaration = op(name, f"{argument}: T -> {output}: Tout", _REAL_RESULT, cost=cost)
    declaration.infer(same_shape)
    declaration.kernel(CPU, GPU)(lambda node, env: kernel(node.attributes["Tout"].torch))
    return declaration


def _copied(function: Callable[..., torch.Tensor]) -> Callable[[torch.dtype], Call]:
    """A part of the input's own memory, copied to be a plain tensor."""
    return lambda dtype: Call(torch.Tensor.to, Call(function, X0), dtype, copy=True)


def _sizes(x: torch.Tensor) -> torch.Tensor:
    """Absolute values by `hypot`, which unlike ATen's `abs` goes by vectors, and is right where denormal
    numbers are zeros and a size is beyond all numbers."""
    return torch.hypot(x.real, x.imag)


real_op = _part("Real", "input", "output", _copied(torch.real))
imag_op = _part("Imag", "input", "output", _copied(torch.imag))
angle_op = _part("Angle", "input", "output", lambda dtype: Call(torch.angle, X0), cost=20)
complex_abs_op = _part("ComplexAbs", "x", "y", lambda dtype: Call(_sizes, X0), cost=5)


@real_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return (F.Complex(dy, _zero(dy), Tout=op.inputs[0].dtype),)


@imag_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return (F.Complex(_zero(dy), dy, Tout=op.inputs[0].dtype),)


def _zero(dy: Tensor) -> Tensor:
    return convert_to_tensor(dy.dtype.as_numpy_dtype(0), name="Const")


@angle_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    # d angle = Re(dz / (i z)): the gradient is -dy / (i z), conjugated as TensorFlow's convention has it
    x = op.inputs[0]
    rotated = F.Complex(F.Imag(x, Tout=dy.dtype), F.Real(x, Tout=dy.dtype), Tout=x.dtype)
    return (F.Neg(F.Mul(F.Complex(dy, _zero(dy), Tout=x.dtype), F.Reciprocal(rotated))),)


@complex_abs_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    # x dy / |x|. As a function of |x| it has a second gradient; of the sign of x it would have none.
    share = F.DivNoNan(dy, op.outputs[0])
    return (F.Mul(F.Complex(share, _zero(share), Tout=op.inputs[0].dtype), op.inputs[0]),)


conj_op = op("Conj", "input: T -> output: T", "T: type in [complex64, complex128, variant] = complex64")
conj_op.infer(same_shape)
conj_op.kernel(CPU, GPU)(lambda node, env: Call(torch.conj_physical, X0))
conj_op.gradient(lambda op, dy: (F.Conj(dy),))
conj_op.fold(undone)

complex_op = op(
    "Complex",
    "real: T, imag: T -> out: Tout",
    "T: type in [float, double] = float ; Tout: type in [complex64, complex128] = complex64",
)
complex_op.infer(broadcast_shape)
complex_op.kernel(CPU, GPU)(lambda node, env: Call(torch.complex, X0, X1))


@complex_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    re, im = op.inputs
    return sum_to(F.Real(dz, Tout=re.dtype), re, im), sum_to(F.Imag(dz, Tout=im.dtype), im, re)


@dispatched("binary")
def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """real + i imag: complex64 of float32, complex128 of float64. TypeError for other or unequal types."""
    graph = graph_of([real, imag])
    with graph.as_default(), graph.name_scope(name or "Complex") as scope:
        real, imag = convert_to_tensor(real, name="real"), convert_to_tensor(imag, name="imag")
        kinds = real.dtype.base_dtype, imag.dtype.base_dtype
        if kinds not in ((dtypes.float32, dtypes.float32), (dtypes.float64, dtypes.float64)):
            raise TypeError(f"real and imag have incorrect types: {kinds[0].name} {kinds[1].name}")
        result = dtypes.complex64 if kinds[0] is dtypes.float32 else dtypes.complex128
        return complex_op(real, imag, Tout=result, name=scope)


@dispatched("unary")
def real(input: Any, name: str | None = None) -> Tensor:
    """The real part; a real tensor is returned as it is."""
    x = convert_to_tensor(input, name="input")
    return real_op(x, Tout=x.dtype.real_dtype, name=name) if x.dtype.is_complex else x


@dispatched("unary")
def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part, 0 of a real tensor."""
    x = convert_to_tensor(input, name="input")
    return imag_op(x, Tout=x.dtype.real_dtype, name=name) if x.dtype.is_complex else F.ZerosLike(x)


@dispatched("unary")
def angle(input: Any, name: str | None = None) -> Tensor:
    """The argument of each number in radians, in (-pi, pi]; 0 or pi of real numbers."""
    graph = graph_of([input])
    with graph.as_default(), graph.name_scope(name or "Angle") as scope:
        x = convert_to_tensor(input, name="input")
        if x.dtype.is_complex:
            return angle_op(x, Tout=x.dtype.real_dtype, name=scope)
        if not x.dtype.is_floating:
            raise TypeError(f"Expected numbers with an angle, floating point or complex, got {x.dtype!r}")
        pi = F.Mul(x.dtype.as_numpy_dtype(3.141592653589793), F.OnesLike(x))
        return F.Select(F.Less(x, x.dtype.as_numpy_dtype(0)), pi, F.ZerosLike(x))


@dispatched("unary")
def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; a real tensor is returned as it is. TypeError for what is no number."""
    tensor = convert_to_tensor(x, name="x")
    if tensor.dtype.is_complex or tensor.dtype is dtypes.variant:
        return conj_op(tensor, name=name)
    if tensor.dtype.is_floating or tensor.dtype.is_integer:
        return tensor
    raise TypeError(f"Expected numeric or variant tensor, got dtype {tensor.dtype!r}")
