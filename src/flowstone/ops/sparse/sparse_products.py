"""Products of a sparse matrix and a dense one: SparseTensorDenseMatMul, and SparseMatMul.

Floats on a host are multiplied by machine code. Without it, where the sparse elements are in the order of the
result's rows, each row is a weighted sum of rows of the dense matrix, which ATen computes in one pass
(`embedding_bag`). Others are put in that order first, or, where the dense matrix is narrow, added up one by
one. SparseMatMul takes two dense matrices of which one may hold many zeros; ATen's product of all of it is
the faster one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.declarations.work import count
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.machine_code import sparse_product
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.numbers.reductions import reduce_sum
from flowstone.ops.sparse.elements import add_at
from flowstone.ops.sparse.index_rows import check_rank, check_within, checked_parts, listed

_ADJOINTS = "adjoint_a: bool = false ; adjoint_b: bool = false"
_IN_BAGS = frozenset({torch.float32, torch.float64})
_NARROW = 4  # columns of a dense matrix below which ATen's pass costs more than it saves


sparse_tensor_dense_matmul_op = op(
    "SparseTensorDenseMatMul",
    "a_indices: Tindices, a_values: T, a_shape: int64, b: T -> product: T",
    f"Tindices: type in [int32, int64] = int64 ; {_ADJOINTS}",
    T=None,
    host=["a_shape"],
    capturable=False,
    cost=lambda node: 2.0 * count(node.inputs[1]) * ((node.outputs[0].dims or (32,))[-1] or 32),
)


@sparse_tensor_dense_matmul_op.infer
def _(node: Node) -> Shapes:
    check_rank(node.dims(0), 2)
    check_rank(node.dims(1), 1)
    check_rank(node.dims(3), 2)
    sizes, dense = node.constant_dims(2), node.dims(3)
    check_rank(sizes if sizes is None else (None,) * len(sizes), 2)
    rows, inner = sizes or (None, None)
    if node.attributes["adjoint_a"]:
        rows, inner = inner, rows
    dense_rows, columns = dense or (None, None)
    if node.attributes["adjoint_b"]:
        dense_rows, columns = columns, dense_rows
    if inner is not None and dense_rows is not None and inner != dense_rows:
        raise ValueError(f"Dimensions must be equal, but are {inner} and {dense_rows}")
    return (rows, columns)


@sparse_tensor_dense_matmul_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    adjoint_a, adjoint_b = node.attributes["adjoint_a"], node.attributes["adjoint_b"]
    is_host = env.device.type == "cpu"
    dtype, index = node.dtype(1).torch, node.dtype(0).torch
    multiply = _by_rows if is_host and dtype in _IN_BAGS else _by_elements
    by_machine_code = sparse_product(dtype, index) if is_host and dtype and index else None

    def product(
        rows: torch.Tensor, values: torch.Tensor, shape: torch.Tensor, dense: torch.Tensor
    ) -> torch.Tensor:
        sizes = checked_parts(rows, values, shape, "a_")
        _check_matrices(sizes, dense)
        dense = dense.t().conj() if adjoint_b else dense
        height, inner = reversed(sizes) if adjoint_a else sizes
        if inner != len(dense):
            raise invalid(
                f"Cannot multiply A and B because inner dimension does not match: {inner} vs. {len(dense)}.  "
                "Did you forget a transpose?  Dimensions of A and B are "
                f"{listed(sizes)}{' transposed' * adjoint_a} and {listed(dense.shape)}"
            )
        if height * dense.shape[1] * dense.element_size() >= 2**62:
            raise MemoryError(f"a product of shape {listed((height, dense.shape[1]))}")
        if by_machine_code is not None:
            found = by_machine_code(rows, values, dense, height, adjoint_a)
            if found is not None:
                return found
        check_within(rows, sizes, "a_indices")
        i, j = (rows[:, 1], rows[:, 0]) if adjoint_a else (rows[:, 0], rows[:, 1])
        return multiply(i, j, values.conj() if adjoint_a else values, dense, height)

    return product


def _check_matrices(sizes: list[int], dense: torch.Tensor) -> None:
    if len(sizes) != 2:
        raise invalid(f"Tensor 'a_shape' must have 2 elements, but is {listed(sizes)}")
    if dense.ndim != 2:
        raise invalid(f"Tensor 'b' is not a matrix: its shape is {listed(dense.shape)}")


def _by_elements(
    i: torch.Tensor, j: torch.Tensor, values: torch.Tensor, dense: torch.Tensor, height: int
) -> torch.Tensor:
    """Row j of the dense matrix times each value, added to row i of the result."""
    result = torch.zeros((height, dense.shape[1]), dtype=values.dtype, device=values.device)
    if not len(values):
        return result
    if dense.shape[1] == 1 and values.dtype in _IN_BAGS:
        return result.view(-1).index_add_(0, i.long(), dense.reshape(-1)[j.long()] * values).view(height, 1)
    wide = torch.float32 if values.dtype in (torch.float16, torch.bfloat16) else values.dtype
    terms = dense[j.long()].to(wide) * values[:, None].to(wide)
    if wide is values.dtype:
        return add_at(result, i.long(), terms)
    return result.to(wide).index_add_(0, i.long(), terms).to(values.dtype)


def _by_rows(
    i: torch.Tensor, j: torch.Tensor, values: torch.Tensor, dense: torch.Tensor, height: int
) -> torch.Tensor:
    """The same, a row of the result at a time."""
    if dense.shape[1] < _NARROW:
        return _by_elements(i, j, values, dense, height)
    if len(i) > 1 and bool((i[1:] < i[:-1]).any()):
        i, order = torch.sort(i, stable=True)
        j, values = j[order], values[order]
    if not len(i) or not dense.numel() or not height:
        return values.new_zeros((height, dense.shape[1]))
    starts = torch.searchsorted(i.contiguous(), torch.arange(height, dtype=i.dtype))
    bags: torch.Tensor = torch._embedding_bag_forward_only(
        dense.contiguous(), j.contiguous(), starts.to(j.dtype), False, 0, False, values.contiguous()
    )[0]
    return bags


@sparse_tensor_dense_matmul_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    indices, values, sizes, b = op.inputs
    adjoint_a, adjoint_b = op.attributes["adjoint_a"], op.attributes["adjoint_b"]
    db = F.SparseTensorDenseMatMul(indices, values, sizes, dy, adjoint_a=not adjoint_a)
    if adjoint_b:
        db = _adjoint(db)
    rows, columns = indices[:, 0], indices[:, 1]
    if adjoint_a:
        rows, columns = columns, rows
    ours = F.GatherV2(dy, rows, np.int32(0))
    theirs = F.GatherV2(_adjoint(b) if adjoint_b else b, columns, np.int32(0))
    if values.dtype.is_complex:
        ours, theirs = (F.Conj(ours), theirs) if adjoint_a else (ours, F.Conj(theirs))
    return None, reduce_sum(ours * theirs, 1), None, db


def _adjoint(matrix: Tensor) -> Tensor:
    transposed = F.Transpose(matrix, np.array([1, 0], np.int32), name="transpose")
    return F.Conj(transposed) if matrix.dtype.is_complex else transposed


# ---- two dense matrices

sparse_matmul_op = op(
    "SparseMatMul",
    "a: Ta, b: Tb -> product: float",
    "transpose_a: bool = false ; transpose_b: bool = false ; a_is_sparse: bool = false ; b_is_sparse: bool = "
    "false ; Ta: type in [float, bfloat16] = float ; Tb: type in [float, bfloat16] = float",
    cost=lambda node: 2.0 * count(node.inputs[0]) * ((node.outputs[0].dims or (32,))[-1] or 32),
)


@sparse_matmul_op.infer
def _(node: Node) -> Shapes:
    check_rank(node.dims(0), 2)
    check_rank(node.dims(1), 2)
    (m, k), (inner, n) = node.dims(0) or (None, None), node.dims(1) or (None, None)
    if node.attributes["transpose_a"]:
        m, k = k, m
    if node.attributes["transpose_b"]:
        inner, n = n, inner
    if k is not None and inner is not None and k != inner:
        raise ValueError(f"Dimensions must be equal, but are {k} and {inner}")
    return (m, n)


@sparse_matmul_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    transpose_a, transpose_b = node.attributes["transpose_a"], node.attributes["transpose_b"]

    def product(a: torch.Tensor, b: torch.Tensor) -> Any:
        for name, matrix in (("a", a), ("b", b)):
            if matrix.ndim != 2:
                raise invalid(f"{name} is not a matrix: its shape is {listed(matrix.shape)}")
        a, b = a.t() if transpose_a else a, b.t() if transpose_b else b
        if a.shape[1] != b.shape[0]:
            raise invalid(f"Matrix size incompatible: a: {listed(a.shape)}, b: {listed(b.shape)}")
        return torch.mm(a.float(), b.float())

    return product


@sparse_matmul_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """Products of the gradient with the other matrix, in the types of the matrices."""
    a, b = op.inputs
    t_a, t_b = op.attributes["transpose_a"], op.attributes["transpose_b"]
    is_sparse = {a: op.attributes["a_is_sparse"], b: op.attributes["b_is_sparse"], dy: False}

    def product(x: Tensor, y: Tensor, t_x: bool, t_y: bool, dtype: Any) -> Tensor:
        found = F.SparseMatMul(
            x, y, transpose_a=t_x, transpose_b=t_y, a_is_sparse=is_sparse[x], b_is_sparse=is_sparse[y]
        )
        return found if dtype is dtypes.float32 else F.Cast(found, DstT=dtype)

    da = product(b, dy, t_b, True, a.dtype) if t_a else product(dy, b, False, not t_b, a.dtype)
    db = product(dy, a, True, t_a, b.dtype) if t_b else product(a, dy, not t_a, False, b.dtype)
    return da, db
