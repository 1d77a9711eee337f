"""Accidental hits: what a sampled loss adds to the logits of candidates that are true classes, in one kernel.

``remove_accidental_hits`` finds the places of the hits, and makes a matrix of them that is zero elsewhere and
that is added to the logits:

    rows, places, weights = ComputeAccidentalHits(true, sampled)
    x + SparseToDense([rows, places], shape, weights, 0)

How many hits there are, only the step knows. Here the true classes are compared with the candidates, and the
logits get the weight where they are equal.
"""

from __future__ import annotations

from flowstone.framework import dtypes
from flowstone.framework.operation import registry
from flowstone.framework.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

_ADDITIONS = ("Add", "AddV2")


def mask_accidental_hits(subgraph: Subgraph) -> None:
    """Adds the hits' weights without making a list of the hits."""
    if not any(node.type == "ComputeAccidentalHits" for node in subgraph.nodes):
        return

    def rule(node: PlanNode) -> Replacement | None:
        if node.type not in _ADDITIONS:
            return None
        for x, dense in (node.inputs, node.inputs[::-1]):
            hits = _hits(dense)
            if hits is None or x.dims is None or x.dims != dense.dims:
                continue
            true, sampled = hits.inputs
            if (true.dims, sampled.dims) != ((x.dims[0], hits.attributes["num_true"]), x.dims[1:]):
                continue
            attributes = {"T": x.dtype.base_dtype}
            new = subgraph.new_node(registry["_MaskAccidentalHits"], [x, true, sampled], attributes, node)
            return Replacement([new.outputs[0]], "compares classes instead of listing hits", (new,))
        return None

    rewrite(subgraph, "mask_accidental_hits", rule)
    remove_unneeded(subgraph)


def _hits(dense: PlanOutput) -> PlanNode | None:
    """The node that finds the hits of which `dense` has the weights, and zeros elsewhere."""
    node: PlanNode = dense.op
    if node.type != "SparseToDense" or node.control_inputs or dense.dtype.base_dtype is not dtypes.float32:
        return None
    if node.attributes["validate_indices"]:
        return None  # which may fail: hits have no order
    default, weights, indices = node.constant(3), node.inputs[2], node.inputs[0].op
    hits: PlanNode = weights.op
    if default is None or default != 0 or hits.type != "ComputeAccidentalHits" or weights.value_index != 2:
        return None
    if indices.type != "ConcatV2" or len(indices.inputs) != 3 or hits.control_inputs:
        return None
    axis = indices.constant(2)
    columns = [_source(x, hits) for x in indices.inputs[:2]]
    return hits if axis is not None and axis in (1, -1) and columns == hits.outputs[:2] else None


def _source(column: PlanOutput, hits: PlanNode) -> PlanOutput | None:
    """The output of `hits` that `column` shows as a column."""
    x, is_column = column, False
    while x.op is not hits:
        if x.op.type not in ("Reshape", "ExpandDims", "Cast") or x.op.control_inputs:
            return None
        if x.dtype not in (dtypes.int32, dtypes.int64):
            return None  # which may not hold the place
        is_column = is_column or (x.dims is not None and len(x.dims) == 2 and x.dims[1] == 1)
        x = x.op.inputs[0]
    return x if is_column and column.dims is not None and column.dims[1:] == (1,) else None
