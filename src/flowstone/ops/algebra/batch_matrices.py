"""Products of many matrices at a time: BatchMatMul, whose operands are [..., rows, columns].

The second version broadcasts the leading dimensions. An operand may be taken as its adjoint. Products of one
column and one row add up nothing: each element is one multiplication. 1,280 of 16 x 16 take 42 us so, and as
products 660. On a host, products by one column are taken transposed, as products of one row: 64 of 64 x 64
take 46 us so instead of 138, those of adjoints 16 instead of 152.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Input, Kernel
from flowstone.framework.declarations.operation import F, Gradients, ShapeFunction, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, broadcast, merge
from flowstone.ops.algebra.matrices import SIGNED_TYPES, TYPES, call_of, product_dims, refuse
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.numbers.broadcast_gradients import have_one_shape
from flowstone.ops.numbers.elementwise import sum_to

BATCH_ATTRIBUTES = "adj_x: bool = false ; adj_y: bool = false ; grad_x: bool = false ; grad_y: bool = false"
batch_matmul_op = op(
    "BatchMatMul",
    "x: T, y: T -> output: T",
    BATCH_ATTRIBUTES,
    T=SIGNED_TYPES,
    cost=work.product,
    multiplies="product",
)
batch_matmul_v2_op = op(
    "BatchMatMulV2",
    "x: T, y: T -> output: T",
    BATCH_ATTRIBUTES,
    T=(*TYPES, dtypes.int16),
    cost=work.product,
    multiplies="product",
)


def batch_shape(combine: Callable[[Dims, Dims], Dims]) -> ShapeFunction:
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
        return None if outer is None else (*outer, *product_dims((inner_x, inner_y), rows, columns))

    return infer


def _outer_sizes(node: Node, x: Dims, y: Dims) -> tuple[int | None, int | None]:
    """Rows and columns of a product of which one side's shape is not known at all."""
    rows = None if x is None else x[-1 if node.attributes["adj_x"] else -2]
    columns = None if y is None else y[-2 if node.attributes["adj_y"] else -1]
    return rows, columns


batch_matmul_op.infer(batch_shape(merge))
batch_matmul_v2_op.infer(batch_shape(broadcast))


def adjoint(value: Input, dtype: DType) -> Call:
    return Call(torch.adjoint, value) if dtype.is_complex else Call(torch.transpose, value, -1, -2)


@batch_matmul_op.kernel(CPU, GPU)
@batch_matmul_v2_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.dtype(0)
    x = adjoint(X0, dtype) if node.attributes["adj_x"] else X0
    y = adjoint(X1, dtype) if node.attributes["adj_y"] else X1
    same, of_x, of_y = node.type == "BatchMatMul", node.static_shape(0), node.static_shape(1)
    if _is_outer(node, node.dims(0), node.dims(1)):
        return call_of(torch.mul, x, y, dtype, env)
    if env.device.type == "cpu" and dtype in _FLOATS and _is_by_column(node, node.dims(0), node.dims(1)):
        by_column = _by_column(node, node.dims(0) or (), node.dims(1) or ())
        if by_column is not None:
            return by_column
    if of_x is not None and of_y is not None:
        together = len(of_x) == 3 and len(of_y) == 3 and of_x[0] == of_y[0]
        return call_of(torch.bmm if together else torch.matmul, x, y, dtype, env)
    call = call_of(torch.matmul, x, y, dtype, env)

    def checked(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.ndim < 2 or y.ndim < 2 or (same and x.shape[:-2] != y.shape[:-2]):
            refuse(x, y)
        result: torch.Tensor = call(x, y)
        return result

    return checked


def _is_outer(node: Node, x: Dims, y: Dims) -> bool:
    """Whether columns are multiplied by rows, as many of these as of those unless the op broadcasts."""
    if x is None or y is None:
        return False
    if node.type == "BatchMatMul" and (x[:-2] != y[:-2] or None in x[:-2]):
        return False
    return x[-2 if node.attributes["adj_x"] else -1] == 1 == y[-1 if node.attributes["adj_y"] else -2]


def _is_by_column(node: Node, x: Dims, y: Dims) -> bool:
    """Whether matrices are multiplied by one column each, of as many as there are matrices unless the op
    broadcasts."""
    if x is None or y is None or (node.type == "BatchMatMul" and (x[:-2] != y[:-2] or None in x[:-2])):
        return False
    rows = x[-1 if node.attributes["adj_x"] else -2]
    return rows != 1 == y[-2 if node.attributes["adj_y"] else -1]


def _by_column(node: Node, x: tuple[int | None, ...], y: tuple[int | None, ...]) -> Kernel | None:
    """The product of what is multiplied by columns; None where the product as it is is as fast."""
    is_adjoint, is_row = node.attributes["adj_x"], node.attributes["adj_y"]
    terms, results = (x[-2], x[-1]) if is_adjoint else (x[-1], x[-2])
    if terms is None or results is None or y[-1 if is_row else -2] != terms:
        return None
    if terms * results <= _LOOPED:
        return None
    row = X1 if is_row else Call(torch.transpose, X1, -1, -2)
    together = len(x) == 3 and len(y) == 3 and x[0] is not None and x[0] == y[0]
    if is_adjoint:
        return Call(torch.transpose, Call(torch.bmm if together else torch.matmul, row, X0), -1, -2)
    if not together:  # matrices that are not in order are copied, which takes longer transposed
        return None
    rows = Call(torch.transpose, X0, -1, -2)
    return Call(torch.transpose, Call(torch.bmm, row, rows), -1, -2)


_FLOATS = (dtypes.float32, dtypes.float64)
_LOOPED = 400  # elements of a matrix, up to which ATen's products are loops over them


def batch_gradients(
    product: Callable[..., Tensor], x: Tensor, y: Tensor, transposed_x: bool, transposed_y: bool, dz: Tensor
) -> tuple[Tensor, Tensor]:
    if not transposed_x:
        dx = product(dz, y, adj_x=False, adj_y=not transposed_y, name="MatMul")
    else:
        dx = product(y, dz, adj_x=transposed_y, adj_y=True, name="MatMul")
    if not transposed_y:
        dy = product(x, dz, adj_x=not transposed_x, adj_y=False, name="MatMul")
    else:
        dy = product(dz, x, adj_x=True, adj_y=transposed_x, name="MatMul")
    return dx, dy


@batch_matmul_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    return batch_gradients(F.BatchMatMul, x, y, op.attributes["adj_x"], op.attributes["adj_y"], dz)


@batch_matmul_v2_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    x, y = op.inputs
    dx, dy = batch_gradients(F.BatchMatMulV2, x, y, op.attributes["adj_x"], op.attributes["adj_y"], dz)
    return (dx, dy) if have_one_shape(x, y) else batch_sums(dx, dy, x, y)


def batch_sums(dx: Tensor, dy: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of matrices whose batches were broadcast with each other, summed to theirs."""
    shapes = shape_of(x), shape_of(y)
    axes = F.BroadcastGradientArgs(*[each[:-2] for each in shapes])
    dx, dy = (F.Reshape(F.Sum(dz, over), each) for dz, over, each in zip((dx, dy), axes, shapes))
    return dx, dy


def sum_batches(dz: Tensor, x: Tensor, other: Tensor) -> Tensor:
    """The gradient of an operand whose batch dimensions were broadcast: matrices stay, batches are summed."""
    if x.dims is not None and dz.dims is not None and None not in x.dims and None not in dz.dims:
        return sum_to(dz, x)
    shape, shape_of_other = F.Shape(x), F.Shape(other)
    first, end, step = ([0], [-2], [1])
    batches = [F.StridedSlice(s, first, end, step) for s in (shape, shape_of_other)]
    return F.Reshape(F.Sum(dz, F.BroadcastGradientArgs(*batches)[0]), shape)
