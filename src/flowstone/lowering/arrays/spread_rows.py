"""Gradients of sums over rows of sparse tensors: for each element that of its row.

    GatherV2(Select(Tile(Reshape(empty, [-1, 1])), 0, dy), rows, 0)

becomes ``_SpreadRows(dy, rows, empty)``, where `empty` and `rows` are of one `_KeptRows` (`filled_rows.py`).
Updates that sum the rows of equal indices take those of means (``SparseSegmentMeanGrad``) so, too: see
`spread_node`, which `lowering/updates/row_updates.py` asks for. Results have the same bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.framework.declarations.operation import op, registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import array_code
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.lowering.arrays.filled_rows import choice_of_empty_rows, is_by_rows, is_zero, kept_rows
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.numbers.segment_reductions import check_sorted
from flowstone.ops.sparse.sparse_segment_reductions import segment_scale
from flowstone.rewriting.matching import Either, Number, Op, Pattern, Rules, Surroundings, Value
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

__all__ = ["HOW", "spread_kept_rows", "spread_node"]

HOW = {"SparseSegmentMeanGrad": "mean", "SparseSegmentSqrtNGrad": "sqrtn"}
"""What ops divide the rows by: sizes of segments, or their roots."""

spread_rows_op = op(
    "_SpreadRows",
    "dy: T, rows: Tids, empty: N*bool -> spread: T",
    "T: type in [float32, float64] ; Tids: type in [int32, int64] ; reduction: string ; N: int >= 0",
    capturable=False,
)
spread_rows_op.not_differentiable()


@spread_rows_op.infer
def _(node: Node) -> Any:
    dy, rows = node.dims(0), node.dims(1)
    return None if dy is None else (None if rows is None else rows[0], *dy[1:])


@spread_rows_op.kernel(CPU, GPU)
def _(node: Node, env: Any) -> Any:
    on_host = env.device.type == "cpu"
    how, types = node.attributes["reduction"], (node.dtype(0).torch, node.dtype(1).torch)

    def spread(dy: torch.Tensor, rows: torch.Tensor, *empty: torch.Tensor) -> torch.Tensor:
        code = array_code.spread_rows(how, *types) if on_host else None
        found = code(dy, rows, *empty) if code and dy.ndim and rows.ndim == 1 else None
        return _spread(how, dy, rows, *empty) if found is None else found

    return spread


def _spread(how: str, dy: torch.Tensor, rows: torch.Tensor, *empty: torch.Tensor) -> torch.Tensor:
    """The same by ATen. InvalidArgumentError for rows that there are not, or that are not in order."""
    count = check_sorted(rows)
    if count > len(dy):
        raise invalid("segment_ids and indices should have same size, and ids a row of the gradient.")
    found = dy.index_select(0, rows)
    if how != "sum":
        found *= segment_scale(how, dy, rows, len(dy)).index_select(0, rows)
    for each in empty:
        found[each.index_select(0, rows)] = 0
    return found


# ---- the pass


class _Spread(NamedTuple):
    """The gradient of sums over filled rows, and the rows of the elements."""

    dy: PlanOutput
    empty: PlanOutput
    rows: PlanOutput
    filled: PlanNode
    root: PlanNode


_FIRST = Number(where=lambda axis: int(axis) == 0)
_ZERO = Either(Op("ZerosLike", Value()), Number(where=is_zero))
_FLOW = Op("Select", choice_of_empty_rows, _ZERO, Value("dy"))
_GATHERED = Pattern(Op("GatherV2", _FLOW, kept_rows("rows", 3), _FIRST, batch_dims=0), _Spread, waits=False)


class _Masked(NamedTuple):
    """A gradient with zeros for rows that were empty."""

    dy: PlanOutput
    empty: PlanOutput
    filled: PlanNode
    root: PlanNode


_MASKED = Pattern(_FLOW, _Masked, waits=False)


def spread_kept_rows(subgraph: Subgraph) -> None:
    """Replaces gathers from the gradients of sums with zeros for empty rows."""
    if not any(node.type == "_KeptRows" for node in subgraph.nodes):
        return

    def spread(found: _Spread) -> Replacement | None:
        if found.dy.dtype.base_dtype not in (dtypes.float32, dtypes.float64):
            return None
        if not is_by_rows(found.root.inputs[0].op):
            return None
        new = _node(subgraph, "sum", [found.dy, found.rows, found.empty], found.root)
        return Replacement([new.outputs[0]], "the gradients of rows that were not empty", (new,))

    rewrite(subgraph, "spread_kept_rows", Rules(Surroundings.of(subgraph), (_GATHERED, spread)))
    remove_unneeded(subgraph)


def spread_node(subgraph: Subgraph, how: str, dy: PlanOutput, rows: PlanOutput, like: PlanNode) -> PlanNode:
    """A new node for the rows of `dy` that elements get, scaled as `how` says."""
    masked = _MASKED.match(dy.op)
    if masked is not None and masked.filled.outputs[3] is rows and is_by_rows(dy.op):
        return _node(subgraph, how, [masked.dy, rows, masked.empty], like)
    return _node(subgraph, how, [dy, rows], like)


def _node(subgraph: Subgraph, how: str, inputs: list[PlanOutput], like: PlanNode) -> PlanNode:
    more = len(inputs) - 2
    types = {"T": inputs[0].dtype.base_dtype, "Tids": inputs[1].dtype.base_dtype}
    attributes = {**types, "reduction": how, "N": more}
    return subgraph.new_node(registry["_SpreadRows"], inputs, attributes, like=like, group_sizes=(1, 1, more))
