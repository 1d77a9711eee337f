"""Families of element-wise operations, and what their gradients share.

`unary` and `binary` are constructors that own shape inference, in-place variants and unsigned integers, so
that an op of these families is one to four lines in the file of its subject (`arithmetic`, `functions`,
`comparisons` ...). Gradients are built with raw operations; `sum_to` undoes the broadcast of an input and
`conjugate` is the identity on real numbers.

>>> keeps_shape((None, 3), (3,)), keeps_shape((None, 3), (None, 3)), reduced_axes((2, 1), (2, 3), None)
(True, False, (1,))
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, OpDeclaration, op
from flowstone.framework.machine import number_code
from flowstone.framework.machine.large_arrays import into_large_array
from flowstone.framework.tensors.node import Node, Output
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, broadcast, num_elements
from flowstone.ops.numbers.unsigned_integers import needs_help

FLOATS = dtypes.FLOATS_WITH_BFLOAT16
FLOATS_AND_COMPLEX = (*FLOATS, *dtypes.COMPLEX)
SIGNED_INTEGERS = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
UNSIGNED_INTEGERS = (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
SIGNED = (*FLOATS_AND_COMPLEX, *SIGNED_INTEGERS)
ARITHMETIC = (*SIGNED, *UNSIGNED_INTEGERS)
REAL = (*FLOATS, *SIGNED_INTEGERS, *UNSIGNED_INTEGERS)
QUANTIZED = (dtypes.qint8, dtypes.quint8, dtypes.qint32, dtypes.qint16, dtypes.quint16)
ALL_NUMBERS = (*dtypes.NUMBERS, dtypes.bfloat16, dtypes.qint16, dtypes.quint16)

_Function = Callable[..., torch.Tensor]
_Adapter = Callable[[DType, _Function], _Function]

# ---- families


def same_shape(node: Node) -> Dims:
    """Infers that the output has the first input's shape."""
    return node.dims(0)


def broadcast_shape(node: Node) -> Dims:
    """Infers the shape that both inputs broadcast to."""
    return broadcast(node.dims(0), node.dims(1))


def unary(
    name: str,
    function: _Function,
    types: tuple[DType, ...],
    *,
    in_place: _Function | None = None,
    complex_function: _Function | None = None,
    adapter: _Adapter | None = None,
    call: Callable[[DType], Call] | None = None,
    result: str = "T",
    **traits: Any,
) -> OpDeclaration:
    """Declares ``y = function(x)``.

    `in_place(x)` leaves the result in x; `complex_function` serves complex numbers where ATen's name differs;
    `adapter(dtype, function)` serves the unsigned integers; `call(dtype)` is what does the same, if it is not
    the function alone; `result` is the output's type.
    """
    declaration = op(name, f"x: T -> y: {result}", T=types, by_element=True, **traits)
    declaration.infer(same_shape)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dtype = node.dtype(0)
        if dtype.is_complex and complex_function is not None:
            return Call(complex_function, X0)
        by_code = complex_call(node, env, function)
        if by_code is not None:
            return by_code
        if adapter is not None and needs_help(dtype):
            return Call(adapter(dtype, function), X0)
        if call is not None:
            return call(dtype)
        elements = num_elements(node.dims(0))
        is_large = (elements or 0) * (
            dtype.torch or torch.uint8
        ).itemsize >= env.machine.profile.large_results
        in_large = is_large and result == "T" and env.device.type == "cpu" and not dtype.is_complex
        plain = Call(into_large_array(function) if in_large and _is_of_aten(function) else function, X0)
        return plain if in_place is None else plain.or_in_place(0, in_place, X0)

    return declaration


def _is_of_aten(function: _Function) -> bool:
    """Whether it is ATen's own, which can write its result where it is told."""
    return isinstance(function, types.BuiltinFunctionType)


def square_call(dtype: DType) -> Call:
    """The square of an input. ATen's is a power, which has no vectors for half-precision numbers and
    integers."""
    if dtype is dtypes.float16 or dtype.is_integer:
        return Call(torch.mul, X0, X0).or_in_place(0, torch.Tensor.mul_, X0, X0)
    return Call(torch.square, X0).or_in_place(0, torch.Tensor.square_, X0)


def binary(
    name: str,
    function: _Function,
    in_place: _Function | None = None,
    types: tuple[DType, ...] = ARITHMETIC,
    *,
    adapter: _Adapter | None = None,
    **traits: Any,
) -> OpDeclaration:
    """Declares ``z = function(x, y)`` on inputs that broadcast.

    `in_place(x, y)` overwrites x; a commutative op may then overwrite y too. `adapter` as in `unary`.
    """
    declaration = op(name, "x: T, y: T -> z: T", T=types, broadcasts=True, **traits)
    declaration.infer(broadcast_shape)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        return complex_call(node, env, function) or binary_call(node, function, in_place, adapter)

    return declaration


def binary_call(
    node: Node,
    function: _Function,
    in_place: _Function | None = None,
    adapter: _Adapter | None = None,
) -> Call:
    """The kernel of ``function(x, y)`` for this node, with the in-place variants that its shapes allow."""
    dtype = node.dtype(0)
    if adapter is not None and needs_help(dtype):
        return Call(adapter(dtype, function), X0, X1)
    if dtype.is_complex and function in (torch.add, torch.sub):
        function, in_place = by_parts(function), in_place and by_parts(in_place)
    call = Call(function, X0, X1)
    if in_place is not None:
        x, y = node.dims(0), node.dims(1)
        if keeps_shape(x, y):
            call.or_in_place(0, in_place, X0, X1)
        if node.commutes and keeps_shape(y, x):
            call.or_in_place(1, in_place, X1, X0)
    return call


def by_parts(function: _Function) -> _Function:
    """A sum or difference of complex numbers by their parts: ATen's multiplies the second by 1, which makes
    NaN of the part that an infinity has beside it."""

    def compute(*values: torch.Tensor) -> torch.Tensor:
        if any(value.is_conj() for value in values):
            return function(*values)
        return torch.view_as_complex(function(*[torch.view_as_real(value) for value in values]))

    return compute


def complex_call(node: Node, env: Environment, function: _Function, name: str = "") -> Call | None:
    """The kernel of an operation (`name`, or the node's) of many complex64 numbers on a host by machine code;
    None where there is no code for it. `function` is ATen's."""
    if node.dtype(0).torch is not torch.complex64 or env.device.type != "cpu":
        return None
    dims, least = node.outputs[0].static_shape, env.machine.profile.call_elements
    if dims is not None and math.prod(dims) < least:
        return None
    code = number_code.complex_function(name or node.type, function)
    if code is None:
        return None
    operands = (X0, X1)[: len(node.inputs)]
    return Call(code, *operands) if dims is not None else Call(_where_many, code, function, least, *operands)


def _where_many(code: _Function, function: _Function, least: int, *xs: torch.Tensor) -> torch.Tensor:
    return code(*xs) if max([x.numel() for x in xs]) >= least else function(*xs)


def undone(node: Node) -> Output | None:
    """Local identity of an op that is its own inverse: the input of the same op just before."""
    inner = node.inputs[0].op
    return inner.inputs[0] if inner.type == node.type and not inner.inputs[0].dtype.is_ref else None


def keeps_shape(x: Dims, other: Dims) -> bool:
    """Whether broadcasting with `other` certainly leaves the shape `x` as it is."""
    if x is None or other is None or len(other) > len(x):
        return False
    aligned = x[len(x) - len(other) :]
    return all(b == 1 or (b is not None and a == b) for a, b in zip(aligned, other))


# ---- what kernels share

FEW = 2**13  # elements: of fewer, the calls take longer than the work
_PIECE = 2**19  # bytes: a few such arrays stay in caches, and calls take little of the time
_WORDS = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes an element


def by_pieces(function: Callable[..., torch.Tensor], dtype: torch.dtype, *xs: torch.Tensor) -> torch.Tensor:
    """An element-wise function of several passes, of tensors of one shape; on a host in pieces."""
    first = xs[0]
    if first.nbytes < 4 * _PIECE or first.device.type != "cpu" or not all([x.is_contiguous() for x in xs]):
        return function(*xs)
    result = torch.empty(first.shape, dtype=dtype)
    count = _PIECE // first.itemsize
    for found, *pieces in zip(*[x.view(-1).split(count) for x in (result, *xs)]):
        found.copy_(function(*pieces))
    return result


def zero_where_zero(result: torch.Tensor, x: torch.Tensor, signed: bool = False) -> torch.Tensor:
    """`result`, overwritten with 0 where `x`, which broadcasts to it, is zero: by masks, as in `choosing`.

    `signed`: by the zero of `x` with its sign.
    """
    if result.numel() < FEW or result.is_complex():
        return torch.where(x == 0, x if signed else 0, result)
    word = _WORDS[x.dtype.itemsize]
    bits, found = x.view(word), result.view(word)
    mask = torch.add(bits, bits).ne_(0).neg_()  # -0.0 is zero too: its only bit is shifted out
    if signed:
        found.bitwise_xor_(bits).bitwise_and_(mask).bitwise_xor_(bits)
    else:
        found.bitwise_and_(mask)
    return result


# ---- what gradients share


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate; a real tensor is returned as it is."""
    return F.Conj(x) if x.dtype.is_complex else x


def constant_like(value: float, x: Tensor) -> Tensor:
    """A scalar constant of the element type of `x`."""
    return convert_to_tensor(np.asarray(value).astype(x.dtype.base_dtype.as_numpy_dtype), name="Const")


def reduced_axes(x: Dims, dz: Dims, other: Dims) -> tuple[int, ...] | None:
    """The axes of `dz` along which `x` was broadcast; None if the static shapes do not tell.

    `dz` has the shape that `x` and `other` broadcast to; `other` may be unknown (None), and helps where
    dimensions are.
    """
    if x is None or dz is None or len(dz) < len(x):
        return None
    extra = len(dz) - len(x)
    axes = list(range(extra))
    for axis, size in enumerate(x, extra):
        if size == 1:
            if dz[axis] != 1:
                axes.append(axis)
        elif size is None:
            if other is None:
                return None
            at = axis - len(dz) + len(other)
            if at >= 0 and other[at] != 1:
                return None
    return tuple(axes)


def sum_to(dz: Tensor, x: Tensor, other: Tensor | None = None) -> Tensor:
    """`dz`, of the shape that `x` was broadcast to, summed to the shape of `x`.

    `other`: the input that `x` was broadcast with, from whose static shape more can be told. `dz` itself is
    returned where nothing was broadcast; axes that are known are constants; else the step computes them. A
    Reshape follows the Sum, as in TensorFlow, where programs look for it; not where it would change nothing
    and could not be folded.
    """
    dz = convert_to_tensor(dz)  # IndexedSlices become dense here, as in TensorFlow
    x_dims, dz_dims = x.dims, dz.dims
    if other is not None and other is x:
        return dz
    if x_dims is not None and x_dims == dz_dims and None not in x_dims:
        return dz
    axes = reduced_axes(x_dims, dz_dims, None if other is None else other.dims)
    if axes == ():
        return dz
    if axes is None:
        shape = F.Shape(x)
        full = F.Shape(dz) if other is None else F.Shape(other)
        return F.Reshape(F.Sum(dz, F.BroadcastGradientArgs(shape, full)[0]), shape)
    assert x_dims is not None and dz_dims is not None  # or no axes were known
    total = F.Sum(dz, np.array(axes, np.int32))
    if axes == tuple(range(len(dz_dims) - len(x_dims))):
        total.dims = x_dims
        if None in x_dims:
            return total
    return F.Reshape(total, F.Shape(x) if None in x_dims else np.array(x_dims, np.int32))
