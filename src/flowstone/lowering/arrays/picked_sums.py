"""Rows that are picked to be added up by numbers in any order are added up where they are.

    UnsortedSegmentSum(GatherV2(params, indices, 0), ids, count)          # messages along a graph's edges
    UnsortedSegmentSum(_PresentRows(params, indices), ids, count)         # their gradient

become ``_PickedSum(params, indices, ids, count)``, with the same bits: the rows are read once, and written
nowhere in between. A step whose numbers are wrong is run node by node, and fails as it does without the pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.kernel import CPU
from flowstone.framework.declarations.operation import op
from flowstone.framework.declarations.work import first_output
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.node import Node, Output, PlanData
from flowstone.lowering.arrays.present_rows import pick_rows
from flowstone.native.arrays.segment_sums import picked_sums
from flowstone.rewriting.matching import Either, Number, Op, Pattern, Rules, Surroundings, Value
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

__all__ = ["sum_picked_rows"]

picked_sum_op = op(
    "_PickedSum",
    "params: T, indices: Tidx, ids: Tids, count: Tcount[] -> sums: T",
    "T: type ; Tidx: type in [int32, int64] ; Tids: type in [int32, int64] ; Tcount: type in [int32, int64]",
    host=["count"],
    capturable=False,
    rows=first_output,
)
picked_sum_op.not_differentiable()


class _Parts(PlanData):
    """The nodes that the sum stands for: what picks the rows, and what adds them up."""

    __slots__ = ("picks", "sums")

    def __init__(self, picks: PlanNode, sums: PlanNode) -> None:
        self.picks, self.sums = picks, sums


class _Found(NamedTuple):
    """Picked rows and what adds them up, the root."""

    params: PlanOutput
    indices: PlanOutput
    ids: PlanOutput
    size: PlanOutput
    picks: PlanNode
    root: PlanNode


_FIRST = Number(where=lambda axis: int(axis) == 0)
_ROWS = Either(
    Op("GatherV2", Value("params"), Value("indices"), _FIRST, batch_dims=0, node="picks", alone=True),
    Op("_PresentRows", Value("params"), Value("indices"), node="picks", alone=True),
)
_SUM = Pattern(Op("UnsortedSegmentSum", _ROWS, Value("ids"), Value("size")), _Found, waits=False)


@picked_sum_op.infer
def _(node: Node) -> Any:
    parts: _Parts = node.attributes["parts"]
    return parts.sums.outputs[0].dims


@picked_sum_op.kernel(CPU)
def _(node: Node, env: Any) -> Any:
    parts: _Parts = node.attributes["parts"]
    native = picked_sums(_types(node.inputs), parts.picks.type == "_PresentRows")
    add_up: Any = parts.sums.declaration.kernels[CPU](parts.sums, env)

    def run(params: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, count: Any) -> Any:
        if native is not None and indices.shape == ids.shape and indices.numel() and int(count) > 0:
            found = native(params, indices, ids, int(count))
            if found is not None:
                return found
        try:
            rows = pick_rows(parts.picks.type == "_PresentRows", params, indices)
        except Exception as error:
            error.failed_node = parts.picks, [params, indices]  # type: ignore[attr-defined]
            raise
        try:
            return add_up(rows, ids, count)
        except Exception as error:
            error.failed_node = parts.sums, [rows, ids, count]  # type: ignore[attr-defined]
            raise

    return run


def _types(inputs: Sequence[Output]) -> tuple[torch.dtype | None, ...]:
    return tuple([inputs[i].dtype.base_dtype.torch for i in (0, 2, 1)])


def sum_picked_rows(subgraph: Subgraph) -> None:
    """Adds up picked rows where they are."""
    if not any(node.type == "UnsortedSegmentSum" for node in subgraph.nodes):
        return

    def summed(found: _Found) -> Replacement | None:
        values = found.params, found.indices, found.ids
        if picked_sums(_types(values), False) is None or found.indices.dims is None or not found.params.dims:
            return None
        dtypes = [x.dtype.base_dtype for x in (*values, found.size)]
        attributes: dict[str, Any] = dict(zip(("T", "Tidx", "Tids", "Tcount"), dtypes))
        attributes["parts"] = _Parts(found.picks, found.root)
        new = subgraph.new_node(picked_sum_op, [*values, found.size], attributes, found.root)
        return Replacement([new.outputs[0]], "adds up rows where they are", (new,))

    rewrite(subgraph, "sum_picked_rows", Rules(Surroundings.of(subgraph), (_SUM, summed)))
    remove_unneeded(subgraph)
