"""Accidental hits: what a sampled loss adds to the logits of candidates that are true classes, in one kernel.

``remove_accidental_hits`` finds the places of the hits, and makes a matrix of them that is zero elsewhere and
that is added to the logits:

    rows, places, weights = ComputeAccidentalHits(true, sampled)
    x + SparseToDense([rows, places], shape, weights, 0)

How many hits there are, only the step knows. Here the true classes are compared with the candidates, and the
logits get the weight where they are equal.
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.matching import Number, Op, Pattern, Rules, Surroundings, Through, Value
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite


class _Masked(NamedTuple):
    """Logits and what is added to them where sampled classes are true ones."""

    logits: PlanOutput
    dense: PlanOutput
    true: PlanOutput
    sampled: PlanOutput
    hits: PlanNode
    root: PlanNode


def _hits(part: int) -> Op:
    return Op("ComputeAccidentalHits", Value("true"), Value("sampled"), node="hits", part=part, waits=False)


def _column(part: int) -> Through:
    """Places as a column, in a type that holds them."""
    return Through("Reshape|ExpandDims|Cast", _hits(part), lambda x: x.dtype in (dtypes.int32, dtypes.int64))


def _joins_columns(node: PlanNode) -> bool:
    return all(x.dims is not None and len(x.dims) == 2 and x.dims[1] == 1 for x in node.inputs[:2])


_PLACES = Op(
    "ConcatV2", _column(0), _column(1), Number(where=lambda axis: axis in (1, -1)), where=_joins_columns
)
_DENSE = Op(
    "SparseToDense",
    _PLACES,
    Value(),
    _hits(2),
    Number(where=lambda default: default == 0),
    name="dense",
    waits=False,
    validate_indices=False,  # which may fail: hits have no order
    where=lambda node: node.outputs[0].dtype.base_dtype is dtypes.float32,
)


def _fit(found: _Masked) -> bool:
    """Whether there is a row for each example and a column for each candidate."""
    dims = found.logits.dims
    if dims is None or dims != found.dense.dims:
        return False
    return (found.true.dims, found.sampled.dims) == ((dims[0], found.hits.attributes["num_true"]), dims[1:])


_MASKED = Pattern(Op("Add|AddV2", Value("logits"), _DENSE), _Masked, _fit)


def mask_accidental_hits(subgraph: Subgraph) -> None:
    """Adds the weights of hits to the logits without listing the hits."""
    if not any(node.type == "ComputeAccidentalHits" for node in subgraph.nodes):
        return

    def masked(found: _Masked) -> Replacement:
        x = found.logits
        inputs, attributes = [x, found.true, found.sampled], {"T": x.dtype.base_dtype}
        new = subgraph.new_node(registry["_MaskAccidentalHits"], inputs, attributes, found.root)
        return Replacement([new.outputs[0]], "compares classes instead of listing hits", (new,))

    rewrite(subgraph, "mask_accidental_hits", Rules(Surroundings({}), (_MASKED, masked)))
    remove_unneeded(subgraph)
