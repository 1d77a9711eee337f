"""Soft-max, its logarithm, and the cross entropies of it, as statements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of, static_dims
from flowstone.lowering.programs.statement_parts import broadcast, result_of
from flowstone.lowering.programs.translation import Translation
from flowstone.native.numerics.elements import suits

__all__ = ["SOFTMAXES"]


class _Rows(NamedTuple):
    """x less the largest of its row, the powers of that, and their sums, by row."""

    below: int
    powers: int
    totals: int


def _rows(t: Translation, node: PlanNode, dtype: str, dims: tuple[int, ...]) -> _Rows:
    if not dims or not suits("Exp", [dtype], {}) or not suits("Log", [dtype], {}):
        raise Untranslatable(node, f"machine code has no {node.type} of these types")
    x = t.of(node.inputs[0])
    highest = broadcast(t, node, _reduced(t, "Max", x, dtype, dims), dims)
    below = t.add("Sub", [x, highest], (dtype, dims))
    powers = t.add("Exp", [below], (dtype, dims))
    return _Rows(below, powers, _reduced(t, "Sum", powers, dtype, dims))


def _reduced(t: Translation, kind: str, x: int, dtype: str, dims: tuple[int, ...]) -> int:
    sizes = {"outer": math.prod(dims[:-1]), "size": dims[-1], "inner": 1}
    return t.add("Reduce", [x], (dtype, (*dims[:-1], 1)), kind=kind, **sizes)


def _softmax(t: Translation, node: PlanNode) -> list[int]:
    """exp(x - max) / sum of that, or its logarithm, a row at a time."""
    dtype, dims = result_of(node)
    rows = _rows(t, node, dtype, dims)
    if node.type == "Softmax":
        return [t.add("RealDiv", [rows.powers, broadcast(t, node, rows.totals, dims)], (dtype, dims))]
    logarithms = broadcast(t, node, t.add("Log", [rows.totals], (dtype, (*dims[:-1], 1))), dims)
    return [t.add("Sub", [rows.below, logarithms], (dtype, dims))]


def _sparse_cross_entropy(t: Translation, node: PlanNode) -> list[int]:
    """log(sum) - (x - max)[label], and the soft-max less 1 at the label."""
    (dtype, row), dims = result_of(node), static_dims(node, node.outputs[1].dims)
    rows, labels, kind = _rows(t, node, dtype, dims), t.of(node.inputs[1]), kind_of(node, node.inputs[1])
    chosen = t.add("Taken", [rows.below, labels], (dtype, row), size=dims[1], count=1)
    logarithms = t.builder.view(t.add("Log", [rows.totals], (dtype, (*row, 1))), row)
    loss = t.add("Sub", [logarithms, chosen], (dtype, row))
    softmax = t.add("RealDiv", [rows.powers, broadcast(t, node, rows.totals, dims)], (dtype, dims))
    classes = t.builder.constant(kind, (dims[1],), range(dims[1]))
    pair = [broadcast(t, node, each, dims) for each in (t.builder.view(labels, (*row, 1)), classes)]
    less = t.add("Sub", [softmax, t.builder.constant(dtype, (), [1])], (dtype, dims))
    is_label = t.add("Equal", pair, ("bool", dims))
    return [loss, t.add("Select", [is_label, less, softmax], (dtype, dims))]


def _cross_entropy(t: Translation, node: PlanNode) -> list[int]:
    """The sum of labels (log(sum) - (x - max)), and the soft-max less the labels."""
    (dtype, row), dims = result_of(node), static_dims(node, node.outputs[1].dims)
    if node.inputs[0].dims != dims:
        raise Untranslatable(node, "its logits are broadcast")
    rows, labels = _rows(t, node, dtype, dims), broadcast(t, node, t.of(node.inputs[1]), dims)
    logarithms = broadcast(t, node, t.add("Log", [rows.totals], (dtype, (*row, 1))), dims)
    terms = t.add("Mul", [labels, t.add("Sub", [logarithms, rows.below], (dtype, dims))], (dtype, dims))
    loss = t.builder.view(_reduced(t, "Sum", terms, dtype, dims), row)
    softmax = t.add("RealDiv", [rows.powers, broadcast(t, node, rows.totals, dims)], (dtype, dims))
    return [loss, t.add("Sub", [softmax, labels], (dtype, dims))]


SOFTMAXES: dict[str, Callable[[Translation, PlanNode], list[int]]] = {
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
}
"""Nodes that compute a soft-max."""
