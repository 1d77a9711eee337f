"""Which nodes of loops that stay generated Python may be joined (`straight_regions.py`).

Where a loop's arrays grow, or a shape is only known in the step, most of its body may have known shapes all
the same. Whether nodes there are joined depends on how many stand together, and so on where a program puts
them; values must not. So those join that give the same bits by a program as by clusters and ATen's kernels:
what moves elements, compares, chooses, counts, or does something to each element. Sums and products of
floating-point numbers stay, and the element-wise nodes around them, which clusters join with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.clusters.node_steps import kind_of
from flowstone.lowering.programs.movement_statements import MOVEMENTS
from flowstone.lowering.programs.program_limits import NARROW
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.programs.sums_code import REDUCTIONS
from flowstone.rewriting.analyses.frames import Frames

__all__ = ["exact_in_bodies"]

_ADDING = frozenset({"dot", "reduction", "row"})
_PRODUCTS = frozenset({"BatchMatMul", "BatchMatMulV2", "MatMul", "_AddedMatMul", "_FusedMatMul"})
_CHOICES = frozenset({"ArgMax", "ArgMin", "OneHot", "TopKV2"})
_QUOTIENTS = frozenset({"FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"})
_SUMS = ("UnsortedSegment", "TensorScatter", "MirrorPadGrad")  # prefixes


def exact_in_bodies(
    subgraph: Subgraph, frames: Frames, consumers: Mapping[PlanOutput, Sequence[PlanNode]]
) -> set[PlanNode]:
    """The nodes of innermost loops that may be joined."""
    if not frames.exist:
        return set()
    homes = {node: frames.home(node) for node in subgraph.nodes}
    around = {home.parent for home in homes.values() if home is not None}
    inside = [node for node, home in homes.items() if home is not None and home not in around]
    exact = {node for node in inside if _is_exact(node) and _is_of_arrays(node)}
    waiting = [node for node in inside if not _is_exact(node) and _adds_up(node)]
    while waiting:  # element-wise nodes that lead to a sum or come from one are its cluster's
        node = waiting.pop()
        near = [x.op for x in node.inputs] + [each for x in node.outputs for each in consumers.get(x, ())]
        for each in near:
            if each in exact and each.type in ELEMENTS and homes[each] is homes[node]:
                exact.remove(each)
                waiting.append(each)
    return exact


def _is_exact(node: PlanNode) -> bool:
    """Whether the values have the same bits whatever computes them."""
    if node.type in ELEMENTS or node.type in _CHOICES or node.type in _QUOTIENTS:
        return True
    is_whole = bool(node.outputs) and not node.outputs[0].dtype.is_floating
    if node.type in REDUCTIONS or node.type.startswith(_SUMS):
        return is_whole
    return node.type in MOVEMENTS


def _adds_up(node: PlanNode) -> bool:
    """Whether the node is a sum, or a program on rows, of a cluster, or a product that takes one along."""
    return kind_of(node) in _ADDING or node.type in _PRODUCTS


def _is_of_arrays(node: PlanNode) -> bool:
    """Whether all arrays are small, and none is a counter or decision of a loop, a number of Python's."""
    for x in (*node.inputs, *node.outputs):
        size = num_elements(x.dims)
        if x.dtype.name == "resource" or size is None or not 0 < size <= NARROW.elements:
            return False
        if x.dims == () and not x.dtype.is_floating and not x.op.is_constant:
            return False
    return bool(node.outputs) and not any(x.dtype.is_ref for x in node.outputs)
