"""Products of matrices; those of many at a time are in `batch_matrices.py`.

A transposed operand is a view that ATen's product reads in place. For complex numbers MatMul transposes,
BatchMatMul takes the adjoint. Integers are multiplied with wrap-around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import torch

from flowstone.framework import errors
from flowstone.framework.declarations import work
from flowstone.framework.declarations.building import graph_of, operand
from flowstone.framework.declarations.kernel import (
    CPU,
    FOLDING,
    GPU,
    X0,
    X1,
    X2,
    Call,
    Environment,
    Input,
    Kernel,
)
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine import onednn
from flowstone.framework.machine.machine import Machine
from flowstone.framework.machine.number_code import integer_matrices
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import merge
from flowstone.ops.numbers.elementwise import FLOATS_AND_COMPLEX, conjugate
from flowstone.ops.numbers.unsigned_integers import SIGNED

__all__ = ["matmul"]

Operand: TypeAlias = "Input | Call"  # an operand, or its transpose

SIGNED_TYPES = (*FLOATS_AND_COMPLEX, dtypes.int32, dtypes.int64)
TYPES = (*SIGNED_TYPES, dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)


def product_dims(
    inner: tuple[int | None, int | None], outer_x: int | None, outer_y: int | None
) -> tuple[int | None, int | None]:
    """Checks the inner dimensions of a product; raises ValueError if they cannot be equal."""
    x, y = inner
    if x is not None and y is not None and x != y:
        raise ValueError(f"Dimensions must be equal, but are {x} and {y}")
    return outer_x, outer_y


def refuse(x: torch.Tensor, y: torch.Tensor) -> NoReturn:
    """Raises the error of operands whose sizes do not fit."""
    raise errors.InvalidArgumentError(
        None, None, f"Matrix size-incompatible: In[0]: {list(x.shape)}, In[1]: {list(y.shape)}"
    )


def call_of(
    function: Callable[..., torch.Tensor], x: Operand, y: Operand, dtype: DType, env: Environment
) -> Call:
    """The call of a product; types that ATen does not multiply go through a wider one."""
    narrow = dtype.torch
    if dtype in SIGNED:
        signed = SIGNED[dtype]
        product = Call(
            function, *[_with_leaf(side, lambda v: Call(torch.Tensor.view, v, signed)) for side in (x, y)]
        )
        return Call(torch.Tensor.view, product, narrow)
    if dtype.is_integer and env.device.type != "cpu":  # exact up to 2**53
        wide = [_with_leaf(side, lambda v: Call(torch.Tensor.to, v, torch.float64)) for side in (x, y)]
        return Call(torch.Tensor.to, Call(function, *wide), narrow)
    return Call(function, x, y)


def _with_leaf(side: Operand, change: Callable[[Input], Call]) -> Call:
    """An operand's expression (an input, or calls around it) with the input itself changed."""
    if isinstance(side, Input):
        return change(side)
    return Call(side.function, _with_leaf(side.arguments[0], change), *side.arguments[1:])


# ---- MatMul

_SHORT = 64  # rows


def _transposed(side: Operand) -> Operand:
    """The transpose of an operand's expression."""
    if isinstance(side, Input):
        return Call(torch.t, side)
    inner: Input = side.arguments[0]
    return inner


def _shaped_product(
    a: Operand,
    b: Operand,
    rows: int,
    inner: int,
    columns: int,
    dtype: DType,
    env: Environment,
) -> Call:
    """The product [rows, inner] x [inner, columns] of known sizes, by the kernel that suits them.

    Narrow results cost BLAS half as much as (b' a')'. On processors for which MKL has no kernels of its own,
    oneDNN's product takes half MKL's time in float32. Measured in docs/design/007.
    """
    if env.device.type == "cpu" and dtype is dtypes.float32:
        is_transposed, by_onednn = env.machine.product_kernel(rows, inner, columns, type(a) is Call)
        if is_transposed:
            transposed = (
                _onednn(_transposed(b), a) if by_onednn else Call(torch.mm, _transposed(b), _transposed(a))
            )
            return Call(torch.t, transposed)
        if by_onednn:
            return _onednn(a, _transposed(b))
    return call_of(_product_of(dtype, env), a, b, dtype, env)


def _product_of(dtype: DType, env: Environment) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """What multiplies two matrices of a type, whatever their sizes."""
    return _integer_product if env.device.type == "cpu" and dtype in _WORDS else torch.mm


_WORDS = (dtypes.int32, dtypes.uint32)


def _integer_product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The product of int32 matrices."""
    if (code := integer_matrices()) is not None:
        return code(x, y)
    if x.stride(0) == y.stride(0) == 1:  # of two transposed operands ATen's loops take four times as long
        return torch.mm(y.t(), x.t()).t()
    return torch.mm(x, y)


def _chosen_in_step(machine: Machine, a_is_transposed: bool) -> Callable[[Any, Any], Any]:
    """The product of two matrices whose sizes only the step knows, by the kernel that suits them."""
    by_blas, by_onednn, choose = torch.mm, onednn.product, machine.product_kernel

    def product(a: Any, b: Any) -> Any:
        rows, inner = a.shape
        is_transposed, is_large = choose(rows, inner, b.shape[1], a_is_transposed)
        if not (is_transposed or is_large) or b.shape[0] != inner:
            return by_blas(a, b)
        if not is_transposed:
            return by_onednn(a, b.t(), None, "none", (), "")
        transposed = by_onednn(b.t(), a, None, "none", (), "") if is_large else by_blas(b.t(), a.t())
        return transposed.t()

    return product


def product_of_operands(machine: Machine) -> Callable[[Any, Any], Any]:
    """A function of two matrices whose sizes only the step knows: their product."""
    by_onednn, least = onednn.product, machine.profile.product_by_onednn

    def product(a: Any, b: Any) -> Any:
        if a.dtype is torch.float32 and a.device.type == "cpu" and min(*a.shape, *b.shape) > 1:
            if a.numel() * b.shape[1] >= least:
                return by_onednn(a, b.t(), None, "none", (), "")
        return torch.mm(a, b)

    return product if machine.multiplies_by_onednn() else torch.mm


def _onednn(x: Operand, transposed_y: Operand, bias: Input | None = None, activation: str = "none") -> Call:
    """x times the transpose of `transposed_y`, by oneDNN."""
    return Call(onednn.product, x, transposed_y, bias, activation, (), "")


def activated_by_onednn(x: Operand, transposed_y: Operand, bias: Input | None, activation: str) -> Call:
    """The same and an activation, by the op's name. oneDNN's own relu makes 0 of NaN."""
    if activation == "Relu":
        return Call(torch.relu_, _onednn(x, transposed_y, bias))
    return _onednn(x, transposed_y, bias, activation.lower() or "none")


matmul_op = op(
    "MatMul",
    "a: T, b: T -> product: T",
    "transpose_a: bool = false ; transpose_b: bool = false ; grad_a: bool = false ; grad_b: bool = false",
    T=TYPES,
    cost=work.product,
    multiplies="product",
)


@matmul_op.infer
def _infer_product(node: Node) -> Shapes:
    a, b = (merge(node.dims(i), (None, None)) or (None, None) for i in (0, 1))
    if node.attributes["transpose_a"]:
        a = a[::-1]
    if node.attributes["transpose_b"]:
        b = b[::-1]
    return product_dims((a[1], b[0]), a[0], b[1])


def _may_gain(node: Node, env: Environment) -> bool:
    """Whether there is a choice for this product once its sizes are known."""
    return env.device.type == "cpu" and node.dtype(0) is dtypes.float32 and env.machine.multiplies_by_onednn()


def _product_call(node: Node, env: Environment) -> Call | Callable[..., torch.Tensor]:
    """The call that multiplies a node's first two inputs."""
    a = Call(torch.t, X0) if node.attributes["transpose_a"] else X0
    b = Call(torch.t, X1) if node.attributes["transpose_b"] else X1
    shape, inner = node.outputs[0].dims, node.dims(0)
    (rows, columns), sizes = shape or (None, None), node.static_shape(0)
    if rows is not None and columns is not None and sizes is not None:
        terms = sizes[0] if node.attributes["transpose_a"] else sizes[1]
        return _shaped_product(a, b, rows, terms, columns, node.dtype(0), env)
    if None not in (inner, node.dims(1)) and _may_gain(node, env):
        return Call(_chosen_in_step(env.machine, type(a) is Call), a, b)
    call = call_of(_product_of(node.dtype(0), env), a, b, node.dtype(0), env)
    if None not in (inner, node.dims(1)):
        return call

    def checked(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.ndim != 2 or y.ndim != 2:
            refuse(x, y)
        result: torch.Tensor = call(x, y)
        return result

    return checked


matmul_op.kernel(CPU, GPU)(_product_call)


@matmul_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    a, b = (conjugate(x) for x in op.inputs)
    transposed_a, transposed_b = op.attributes["transpose_a"], op.attributes["transpose_b"]
    if not transposed_a:
        da = F.MatMul(dz, b, transpose_b=not transposed_b)
    else:
        da = F.MatMul(b, dz, transpose_a=transposed_b, transpose_b=True)
    if not transposed_b:
        db = F.MatMul(a, dz, transpose_a=not transposed_a)
    else:
        db = F.MatMul(dz, a, transpose_a=True, transpose_b=transposed_a)
    return da, db


ACTIVATED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {  # in place, by the op's name
    "": lambda x: x,
    "Relu": torch.relu_,
    "Tanh": torch.tanh_,
    "Sigmoid": torch.sigmoid_,
}
fused_matmul_op = op(
    "_FusedMatMul",
    "a: T, b: T, bias: T -> product: T",
    "transpose_a: bool = false ; transpose_b: bool = false ; activation: string = ''",
    T=FLOATS_AND_COMPLEX,
    cost=work.product,
    multiplies="product",
)
fused_matmul_op.infer(_infer_product)
fused_matmul_op.not_differentiable()


@fused_matmul_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    """activation(a b + bias): by oneDNN in the product's own pass, elsewhere in place after it."""
    product, activation = _product_call(node, env), node.attributes["activation"]
    if type(product) is Call and product.function is onednn.product:
        x, transposed_y = product.arguments[:2]
        return activated_by_onednn(x, transposed_y, X2, activation)
    activate = ACTIVATED[activation]
    if type(product) is not Call:
        return lambda a, b, bias: activate(product(a, b).add_(bias))
    total = Call(torch.Tensor.add_, product, X2)
    return Call(activate, total) if activation else total


added_matmul_op = op(
    "_AddedMatMul",
    "a: T, b: T, sum: T -> total: T",
    "transpose_a: bool = false ; transpose_b: bool = false",
    T=FLOATS_AND_COMPLEX,
    multiplies="product",
)
added_matmul_op.infer(_infer_product)
added_matmul_op.not_differentiable()


@added_matmul_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    """sum + a b, where BLAS may add up the product; of other kernels' products, added afterwards."""
    product = _product_call(node, env)
    if type(product) is not Call or product.function is not torch.mm:
        return lambda a, b, matrix: product(a, b).add_(matrix)
    call = Call(torch.addmm, X2, *product.arguments)
    return call.or_in_place(2, torch.Tensor.addmm_, X2, *product.arguments)


def accumulates(node: Node) -> bool:
    """Whether a MatMul may as well add its product to a matrix: BLAS makes it, of many rows."""
    dims = node.outputs[0].dims
    if node.dtype(0) not in (dtypes.float32, dtypes.float64) or dims is None or (dims[0] or 0) < _SHORT:
        return False
    call = _product_call(node, FOLDING)
    return type(call) is Call and call.function is torch.mm


# ---- public functions


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of matrices [..., m, k] and [..., k, n] of one type; leading dimensions broadcast.

    `transpose_*`, `adjoint_*`: the operand is transposed, and conjugated, first. `*_is_sparse` says that an
    operand has many zeros. ValueError for inner dimensions that differ and for both a transpose and an
    adjoint of one operand.
    """
    for side, transposed, adjoint in (("a", transpose_a, adjoint_a), ("b", transpose_b, adjoint_b)):
        if transposed and adjoint:
            raise ValueError(f"Only one of `transpose_{side}` and `adjoint_{side}` can be True.")
    if type(a) is Tensor and type(b) is Tensor and a.ndim == 2 == b.ndim and not (adjoint_a or adjoint_b):
        return matmul_op(a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=name)
    graph = graph_of([a, b])
    with graph.as_default(), graph.name_scope(name or "MatMul") as scope:
        a = convert_to_tensor(a, name="a")
        b = operand(b, a.dtype.base_dtype, "b")
        if any(x.ndim is None or x.ndim > 2 for x in (a, b)):
            a, adjoint_a = _as_adjoint(a, transpose_a, adjoint_a)
            b, adjoint_b = _as_adjoint(b, transpose_b, adjoint_b)
            return F.BatchMatMulV2(a, b, adj_x=adjoint_a, adj_y=adjoint_b, name=scope)
        a = conjugate(a) if adjoint_a else a
        b = conjugate(b) if adjoint_b else b
        return matmul_op(
            a, b, transpose_a=transpose_a or adjoint_a, transpose_b=transpose_b or adjoint_b, name=scope
        )


def _as_adjoint(x: Tensor, transposed: bool, adjoint: bool) -> tuple[Tensor, bool]:
    """An operand for BatchMatMul, whose adjoint is a transpose only of real numbers."""
    return (conjugate(x), True) if transposed else (x, adjoint)
