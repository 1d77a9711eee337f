"""Rows that are picked by way of their distinct indices are picked by the indices themselves.

    ids, places = Unique(indices)
    SparseSegmentSum(GatherV2(table, ids), places, segments)      # or …Mean, …SqrtN
    GatherV2(GatherV2(table, ids), places)

become ``SparseSegmentSum(table, indices, segments)`` and ``GatherV2(table, indices)``, with the same bits.
`embedding_lookup_sparse` writes the former, to send each row once where tables are elsewhere. On a host, to
find the distinct indices takes several times as long as to read a row twice.
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.matching import Number, Op, Pattern, Rules, Surroundings, Value
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

__all__ = ["pick_rows_directly"]


class _Picked(NamedTuple):
    """What is taken of the rows of a table, by places among distinct indices."""

    table: PlanOutput
    indices: PlanOutput
    distinct: PlanNode
    listed: PlanNode
    root: PlanNode


_FIRST = Number(where=lambda axis: int(axis) == 0)
_IDS = Op("Unique", Value("indices"), node="distinct", part=0)
_PLACES = Op("Unique", Value(), node="listed", part=1)
_ROWS = Op("GatherV2", Value("table"), _IDS, _FIRST, batch_dims=0)


def _is_of_one_list(found: _Picked) -> bool:
    return found.distinct is found.listed


_SUMS = Pattern(
    Op("SparseSegmentSum|SparseSegmentMean|SparseSegmentSqrtN", _ROWS, _PLACES, Value()),
    _Picked,
    where=_is_of_one_list,
    waits=False,
)
_AGAIN = Pattern(
    Op("GatherV2", _ROWS, _PLACES, _FIRST, batch_dims=0), _Picked, where=_is_of_one_list, waits=False
)


def pick_rows_directly(subgraph: Subgraph) -> None:
    """Reads a table's rows by the indices that a program first made distinct."""
    if not any(node.type == "Unique" for node in subgraph.nodes):
        return

    def direct(found: _Picked) -> Replacement:
        node = found.root
        key = "Tindices" if node.type == "GatherV2" else "Tidx"
        attributes = {**node.attributes, key: found.indices.dtype}
        inputs = [found.table, found.indices, *node.inputs[2:]]
        new = subgraph.new_node(node.declaration, inputs, attributes, like=node)
        return Replacement([new.outputs[0]], "rows are picked without a list of distinct ones", (new,))

    around = Surroundings.of(subgraph)
    rewrite(subgraph, "pick_rows_directly", Rules(around, (_SUMS, direct), (_AGAIN, direct)))
    remove_unneeded(subgraph)
