"""What nodes are as statements of a program: a table by their types.

``STATEMENTS[type](translation, node)`` adds the statements to `translation.builder` and returns the numbers
of the node's outputs. `Untranslatable` says why a node stays outside of programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.lowering.programs.array_statements import ARRAYS
from flowstone.lowering.programs.convolution_statements import CONVOLUTIONS
from flowstone.lowering.programs.matrix_statements import MATRICES
from flowstone.lowering.programs.movement_statements import MOVEMENTS
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of
from flowstone.lowering.programs.random_statements import CHOSEN, DRAWS
from flowstone.lowering.programs.ranking_statements import RANKINGS
from flowstone.lowering.programs.softmax_statements import SOFTMAXES
from flowstone.lowering.programs.statement_parts import broadcast, result_of
from flowstone.lowering.programs.translation import Translation
from flowstone.native.numerics.elements import ATTRIBUTES, ELEMENTS, suits

__all__ = ["STATEMENTS"]


def _element(t: Translation, node: PlanNode) -> list[int]:
    """A node of `ELEMENTS`, its inputs broadcast."""
    dtype, dims = result_of(node)
    attributes: dict[str, Any] = {key: node.attributes[key] for key in ATTRIBUTES if key in node.attributes}
    types = [kind_of(node, x) for x in node.inputs]
    if not suits(node.type, types, attributes):
        raise Untranslatable(node, f"machine code has no {node.type} of these types")
    if node.type in ("BiasAdd", "BiasAddV1") and node.attributes.get("data_format", "NHWC") != "NHWC":
        raise Untranslatable(node, "its channels do not come last")
    operands = [t.of(x) for x in node.inputs]
    if node.type == "Select" and len(dims) > 1 and len(node.inputs[0].dims or ()) == 1:  # it chooses rows
        operands[0] = t.builder.view(operands[0], (dims[0], *[1] * (len(dims) - 1)))
    operands = [broadcast(t, node, x, dims) for x in operands]
    return [t.add(node.type, operands, (dtype, dims), **attributes)]


def _quotient(t: Translation, node: PlanNode) -> list[int]:
    """A quotient rounded to a whole number: of floats an element, of integers a statement that may fail."""
    write = _element if node.dtype(0).is_floating else ARRAYS[node.type]
    return write(t, node)


STATEMENTS: dict[str, Callable[[Translation, PlanNode], list[int]]] = {
    **dict.fromkeys(ELEMENTS, _element),
    **MOVEMENTS,
    **ARRAYS,
    **MATRICES,
    **CONVOLUTIONS,
    **RANKINGS,
    **SOFTMAXES,
    **CHOSEN,
    **DRAWS,
    **dict.fromkeys(("FloorDiv", "TruncateDiv"), _quotient),
}
"""Nodes that compute; those of control flow and containers are `translation.py`'s."""
