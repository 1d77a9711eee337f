"""Rows that are picked by numbers of which negative ones stand for no row: a gradient of unsorted segments.

    rows = GatherV2(params, Maximum(ids, 0), 0)
    present = LogicalAnd(ExpandDims(GreaterEqual(ids, 0)), true)      # or Reshape
    Select(present, rows, ZerosLike(rows))

becomes ``_PresentRows(params, ids)``, with the same bits. As a rule no number is negative, and that is one
look at the numbers and one pass over the rows, instead of masks as large as these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, X0, X1, Call
from flowstone.framework.declarations.operation import op, registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.node import Node
from flowstone.rewriting.matching import Either, Number, Op, Pattern, Rules, Surroundings, Through, Value
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

__all__ = ["pick_present_rows", "pick_rows"]

present_rows_op = op(
    "_PresentRows", "params: T, ids: Tids -> rows: T", "T: type ; Tids: type in [int32, int64]"
)
present_rows_op.not_differentiable()


@present_rows_op.infer
def _(node: Node) -> Any:
    params, ids = node.dims(0), node.dims(1)
    return None if params is None or ids is None else (*ids, *params[1:])


@present_rows_op.kernel(CPU)
def _(node: Node, env: Any) -> Any:
    return Call(_present_rows, X0, X1)


def pick_rows(with_absent: bool, params: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """The rows of the indices; zeros for negative ones if there may be such."""
    if with_absent:
        return _present_rows(params, indices)
    rows = torch.index_select(params, 0, indices.reshape(-1))
    return rows.reshape([*indices.shape, *params.shape[1:]])


def _present_rows(params: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """The rows; zeros where a number is negative."""
    flat = ids.reshape(-1)
    absent = None
    if flat.numel() and int(flat.amin()) < 0:
        absent = (flat < 0).nonzero().squeeze(1)
        flat = flat.clamp(min=0)
    rows = torch.index_select(params, 0, flat)
    if absent is not None:
        rows.index_fill_(0, absent, 0)
    return rows.reshape([*ids.shape, *params.shape[1:]])


class _Chosen(NamedTuple):
    """What picks the rows."""

    params: PlanOutput
    ids: PlanOutput
    root: PlanNode


def _is_true(x: PlanOutput) -> bool:
    return x.op.type == "Fill" and bool(np.all(x.op.constant(1)))


def _is_zero(value: Any) -> bool:
    """Whether all bits are zero."""
    return value.size > 0 and not any(value.tobytes())


_ZERO = Either(Op("ZerosLike", Value()), Number(where=_is_zero))
_ROWS = Op(
    "GatherV2",
    Value("params"),
    Op("Maximum", Value("ids"), _ZERO),
    Number(where=lambda axis: int(axis) == 0),
    batch_dims=0,
)
_COMPARED = Through("Reshape|ExpandDims", Op("GreaterEqual", Value("ids"), _ZERO))
_TRUE = Either(Value(where=_is_true), Number(where=lambda x: bool(x.all())))
_PRESENT = Either(Op("LogicalAnd", _COMPARED, _TRUE), _COMPARED)
_CHOICE = Pattern(Op("Select", _PRESENT, _ROWS, _ZERO), _Chosen, waits=False)


def pick_present_rows(subgraph: Subgraph) -> None:
    """Picks the rows of numbers that are not negative without masks."""
    if not any(node.type == "Select" for node in subgraph.nodes):
        return

    def picked(found: _Chosen) -> Replacement | None:
        root = found.root
        ids, dims = found.ids, root.outputs[0].dims
        if ids.dtype.base_dtype.name not in ("int32", "int64") or root.inputs[1].dims != dims:
            return None
        if root.inputs[0].dims != dims or found.params.dtype.base_dtype.torch is None:
            return None
        attributes = {"T": found.params.dtype.base_dtype, "Tids": ids.dtype.base_dtype}
        new = subgraph.new_node(registry["_PresentRows"], [found.params, ids], attributes, root)
        return Replacement([new.outputs[0]], "picks rows that are present without a mask", (new,))

    around = Surroundings.of(subgraph)
    rewrite(subgraph, "pick_present_rows", Rules(around, (_CHOICE, picked)))
    remove_unneeded(subgraph)
