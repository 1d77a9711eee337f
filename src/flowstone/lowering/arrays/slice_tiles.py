"""Slice tiles: replaces slices that together make up a tensor by one split."""

from __future__ import annotations

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.patterns import substitute


def split_slices(subgraph: Subgraph) -> None:
    """Puts a SplitV in the place of the first of such slices, and its outputs in those of all."""
    slices: dict[PlanOutput, list[PlanNode]] = {}
    for node in subgraph.nodes:
        if node.type == "Slice" and not node.control_inputs:
            slices.setdefault(node.inputs[0], []).append(node)
    slices = {x: nodes for x, nodes in slices.items() if len(nodes) > 1 and not x.dtype.is_ref}
    if not slices:
        return
    liveness = subgraph.analysis(Liveness)
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for x, nodes in slices.items():
        axis, ordered = _tiles(x, nodes)
        if not ordered or len({(liveness.node(node), node.device) for node in nodes}) > 1:
            continue
        first = nodes[0]
        sizes = [(node.outputs[0].dims or ())[axis] for node in ordered]
        constants = [
            subgraph.new_constant(np.array(sizes, np.int64), first, "sizes"),
            subgraph.new_constant(np.array(axis, np.int32), first, "axis"),
        ]
        attributes = {"T": x.dtype.base_dtype, "Tlen": dtypes.int64, "num_split": len(ordered)}
        inputs = [x, *(constant.outputs[0] for constant in constants)]
        split = subgraph.new_node(registry["SplitV"], inputs, attributes, like=first)
        for node, part in zip(ordered, split.outputs):
            places[node], replaced[node.outputs[0]] = [], part
            subgraph.log.append(("split_slices", node.name, "one of the slices that make up a tensor"))
        places[first] = [*constants, split]
    substitute(subgraph, places, replaced, {old.op: [new.op] for old, new in replaced.items()})


def _tiles(x: PlanOutput, nodes: list[PlanNode]) -> tuple[int, list[PlanNode]]:
    """The axis along which the slices make `x`, and the slices in order; none if they do not."""
    whole = x.static_shape
    if whole is None:
        return 0, []
    parts: list[tuple[int, int, int, PlanNode]] = []
    for node in nodes:
        begin, dims = node.constant(1), node.outputs[0].static_shape
        if begin is None or dims is None:
            return 0, []
        cut = [axis for axis, size in enumerate(dims) if size != whole[axis]]
        if len(cut) != 1 or not dims[cut[0]]:
            return 0, []
        parts.append((cut[0], int(begin[cut[0]]), dims[cut[0]], node))
    parts.sort(key=lambda part: part[:2])
    end = 0
    for axis, start, size, _ in parts:
        if axis != parts[0][0] or start != end:
            return 0, []
        end += size
    return parts[0][0], [part[3] for part in parts] if end == whole[parts[0][0]] else []
