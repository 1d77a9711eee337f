"""Arithmetic, element by element: sums, differences, products, signs, powers, extremes.

Integers wrap around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, F, GradientFunction, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine import machine, machine_code
from flowstone.framework.tensors.composite import IndexedSlices, of_stored_values
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node, Output
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import ones_like, zeros, zeros_like
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.numbers.broadcast_gradients import broadcast_sums, have_one_shape, sums_to_shapes
from flowstone.ops.numbers.elementwise import (
    ARITHMETIC,
    FLOATS,
    FLOATS_AND_COMPLEX,
    REAL,
    SIGNED,
    SIGNED_INTEGERS,
    binary,
    binary_call,
    broadcast_shape,
    complex_call,
    conjugate,
    constant_like,
    same_shape,
    square_call,
    unary,
    undone,
)
from flowstone.ops.numbers.unsigned_integers import modular, ordered

__all__ = [
    "abs",
    "add",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "pow",
    "scalar_mul",
    "sign",
    "square",
    "squared_difference",
    "subtract",
]

# ---- sums, differences and products

add_op = op(
    "Add",
    "x: T, y: T -> z: T",
    T=(*FLOATS_AND_COMPLEX, *SIGNED_INTEGERS, dtypes.uint8, dtypes.string),
    elementwise=True,
    broadcasts=True,
    adds=True,
)
add_op.infer(broadcast_shape)
add_op.number("{0} + {1}", overflows=True)
add_op.sizes(np.add)


@add_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if node.dtype(0) is dtypes.string:
        return _join_strings
    return binary_call(node, torch.add, torch.Tensor.add_)


def _join_strings(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.add(x, y), dtype=object)


add_v2 = binary(
    "AddV2", torch.add, torch.Tensor.add_, adapter=modular, commutative=True, elementwise=True, adds=True
)
add_v2.number("{0} + {1}", overflows=True)
add_v2.sizes(np.add)


@add_op.gradient
@add_v2.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    if have_one_shape(x, y, dz):
        return dz, dz
    back = broadcast_sums(x, y, dz)
    return back(dz, 0), back(dz, 1)


def is_constant(value: np.ndarray | None, number: int) -> bool:
    return (
        value is not None and value.size > 0 and value.dtype.kind in "iufc" and bool((value == number).all())
    )


def same_as(node: Node, i: int) -> Output | None:
    """Input `i` of two, if the output certainly has its shape."""
    dims = node.outputs[0].dims
    is_known = dims is not None and node.dims(i) == dims and None not in dims
    return node.inputs[i] if is_known or node.dims(1 - i) == () else None


@add_v2.fold
@add_op.fold
def _(node: Node) -> Equal:
    return _unless(node, 0, lambda value: is_constant(value, 0))


def _unless(node: Node, number: int, is_neutral: Callable[[np.ndarray | None], bool]) -> Output | None:
    if is_neutral(node.constant(1)):
        return same_as(node, 0)
    if is_neutral(node.constant(0)):
        return same_as(node, 1)
    return None


sub_op = binary("Sub", torch.sub, torch.Tensor.sub_, adapter=modular, elementwise=True)
sub_op.number("{0} - {1}", overflows=True)
sub_op.sizes(np.subtract)


@sub_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    if have_one_shape(x, y, dz):
        return dz, F.Neg(dz)
    back = broadcast_sums(x, y, dz)
    return back(dz, 0), back(_negated(dz), 1)


def _negated(x: Any) -> Any:
    return (
        IndexedSlices(F.Neg(x.values), x.indices, x.dense_shape) if isinstance(x, IndexedSlices) else F.Neg(x)
    )


@sub_op.fold
def _(node: Node) -> Equal:
    return same_as(node, 0) if is_constant(node.constant(1), 0) else None


mul_op = binary("Mul", torch.mul, torch.Tensor.mul_, adapter=modular, commutative=True, elementwise=True)
mul_op.number("{0} * {1}", overflows=True)
mul_op.sizes(np.multiply)


@mul_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    if have_one_shape(x, y, dz) and dz.dtype.base_dtype in (dtypes.int32, dtypes.float32):
        return F.Mul(dz, y), F.Mul(dz, x)
    back = broadcast_sums(x, y, dz)
    x, y = conjugate(x), conjugate(y)
    return back(F.Mul(dz, y), 0), back(F.Mul(x, dz), 1)


@mul_op.fold
def _(node: Node) -> Equal:
    return _unless(node, 1, lambda value: is_constant(value, 1))


squared_difference_op = op(
    "SquaredDifference",
    "x: T, y: T -> z: T",
    T=(*FLOATS_AND_COMPLEX, dtypes.int32, dtypes.int64),
    commutative=True,
    elementwise=True,
)
squared_difference_op.infer(broadcast_shape)


@squared_difference_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if node.dtype(0).is_complex:
        return _squared_complex_difference
    if node.dtype(0) in (dtypes.float32, dtypes.float64, dtypes.bfloat16):
        return Call(torch.square, Call(torch.sub, X0, X1))
    return _squared_short_difference


def _squared_short_difference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Of half-precision numbers and integers; see `square_call`."""
    difference = x - y
    return difference.mul_(difference)


def _squared_complex_difference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    difference = x - y
    return difference * difference.conj()


@squared_difference_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    dz = convert_to_tensor(dz)
    with x.graph.control_dependencies([dz]):
        two = convert_to_tensor(dz.dtype.base_dtype.as_numpy_dtype(2), name="scalar")
        dx = F.Mul(F.Mul(two, dz), F.Sub(x, y, name="sub"), name="mul")
    if have_one_shape(x, y, dz):
        return dx, F.Neg(dx)
    back = broadcast_sums(x, y, dz)
    return back(dx, 0), F.Neg(back(dx, 1))


# ---- signs and squares

neg_op = unary("Neg", torch.neg, SIGNED, in_place=torch.Tensor.neg_, elementwise=True)
neg_op.gradient(lambda op, dy: (_negated(dy),))
neg_op.fold(undone)
abs_op = unary("Abs", torch.abs, (*FLOATS, *SIGNED_INTEGERS), in_place=torch.Tensor.abs_, elementwise=True)
abs_op.gradient(lambda op, dy: (F.Mul(dy, F.Sign(op.inputs[0]), name="mul"),))
square_op = unary("Square", torch.square, ARITHMETIC, adapter=modular, call=square_call, elementwise=True)


@square_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x, dy = op.inputs[0], convert_to_tensor(dy)
    with x.graph.control_dependencies([dy]):
        return (F.Mul(dy, F.Mul(conjugate(x), constant_like(2, dy))),)


_SCALES = {  # (what makes the least number, a subnormal one, a normal one, which is the second)
    torch.float16: (2.0**10, 2.0**-14),
    torch.bfloat16: (2.0**64, 2.0**-69),
    torch.float32: (2.0**64, 2.0**-85),
    torch.float64: (2.0**512, 2.0**-562),
}


def _sign(x: torch.Tensor) -> torch.Tensor:
    """ATen's has 0 for NaN, which bounds keep. The sum makes -0.0 positive."""
    scale, least = _SCALES[x.dtype]
    zero = torch.zeros((), dtype=x.dtype, device=x.device)
    return torch.add(zero, x, alpha=scale).clamp_(-least, least).mul_(1 / least)


sign_op = op("Sign", "x: T -> y: T", T=SIGNED, by_element=True)
sign_op.infer(same_shape)


@sign_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.dtype(0)
    if dtype.is_complex:
        return Call(torch.sgn, X0)
    return _sign if dtype.is_floating else Call(torch.sign, X0)


@sign_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return (F.ZerosLike(dy),)


# ---- powers

pow_op = op("Pow", "x: T, y: T -> z: T", T=SIGNED, cost=8)
pow_op.infer(broadcast_shape)


@pow_op.fold
def _(node: Node) -> Equal:
    return same_as(node, 0) if is_constant(node.constant(1), 1) else None


@pow_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    exponent = node.constant(1)
    if node.dtype(0).is_integer:
        return by_code("power", _integer_power)
    if exponent is not None and exponent.shape == () and node.dtype(0).is_floating:
        value = float(exponent)
        return square_call(node.dtype(0)) if value == 2 else Call(torch.pow, X0, value)
    return complex_call(node, env, torch.pow) or binary_call(node, torch.pow)


def by_code(name: str, otherwise: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The function, by machine code where there are many elements on a host."""
    most = machine.current().profile.call_elements

    def compute(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.is_cpu and (x.numel() >= most or y.numel() >= most):
            code = machine_code.quotients(x.dtype)
            found = None if code is None else code(name, x, y)
            if found is not None:
                return found
        return otherwise(x, y)

    return compute


def _integer_power(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if y.device.type == "cpu" and bool((y < 0).any()):  # elsewhere asking would wait for the device
        raise errors.InvalidArgumentError(None, None, "Integers to negative integer powers are not allowed")
    return torch.pow(x, y)


@pow_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    """The second is dz z log(x), and 0 where x has no logarithm: 0, and negative reals."""
    x, y = op.inputs
    back = broadcast_sums(x, y, dz)
    x, y = conjugate(x), conjugate(y)
    one, zero = x.dtype.base_dtype.as_numpy_dtype(1), x.dtype.base_dtype.as_numpy_dtype(0)
    power = F.Mul(F.Mul(dz, y, name="mul"), F.Pow(x, F.Sub(y, one, name="sub")), name="mul")
    dx, z = back(power, 0), conjugate(op.outputs[0])
    has_logarithm = F.NotEqual(x, zero) if x.dtype.is_complex else F.Greater(x, zero)
    safe = F.Select(has_logarithm, x, ones_like(x))
    logarithm = F.Select(has_logarithm, F.Log(safe), zeros_like(x))
    return dx, back(F.Mul(F.Mul(dz, z, name="mul"), logarithm, name="mul"), 1)


# ---- extremes

maximum_op = binary("Maximum", torch.maximum, types=REAL, adapter=ordered, commutative=True, elementwise=True)
maximum_op.sizes(np.maximum)
minimum_op = binary("Minimum", torch.minimum, types=REAL, adapter=ordered, commutative=True, elementwise=True)


def _extreme_gradient(wins: Callable[[Tensor, Tensor], Tensor]) -> GradientFunction:
    def gradient(op: Operation, dz: Tensor) -> Gradients:
        x, y = op.inputs
        shapes, dz = (shape_of(x), shape_of(y)), convert_to_tensor(dz)
        zero = zeros(shape_of(dz), dz.dtype.base_dtype)
        first = wins(x, y)
        back = sums_to_shapes(*shapes)
        return back(F.Select(first, dz, zero), 0), back(F.Select(first, zero, dz), 1)

    return gradient


maximum_op.gradient(_extreme_gradient(lambda x, y: F.GreaterEqual(x, y)))
minimum_op.gradient(_extreme_gradient(lambda x, y: F.LessEqual(x, y)))


# ---- public functions


@dispatched("binary")
def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x + y, element-wise with broadcasting; strings are joined."""
    return add_op(x, y, name=name or "Add")


@dispatched("binary")
def subtract(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x - y, element-wise with broadcasting."""
    return sub_op(x, y, name=name or "Sub")


@dispatched("binary")
def multiply(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x * y, element-wise with broadcasting."""
    return mul_op(x, y, name=name or "Mul")


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """A scalar times a tensor, or times the values of IndexedSlices. ValueError unless `scalar` is one."""
    scalar = convert_to_tensor(scalar, x.dtype.base_dtype, "scalar")
    if scalar.ndim not in (None, 0):
        raise ValueError("Only scalar multiply works, got shape " + str(scalar.shape))
    if isinstance(x, IndexedSlices):
        return IndexedSlices(mul_op(scalar, x.values, name=name or "Mul"), x.indices, x.dense_shape)
    return mul_op(scalar, x, name=name or "Mul")


@dispatched("binary")
def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """(x - y)(x - y), element-wise with broadcasting; of complex numbers the second factor conjugated."""
    return squared_difference_op(x, y, name=name)


@of_stored_values
@dispatched("unary")
def negative(x: Any, name: str | None = None) -> Tensor:
    """-x, element-wise."""
    return neg_op(x, name=name)


@of_stored_values
@dispatched("unary")
def abs(x: Any, name: str | None = None) -> Tensor:
    """The absolute value, element-wise; of complex64 as float32, of complex128 as float64."""
    x = convert_to_tensor(x, name="x") if not isinstance(x, Tensor) else x
    if x.dtype.is_complex:
        return F.ComplexAbs(x, Tout=x.dtype.base_dtype.real_dtype, name=name or "Abs")
    return abs_op(x, name=name)


@of_stored_values
@dispatched("unary")
def sign(x: Any, name: str | None = None) -> Tensor:
    """-1, 0 or 1 by the sign of each element; x / |x| of complex numbers."""
    return sign_op(x, name=name)


@of_stored_values
@dispatched("unary")
def square(x: Any, name: str | None = None) -> Tensor:
    """x * x, element-wise."""
    return square_op(x, name=name)


@dispatched("binary")
def pow(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x to the power of y, element-wise with broadcasting.

    InvalidArgumentError at run time for an integer to a negative power.
    """
    return pow_op(x, y, name=name)


@dispatched("binary")
def maximum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The greater of x and y, element-wise with broadcasting; NaN if either is."""
    return maximum_op(x, y, name=name)


@dispatched("binary")
def minimum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The smaller of x and y, element-wise with broadcasting; NaN if either is."""
    return minimum_op(x, y, name=name)
