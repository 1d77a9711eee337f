"""A step of a gated recurrent unit as one op, and the op of its gradients (Cho et al., 2014).

Inputs are x [batch, inputs], the state before [batch, cells], and weights with biases of the gates, `w_ru`
[inputs + cells, 2 cells], and of the new state, `w_c` [inputs + cells, cells]:

    r, u = sigmoid([x, h_prev] w_ru + b_ru)     c = tanh([x, r h_prev] w_c + b_c)     h = u h_prev + (1 - u) c
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid, unless_known
from flowstone.ops.networks.windows import require_rank

_INPUTS = "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T"


def _cost(node: Node) -> float:
    rows = work.element_count((node.dims(0) or (None,))[:1])
    weights = work.count(node.inputs[2]) + work.count(node.inputs[3])
    return 2.0 * rows * weights


cell_op = op("GRUBlockCell", f"{_INPUTS} -> r: T, u: T, c: T, h: T", T=(dtypes.float32,), cost=_cost)
cell_grad_op = op(
    "GRUBlockCellGrad",
    f"{_INPUTS}, r: T, u: T, c: T, d_h: T -> d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T",
    T=(dtypes.float32,),
    cost=_cost,
)


_through_sigmoid = torch.ops.aten.sigmoid_backward.default  # of a gradient and the result
_through_tanh = torch.ops.aten.tanh_backward.default


def _check(x: Any, h: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any, *gates: Any) -> None:
    if x.dim() != 2 or h.dim() != 2 or len(x) != len(h):
        raise invalid(f"x and h_prev must be matrices of as many rows: {list(x.shape)}, {list(h.shape)}")
    rows, cells = x.shape[1] + h.shape[1], h.shape[1]
    found = [list(each.shape) for each in (w_ru, w_c, b_ru, b_c)]
    if found != [[rows, 2 * cells], [rows, cells], [2 * cells], [cells]]:
        raise invalid(
            f"w_ru, w_c, b_ru and b_c do not fit inputs and cells, {rows - cells}, {cells}: {found}"
        )
    if any(each.shape != h.shape for each in gates):
        raise invalid(f"gates and the gradient must be {list(h.shape)}")


@cell_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    check = unless_known(node, _check)

    def run(x: Any, h: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any) -> list[torch.Tensor]:
        check(x, h, w_ru, w_c, b_ru, b_c)
        r, u = torch.sigmoid(torch.addmm(b_ru, torch.cat([x, h], 1), w_ru)).chunk(2, 1)
        c = torch.tanh(torch.addmm(b_c, torch.cat([x, r * h], 1), w_c))
        return [r.contiguous(), u.contiguous(), c, torch.lerp(c, h, u)]

    return run


@cell_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    check = unless_known(node, _check)

    def run(
        x: Any, h: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any, r: Any, u: Any, c: Any, dh: Any
    ) -> list[torch.Tensor]:
        check(x, h, w_ru, w_c, b_ru, b_c, r, u, c, dh)
        sizes = x.shape[1], h.shape[1]
        kept = dh * u
        dc = _through_tanh(dh - kept, c)
        du = _through_sigmoid(dh * (h - c), u)
        by_new, gated = torch.mm(dc, w_c.t()).split(sizes, 1)
        dru = torch.cat([_through_sigmoid(gated * h, r), du], 1)
        by_gates, dh_prev = torch.mm(dru, w_ru.t()).split(sizes, 1)
        return [by_new + by_gates, kept.add_(dh_prev).addcmul_(gated, r), dc, dru]

    return run


@cell_op.infer
def _(node: Node) -> Shapes:
    x, h = require_rank(node.dims(0), 2), require_rank(node.dims(1), 2)
    return [(x[0], h[1])] * 4


@cell_grad_op.infer
def _(node: Node) -> Shapes:
    x, h = require_rank(node.dims(0), 2), require_rank(node.dims(1), 2)
    cells, (both,) = h[1], require_rank(node.dims(4), 1)
    return [x, (x[0], cells), (x[0], cells), (x[0], both if cells is None else 2 * cells)]


@cell_op.gradient
def _(op: Operation, *dys: Tensor) -> Gradients:
    x, h, *_ = op.inputs
    r, u, c, _ = op.outputs
    dx, dh, dc, dru = F.GRUBlockCellGrad.several(*op.inputs, r, u, c, dys[3])
    dw_ru = F.MatMul(F.ConcatV2([x, h], 1), dru, transpose_a=True)
    dw_c = F.MatMul(F.ConcatV2([x, F.Mul(h, r)], 1), dc, transpose_a=True)
    return dx, dh, dw_ru, dw_c, F.BiasAddGrad(dru), F.BiasAddGrad(dc)


cell_grad_op.no_gradient()
