"""Products of matrices, one or many at a time.

A transposed operand is a view that ATen's product reads in place. For complex numbers MatMul transposes,
BatchMatMul takes the adjoint. Integers are multiplied with wrap-around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import torch

from flowstone.framework import dtypes, errors, onednn
from flowstone.framework.building import graph_of
from flowstone.framework.dtypes import DType
from flowstone.framework.graph_operation import Operation
from flowstone.framework.kernel import CPU, FOLDING, GPU, X0, X1, X2, Call, Environment, Input, Kernel
from flowstone.framework.machine import Machine
from flowstone.framework.node import Node
from flowstone.framework.operation import F, Gradients, OpDeclaration, ShapeFunction, Shapes, op
from flowstone.framework.shape import Dims, broadcast, merge
from flowstone.framework.tensor import Tensor, convert_to_tensor
from flowstone.ops.numbers.elementwise import FLOATS_AND_COMPLEX, conjugate, sum_to
from flowstone.ops.numbers.unsigned_integers import SIGNED

__all__ = ["matmul"]

_Side: TypeAlias = "Input | Call"  # an operand, or its transpose

_SIGNED_TYPES = (*FLOATS_AND_COMPLEX, dtypes.int32, dtypes.int64)
_TYPES = (*_SIGNED_TYPES, dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)


def _product(
    inner: tuple[int | None, int | None], outer_x: int | None, outer_y: int | None
) -> tuple[int | None, int | None]:
    """Checks the inner dimensions of a product; raises ValueError if they cannot be equal."""
    x, y = inner
    if x is not None and y is not None and x != y:
        raise ValueError(f"Dimensions must be equal, but are {x} and {y}")
    return outer_x, outer_y


def _refuse(x: torch.Tensor, y: torch.Tensor) -> NoReturn:
    raise errors.InvalidArgumentError(
        None, None, f"Matrix size-incompatible: In[0]: {list(x.shape)}, In[1]: {list(y.shape)}"
    )


def _call_of(
    function: Callable[..., torch.Tensor], x: _Side, y: _Side, dtype: DType, env: Environment
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


def _with_leaf(side: _Side, change: Callable[[Input], Call]) -> Call:
    """An operand's expression (an input, or calls around it) with the input itself changed."""
    if isinstance(side, Input):
        return change(side)
    return Call(side.function, _with_leaf(side.arguments[0], change), *side.arguments[1:])


# ---- MatMul

_SHORT = 64  # rows


def _turned(side: _Side) -> _Side:
    """The transpose of an operand's expression."""
    if isinstance(side, Input):
        return Call(torch.t, side)
    inner: Input = side.arguments[0]
    return inner


def _shaped_product(
    a: _Side,
    b: _Side,
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
        is_turned, by_onednn = env.machine.product_kernel(rows, inner, columns, type(a) is Call)
        if is_turned:
            turned = _onednn(_turned(b), a) if by_onednn else Call(torch.mm, _turned(b), _turned(a))
            return Call(torch.t, turned)
        if by_onednn:
            return _onednn(a, _turned(b))
    return _call_of(torch.mm, a, b, dtype, env)


def _chosen_in_step(machine: Machine, a_is_turned: bool) -> Callable[[Any, Any], Any]:
    """The product of two matrices whose sizes only the step knows, by the kernel that suits them."""
    by_blas, by_onednn, choose = torch.mm, onednn.product, machine.product_kernel

    def product(a: Any, b: Any) -> Any:
        rows, inner = a.shape
        is_turned, is_large = choose(rows, inner, b.shape[1], a_is_turned)
        if not (is_turned or is_large) or b.shape[0] != inner:
            return by_blas(a, b)
        if not is_turned:
            return by_onednn(a, b.t(), None, "none", (), "")
        turned = by_onednn(b.t(), a, None, "none", (), "") if is_large else by_blas(b.t(), a.t())
        return turned.t()

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


def _onednn(x: _Side, turned_y: _Side, bias: Input | None = None, activation: str = "none") -> Call:
    """x times the transpose of `turned_y`, by oneDNN."""
    return Call(onednn.product, x, turned_y, bias, activation, (), "")


def activated_by_onednn(x: _Side, turned_y: _Side, bias: Input | None, activation: str) -> Call:
    """The same and an activation, by the op's name. oneDNN's own relu makes 0 of NaN."""
    if activation == "Relu":
        return Call(torch.relu_, _onednn(x, turned_y, bias))
    return _onednn(x, turned_y, bias, activation.lower() or "none")


matmul_op = op(
    "MatMul",
    "a: T, b: T -> product: T",
    "transpose_a: bool = false ; transpose_b: bool = false ; grad_a: bool = false ; grad_b: bool = false",
    T=_TYPES,
)


@matmul_op.infer
def _infer_product(node: Node) -> Shapes:
    a, b = (merge(node.dims(i), (None, None)) or (None, None) for i in (0, 1))
    if node.attributes["transpose_a"]:
        a = a[::-1]
    if node.attributes["transpose_b"]:
        b = b[::-1]
    return _product((a[1], b[0]), a[0], b[1])


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
    call = _call_of(torch.mm, a, b, node.dtype(0), env)
    if None not in (inner, node.dims(1)):
        return call

    def checked(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.ndim != 2 or y.ndim != 2:
            _refuse(x, y)
        result: torch.Tensor = call(x, y)
        return result

    return checked


matmul_op.kernel(CPU, GPU)(_product_call)


@matmul_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    a, b = (conjugate(x) for x in op.inputs)
    turned_a, turned_b = op.attributes["transpose_a"], op.attributes["transpose_b"]
    if not turned_a:
        da = F.MatMul(dz, b, transpose_b=not turned_b)
    else:
        da = F.MatMul(b, dz, transpose_a=turned_b, transpose_b=True)
    if not turned_b:
        db = F.MatMul(a, dz, transpose_a=not turned_a)
    else:
        db = F.MatMul(dz, a, transpose_a=True, transpose_b=turned_a)
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
)
fused_matmul_op.infer(_infer_product)
fused_matmul_op.not_differentiable()


@fused_matmul_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    """activation(a b + bias): by oneDNN in the product's own pass, elsewhere in place after it."""
    product, activation = _product_call(node, env), node.attributes["activation"]
    if type(product) is Call and product.function is onednn.product:
        x, turned_y = product.arguments[:2]
        return activated_by_onednn(x, turned_y, X2, activation)
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


# ---- BatchMatMul

_BATCH_ATTRIBUTES = "adj_x: bool = false ; adj_y: bool = false ; grad_x: bool = false ; grad_y: bool = false"
batch_matmul_op = op("BatchMatMul", "x: T, y: T -> output: T", _BATCH_ATTRIBUTES, T=_SIGNED_TYPES)
batch_matmul_v2_op = op(
    "BatchMatMulV2", "x: T, y: T -> output: T", _BATCH_ATTRIBUTES, T=(*_TYPES, dtypes.int16)
)


def _batch_shape(combine: Callable[[Dims, Dims], Dims]) -> ShapeFunction:
    def infer(node: Node) -> Dims:
        x, y = node.dims(0), node.dims(1)
        for dims in (x, y):
            if dims is not None and len(dims) < 2:
                raise ValueError(f"Shape must be at least rank 2 but is rank {len(dims)}")
        if x is None or y is None:
            known = x or y
            if combine is broadcast or known is None:
                return None
            return (*known[:-2], *_outer_sizes(node, x, y))
        rows, inner_x = x[-2:][::-1] if node.attributes["adj_x"] else x[-2:]
        inner_y, columns = y[-2:][::-1] if node.attributes["adj_y"] else y[-2:]
        outer = combine(x[:-2], y[:-2])
        return None if outer is None else (*outer, *_product((inner_x, inner_y), rows, columns))

    return infer


def _outer_sizes(node: Node, x: Dims, y: Dims) -> tuple[int | None, int | None]:
    """Rows and columns of a product of which one side's shape is not known at all."""
    rows = None if x is None else x[-1 if node.attributes["adj_x"] else -2]
    columns = None if y is None else y[-2 if node.attributes["adj_y"] else -1]
    return rows, columns


batch_matmul_op.infer(_batch_shape(merge))
batch_matmul_v2_op.infer(_batch_shape(broadcast))


def _adjoint(value: Input, dtype: DType) -> Call:
    return Call(torch.adjoint, value) if dtype.is_complex else Call(torch.transpose, value, -1, -2)


@batch_matmul_op.kernel(CPU, GPU)
@batch_matmul_v2_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.dtype(0)
    x = _adjoint(X0, dtype) if node.attributes["adj_x"] else X0
    y = _adjoint(X1, dtype) if node.attributes["adj_y"] else X1
    same, of_x, of_y = node.type == "BatchMatMul", node.static_shape(0), node.static_shape(1)
    if of_x is not None and of_y is not None:
        together = len(of_x) == 3 and len(of_y) == 3 and of_x[0] == of_y[0]
        return _call_of(torch.bmm if together else torch.matmul, x, y, dtype, env)
    call = _call_of(torch.matmul, x, y, dtype, env)

    def checked(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.ndim < 2 or y.ndim < 2 or (same and x.shape[:-2] != y.shape[:-2]):
            _refuse(x, y)
        result: torch.Tensor = call(x, y)
        return result

    return checked


def _batch_gradients(
    product: OpDeclaration, x: Tensor, y: Tensor, turned_x: bool, turned_y: bool, dz: Tensor
) -> tuple[Tensor, Tensor]:
    if not turned_x:
        dx = product(dz, y, adj_x=False, adj_y=not turned_y)
    else:
        dx = product(y, dz, adj_x=turned_y, adj_y=True)
    if not turned_y:
        dy = product(x, dz, adj_x=not turned_x, adj_y=False)
    else:
        dy = product(dz, x, adj_x=True, adj_y=turned_x)
    return dx, dy


@batch_matmul_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    return _batch_gradients(F.BatchMatMul, x, y, op.attributes["adj_x"], op.attributes["adj_y"], dz)


@batch_matmul_v2_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    dx, dy = _batch_gradients(F.BatchMatMulV2, x, y, op.attributes["adj_x"], op.attributes["adj_y"], dz)
    if x.dims is not None and y.dims is not None:
        if x.dims[:-2] == y.dims[:-2] and None not in x.dims[:-2]:
            return dx, dy
    return _sum_batches(dx, x, y), _sum_batches(dy, y, x)


def _sum_batches(dz: Tensor, x: Tensor, other: Tensor) -> Tensor:
    """The gradient of an operand whose batch dimensions were broadcast: matrices stay, batches are summed."""
    if x.dims is not None and dz.dims is not None and None not in x.dims and None not in dz.dims:
        return sum_to(dz, x)
    shape, shape_of_other = F.Shape(x), F.Shape(other)
    first, end, step = ([0], [-2], [1])
    batches = [F.StridedSlice(s, first, end, step) for s in (shape, shape_of_other)]
    return F.Reshape(F.Sum(dz, F.BroadcastGradientArgs(*batches)[0]), shape)


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
    for side, turned, adjoint in (("a", transpose_a, adjoint_a), ("b", transpose_b, adjoint_b)):
        if turned and adjoint:
            raise ValueError(f"Only one of `transpose_{side}` and `adjoint_{side}` can be True.")
    if type(a) is Tensor and type(b) is Tensor and a.ndim == 2 == b.ndim and not (adjoint_a or adjoint_b):
        return matmul_op(a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=name)
    graph = graph_of([a, b])
    with graph.as_default(), graph.name_scope(name or "MatMul") as scope:
        a = convert_to_tensor(a, name="a")
        b = b if isinstance(b, Tensor) else convert_to_tensor(b, a.dtype.base_dtype, name="b")
        if any(x.ndim is None or x.ndim > 2 for x in (a, b)):
            a, adjoint_a = _as_adjoint(a, transpose_a, adjoint_a)
            b, adjoint_b = _as_adjoint(b, transpose_b, adjoint_b)
            return batch_matmul_v2_op(a, b, adj_x=adjoint_a, adj_y=adjoint_b, name=scope)
        a = conjugate(a) if adjoint_a else a
        b = conjugate(b) if adjoint_b else b
        return matmul_op(
            a, b, transpose_a=transpose_a or adjoint_a, transpose_b=transpose_b or adjoint_b, name=scope
        )


def _as_adjoint(x: Tensor, turned: bool, adjoint: bool) -> tuple[Tensor, bool]:
    """An operand for BatchMatMul, whose adjoint is a transpose only of real numbers."""
    return (conjugate(x), True) if turned else (x, adjoint)
