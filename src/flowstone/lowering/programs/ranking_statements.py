"""Nodes that find the largest numbers of rows, and nodes that check, as statements."""

from __future__ import annotations

import math
from collections.abc import Callable

from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of, static_dims
from flowstone.lowering.programs.statement_parts import constant_input, result_of
from flowstone.lowering.programs.translation import Translation
from flowstone.native.codegen.emitter import FLOATS

__all__ = ["RANKINGS"]

_MOST = 64  # largest numbers, which are kept in order one by one


def _largest(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    source, index_type = static_dims(node, node.inputs[0].dims), kind_of(node, node.outputs[1])
    constant_input(node, 1)
    if dtype == "bool" or index_type not in ("int32", "int64") or dims[-1] > _MOST:
        raise Untranslatable(node, "it finds many numbers, or those of other types")
    x, size = t.of(node.inputs[0]), {"size": source[-1], "count": dims[-1]}
    places = t.add("Largest", [x], ("int32", dims), rows=math.prod(source[:-1]), **size)
    values = t.add("Taken", [x, places], (dtype, dims), **size)
    if index_type == "int64":
        places = t.add("Cast", [places], ("int64", dims), DstT=node.outputs[1].dtype)
    return [values, places]


def _check(t: Translation, node: PlanNode) -> list[int]:
    """A program fails where the condition does not hold; the node then says why."""
    t.add("Check", [t.of(node.inputs[0])], None)
    return []


def _check_numbers(t: Translation, node: PlanNode) -> list[int]:
    dtype, _ = result_of(node)
    if dtype not in FLOATS:
        raise Untranslatable(node, f"machine code has no {node.type} of {dtype}")
    x = t.of(node.inputs[0])
    value = t.builder.values[x]
    found = t.add("IsFinite", [x], ("bool", value.dims))
    found = t.add("Reduce", [found], ("bool", ()), kind="All", outer=1, size=value.size, inner=1)
    t.add("Check", [found], None)
    return [x]


RANKINGS: dict[str, Callable[[Translation, PlanNode], list[int]]] = {
    "Assert": _check,
    "CheckNumerics": _check_numbers,
    "TopKV2": _largest,
}
"""Such nodes."""
