"""Updates of rows: sums repeated rows where they are applied, and adds negated rows.

`sum_repeated_rows`: an optimiser sums the rows of each index before its update of rows:

    ids, places = Unique(indices)
    SparseApplyX(var, …, UnsortedSegmentSum(rows, places, Shape(ids)[0]), ids)

(or the number of rows that are gathered by `ids`, as `embedding_lookup_sparse` has it)

becomes ``SparseApplyX(var, …, rows, indices) sum_repeated=True``, whose kernel (`ops/variables/row_steps.py`)
needs no list of the distinct indices: a half to a fifth of the time (docs/design/024-updates-by-calls.md).
``SparseSegmentMeanGrad(dy, places, segments, …)`` in place of the sum is one of ``_SpreadRows``.

`add_negated_rows`: to subtract rows from a variable is to add their negatives.

    ScatterSub(var, indices, Mul(x, c))   becomes   ScatterAdd(var, indices, Mul(x, -c))
    ScatterSub(var, indices, x)           becomes   ScatterAdd(var, indices, Neg(x))

The bits are the same. ATen adds rows as they are in two thirds of the time that it takes to scale them first,
and the gradient that nobody else takes is negated where it lies.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.lowering.arrays.spread_rows import HOW, spread_node
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.matching import Either, Number, Op, Pattern, Through, Value
from flowstone.rewriting.patterns import remove_unneeded, substitute

_APPLYING = ("SparseApply", "ResourceSparseApply")
_ADDING = {"ScatterSub": "ScatterAdd", "ResourceScatterSub": "ResourceScatterAdd"}


def sum_repeated_rows(subgraph: Subgraph) -> None:
    """Has updates of rows sum repeated rows themselves."""
    while _sum_in_updates(subgraph):  # rows that were summed twice, by a gradient and an optimiser
        pass


def _sum_in_updates(subgraph: Subgraph) -> bool:
    """Whether some updates now take the rows that were summed for them."""
    updates = [node for node in subgraph.nodes if node.type.startswith(_APPLYING)]
    if not updates:
        return False
    consumers = subgraph.consumers()
    liveness = subgraph.analysis(Liveness)
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for node in updates:
        at = [argument.name for argument in node.declaration.inputs].index("indices")
        gradient, indices = node.inputs[at - 1 : at + 1]
        found = repeated_rows(subgraph, gradient, indices) if consumers[gradient] == [node] else None
        if found is None or any(liveness.node(each) != liveness.node(node) for each in found.replaced):
            continue
        inputs = [*node.inputs[: at - 1], found.rows, found.indices, *node.inputs[at + 1 :]]
        attributes = {**node.attributes, "Tindices": found.indices.dtype, "sum_repeated": True}
        new = subgraph.new_node(node.declaration, inputs, attributes, like=node)
        new.control_inputs = found.waits(node)
        places[node] = [*found.made, new]
        replaced.update(zip(node.outputs, new.outputs))
    if not places:
        return False
    substitute(subgraph, places, replaced)
    present = set(subgraph.nodes)
    changed = [node for node, new in places.items() if new[-1] in present]  # not what admission refused
    for node in changed:
        subgraph.log.append(("sum_repeated_rows", node.name, "sums the rows of equal indices"))
    if changed:
        remove_unneeded(subgraph)
    return bool(changed)


class _Summed(NamedTuple):
    """Rows that are summed where their indices, which may be `repeated`, are equal."""

    rows: PlanOutput
    indices: PlanOutput
    repeated: PlanOutput
    distinct: PlanNode
    root: PlanNode


class _Scaled(NamedTuple):
    """Rows of segments, over their sizes, that are summed where indices are equal."""

    dy: PlanOutput
    segments: PlanOutput
    indices: PlanOutput
    repeated: PlanOutput
    distinct: PlanNode
    root: PlanNode


_FIRST = Number(where=lambda axis: int(axis) == 0)
_LENGTH = Either(
    Op(
        "StridedSlice",
        Op("Shape", Value("indices")),
        Number(where=lambda begin: begin.tolist() == [0]),
        Value(),
        Value(),
        shrink_axis_mask=1,
    ),
    Op(
        "StridedSlice",
        Through("Cast", Op("Shape", Op("GatherV2", Value(), Value("indices"), _FIRST, batch_dims=0))),
        Number(where=lambda begin: begin.tolist() == [0]),
        Value(),
        Value(),
        shrink_axis_mask=1,
    ),
    Op("GatherV2", Op("Shape", Op("GatherV2", Value(), Value("indices"), _FIRST)), _FIRST, Value()),
    Op("GatherV2", Op("Shape", Op("ResourceGather", Value(), Value("indices"))), _FIRST, Value()),
    Op("Size", Value("indices")),
)
_PLACES = Op("Unique", Value("repeated"), node="distinct", part=1)
SUMMED = Pattern(
    Op("UnsortedSegmentSum", Value("rows"), _PLACES, _LENGTH),
    _Summed,
    lambda found: found.indices is found.distinct.outputs[0],
)


_SCALED = Pattern(
    Op("|".join(HOW), Value("dy"), _PLACES, Value("segments"), _LENGTH),
    _Scaled,
    lambda found: found.indices is found.distinct.outputs[0],
)


class RepeatedRows(NamedTuple):
    """Rows that are to be summed where their indices are equal, the new nodes that make them, and the nodes
    that found the distinct indices and the sums."""

    rows: PlanOutput
    indices: PlanOutput
    made: list[PlanNode]
    replaced: tuple[PlanNode, PlanNode]

    def waits(self, node: PlanNode) -> list[PlanNode]:
        """What an update in place of `node`, and of what is replaced, waits for."""
        return list(dict.fromkeys(itertools.chain(*[x.control_inputs for x in (*self.replaced, node)])))


def repeated_rows(subgraph: Subgraph, sums: PlanOutput, indices: PlanOutput) -> RepeatedRows | None:
    """Of which rows these are the sums, where the indices are the distinct ones; None if they are no sums."""
    summed = SUMMED.match(sums.op, indices=indices)
    if summed is not None:
        return RepeatedRows(summed.rows, summed.repeated, [], (summed.distinct, summed.root))
    scaled = _SCALED.match(sums.op, indices=indices)
    if scaled is None:
        return None
    total = scaled.root
    spread = spread_node(subgraph, HOW[total.type], scaled.dy, scaled.segments, like=total)
    return RepeatedRows(spread.outputs[0], scaled.repeated, [spread], (scaled.distinct, total))


def add_negated_rows(subgraph: Subgraph) -> None:
    """Replaces scatters that subtract rows by scatters that add the negated rows."""
    scatters = [node for node in subgraph.nodes if node.type in _ADDING]
    if not scatters:
        return
    consumers = subgraph.consumers()
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for node in scatters:
        rows = node.inputs[2]
        if rows.dtype not in (dtypes.float32, dtypes.float64) or len(rows.dims or ()) < 2:
            continue
        if consumers[rows] != [node] or rows in subgraph.fetches or not _is_computed(rows.op):
            continue
        added = _negated(subgraph, rows)
        inputs = [*node.inputs[:2], added[-1].outputs[0]]
        new = subgraph.new_node(registry[_ADDING[node.type]], inputs, node.attributes, like=node)
        new.control_inputs = list(node.control_inputs)
        places[node] = [*added, new]
        replaced.update(zip(node.outputs, new.outputs))
        subgraph.log.append(("add_negated_rows", node.name, "adds the negatives of its rows"))
    if places:
        substitute(subgraph, places, replaced)
        remove_unneeded(subgraph)


def _is_computed(node: PlanNode) -> bool:
    """Whether the step made this tensor for itself."""
    return node.declaration.is_pure and bool(node.inputs) and not node.declaration.aliases


def _negated(subgraph: Subgraph, rows: PlanOutput) -> list[PlanNode]:
    """Nodes of which the last makes the negatives of `rows`."""
    node: PlanNode = rows.op
    if node.type == "Mul" and not node.control_inputs:
        for i in (0, 1):
            factor: Any = node.constant(i)
            if factor is not None and node.inputs[i].dims == ():
                negative = subgraph.new_constant(np.asarray(-factor), node, "negative")
                inputs: list[PlanOutput] = list(node.inputs)
                inputs[i] = negative.outputs[0]
                return [negative, subgraph.new_node(node.declaration, inputs, node.attributes, like=node)]
    return [subgraph.new_node(registry["Neg"], [rows], {"T": rows.dtype}, like=node)]
