"""Shapes that a program claims by `Tensor.set_shape`, and plans.

TensorFlow believes a claim while a graph is built and never looks at it in a step, which computes with the
shapes that come. So a plan leaves claims out: `forget_claims` infers what follows from claimed outputs again.
What is not known without the claim is open in the plan; most claims only say what inference knows too, once
the feeds' shapes are there (`shape_refinement.py`).
"""

from __future__ import annotations

from collections.abc import Collection

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.node import UNKNOWN
from flowstone.framework.types.shape import Dims
from flowstone.rewriting.analyses.branches import MERGES
from flowstone.rewriting.analyses.frames import NEXT_ITERATIONS
from flowstone.rewriting.analyses.stored_values import StoredValues, common, is_taken


def forget_claims(subgraph: Subgraph, claimed: Collection[PlanOutput]) -> None:
    """Leaves of the shapes that follow from these outputs what is true without the claims about them; the
    outputs' own shapes are those before the claims."""
    if not claimed:
        return
    stored = StoredValues(subgraph) if any([is_taken(node) for node in subgraph.nodes]) else None
    has_loops = any([node.type in NEXT_ITERATIONS for node in subgraph.nodes])
    doubted = set(claimed)
    is_changed = True
    while is_changed:  # shapes only lose, so loops come to an end
        is_changed = False
        for node in subgraph.nodes:
            sources = node.inputs
            if stored is not None and is_taken(node):
                sources = [*sources, *[x for x, _ in stored.written_for(node) if x is not None]]
            if doubted.isdisjoint(sources):
                continue
            for x in node.outputs:
                x._static_value = UNKNOWN
            for x, dims in zip(node.outputs, _inferred(node, stored)):
                remaining = common([x.dims, dims])
                is_changed = is_changed or (has_loops and (remaining != x.dims or x not in doubted))
                x.dims = remaining
                doubted.add(x)


def _inferred(node: PlanNode, stored: StoredValues | None) -> list[Dims]:
    if node.type in MERGES:
        return [common([x.dims for x in node.inputs]), ()]
    if stored is not None and is_taken(node):
        return [stored.dims_for(node), *[None] * (len(node.outputs) - 1)]
    try:
        infer = node.declaration.infer_function
        dims = infer(node) if infer is not None else None
    except (ValueError, TypeError, IndexError, AssertionError):  # the step says what is wrong
        dims = None
    return dims if isinstance(dims, list) else [dims, *[None] * (len(node.outputs) - 1)]
